package binding_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// hookedController is a server with what the objects say, and a controller with the hooks that knows all of it.
func hookedController(t *testing.T, hooks binding.Hooks, objects ...obj.Object) (*bindingtest.Server, *binding.Controller) {
	t.Helper()
	server := bindingtest.NewServer()
	controller := &binding.Controller{Client: server.NewClient("controller"), Recorder: server.NewClient("controller"), Hooks: hooks}
	for _, object := range objects {
		if object.GetUID() != "" {
			require.NoError(t, server.Load(object))
		} else {
			_, err := server.Create(t.Context(), object)
			require.NoError(t, err)
		}
	}
	for _, kind := range bindingtest.Kinds() {
		list, err := server.List(t.Context(), kind, "")
		require.NoError(t, err)
		for _, object := range list {
			controller.Observe(object)
		}
	}
	return server, controller
}

// provisioned are a class of own's, and a claim of it, as they are created.
func provisionable() []obj.Object {
	claim := bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") })
	return []obj.Object{bindingtest.Class("fast", func(c *storagev1.StorageClass) { c.Provisioner = own }), claim}
}

// warnings are the messages of the Warning events on the claim.
func warnings(server *bindingtest.Server) (messages []string) {
	for _, call := range server.Calls() {
		if call.Verb == bindingtest.VerbRecord && call.Event.Type == corev1.EventTypeWarning {
			messages = append(messages, call.Event.Message)
		}
	}
	return messages
}

func provisionedBy1(hook provisions) binding.Hooks {
	return binding.Hooks{Provisioners: map[string]binding.Provisioner{own: hook}}
}

// The time in which these play passes only when nothing else is left to happen.
func TestRhAHookThatOutlastsItsTime(t *testing.T) {
	run := func(name string, play func(*testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, play) })
	}
	run("Rh it minds its context", func(t *testing.T) {
		hooks := provisionedBy1(func(ctx context.Context, _ binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		hooks.Timeout = time.Millisecond
		server, controller := hookedController(t, hooks, provisionable()...)
		result, err := controller.Sync(t.Context(), dataKey)
		require.NoError(t, err)
		assert.Positive(t, result.After, "W6")
		require.Len(t, warnings(server), 1)
		assert.Contains(t, warnings(server)[0], context.DeadlineExceeded.Error())
	})
	run("Rh it does not: it is not called again for this storage until it has returned", func(t *testing.T) {
		var calls atomic.Int32
		goOn := make(chan struct{})
		hooks := provisionedBy1(func(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
			if calls.Add(1) == 1 {
				<-goOn
			}
			return makesPaths(ctx, request)
		})
		hooks.Timeout = time.Millisecond
		server, controller := hookedController(t, hooks, provisionable()...)
		_, err := controller.Sync(t.Context(), dataKey)
		require.NoError(t, err)
		require.Len(t, warnings(server), 1)
		assert.Contains(t, warnings(server)[0], "1ms", "how long it was waited for")

		result, err := controller.Sync(t.Context(), dataKey)
		require.NoError(t, err)
		assert.Positive(t, result.After, "W6")
		assert.Len(t, warnings(server), 1, "it is in progress, which is no failure")
		assert.EqualValues(t, 1, calls.Load())

		close(goOn)
		synctest.Wait() // until the runner has noticed
		_, err = controller.Sync(t.Context(), dataKey)
		require.NoError(t, err)
		assert.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase)
		assert.EqualValues(t, 2, calls.Load())
	})
	run("Rh others go on meanwhile", func(t *testing.T) {
		goOn := make(chan struct{})
		defer close(goOn)
		hooks := provisionedBy1(func(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
			if request.Claim.Name == "data" {
				<-goOn
			}
			return makesPaths(ctx, request)
		})
		hooks.Timeout, hooks.AtOnce = time.Millisecond, 1
		other := bindingtest.Claim("default", "other", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") })
		server, controller := hookedController(t, hooks, append(provisionable(), other)...)
		for _, key := range []obj.Key{dataKey, obj.ClaimKey("default", "other")} {
			_, err := controller.Sync(t.Context(), key)
			require.NoError(t, err)
		}
		assert.Equal(t, corev1.ClaimBound, server.Claim("default", "other").Status.Phase, "a call that was given up takes no room")
	})
	run("Rh no call of it holds a lock", func(t *testing.T) {
		var controller *binding.Controller
		hooks := provisionedBy1(func(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
			controller.Observe(bindingtest.Class("another"))
			_, err := controller.Sync(ctx, obj.ClaimKey("default", "nobody"))
			require.NoError(t, err)
			return makesPaths(ctx, request)
		})
		var server *bindingtest.Server
		server, controller = hookedController(t, hooks, provisionable()...)
		_, err := controller.Sync(t.Context(), dataKey)
		require.NoError(t, err)
		assert.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase)
	})
}

func TestRhAPanicIsTheErrorOfItsObject(t *testing.T) {
	hooks := provisionedBy1(func(context.Context, binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
		panic("no such pool")
	})
	server, controller := hookedController(t, hooks, provisionable()...)
	result, err := controller.Sync(t.Context(), dataKey)
	require.NoError(t, err)
	assert.Positive(t, result.After, "W6")
	var failures []binding.Event
	for _, call := range server.Calls() {
		if call.Verb == bindingtest.VerbRecord {
			failures = append(failures, call.Event)
		}
	}
	require.Len(t, failures, 1)
	assert.Equal(t, dataKey, failures[0].On)
	assert.Contains(t, failures[0].Message, "the hook panicked: no such pool")
}

// released is a volume whose claim is gone, as a running cluster has it.
func releasedVolume(policy corev1.PersistentVolumeReclaimPolicy, edits ...volumeEdit) *corev1.PersistentVolume {
	return orphan(policy, append([]volumeEdit{ofClass(""), func(v *corev1.PersistentVolume) {
		v.ResourceVersion, v.Spec.VolumeMode = "", new(corev1.PersistentVolumeFilesystem)
	}}, edits...)...)
}

func TestRhPanicsOfTheOtherHooks(t *testing.T) {
	for policy, hooks := range map[corev1.PersistentVolumeReclaimPolicy]binding.Hooks{
		corev1.PersistentVolumeReclaimDelete:  {SourceDeleters: map[string]binding.Deleter{"hostPath": deletes(func(context.Context, *corev1.PersistentVolume) error { panic(errBroken) })}},
		corev1.PersistentVolumeReclaimRecycle: {Recyclers: map[string]binding.Recycler{"hostPath": recycles(func(context.Context, *corev1.PersistentVolume) error { panic(errBroken) })}},
	} {
		t.Run("Rh "+string(policy), func(t *testing.T) {
			server, controller := hookedController(t, hooks, releasedVolume(policy))
			_, err := controller.Sync(t.Context(), aKey)
			require.NoError(t, err)
			assert.Equal(t, corev1.VolumeFailed, server.Volume("a").Status.Phase)
			assert.Contains(t, server.Volume("a").Status.Message, "the hook panicked: the disk is broken")
		})
	}
}

func TestRhAHookGetsCopies(t *testing.T) {
	t.Run("Rh X6 of what to provision", func(t *testing.T) {
		var seen binding.ProvisionRequest
		hooks := provisionedBy1(func(_ context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
			seen = binding.ProvisionRequest{Claim: request.Claim.DeepCopy(), Class: request.Class.DeepCopy(), Volume: request.Volume.DeepCopy()}
			request.Claim.UID = "spoilt"
			spoilMeta(&request.Claim.ObjectMeta)
			spoilModes(request.Claim.Spec.AccessModes)
			request.Class.MountOptions = []string{"spoilt"}
			clear(request.Class.Parameters)
			spoilMeta(&request.Volume.ObjectMeta)
			clear(request.Volume.Spec.Capacity)
			return nil, errBroken
		})
		server, controller := hookedController(t, hooks, provisionable()...)
		for range 2 {
			_, err := controller.Sync(t.Context(), dataKey)
			require.NoError(t, err)
			assert.Equal(t, server.Claim("default", "data"), seen.Claim)
			assert.Equal(t, own, seen.Volume.Annotations[provisionedBy])
			assert.NotEmpty(t, seen.Volume.Spec.Capacity)
			assert.Empty(t, seen.Class.MountOptions)
		}
		for _, known := range controller.Known() {
			stored, err := server.Get(t.Context(), keyOf(t, known))
			require.NoError(t, err)
			assert.Equal(t, stored, known, "X6")
		}
	})
	t.Run("Rh X6 of what to delete and to scrub", func(t *testing.T) {
		spoils := func(_ context.Context, volume *corev1.PersistentVolume) error {
			spoilMeta(&volume.ObjectMeta)
			spoilModes(volume.Spec.AccessModes)
			volume.UID, volume.Spec.ClaimRef.UID, volume.ResourceVersion = "spoilt", "spoilt", "0"
			return &binding.HookError{Meaning: binding.HookInProgress}
		}
		hooks := binding.Hooks{
			SourceDeleters: map[string]binding.Deleter{"hostPath": deletes(spoils)}, Recyclers: map[string]binding.Recycler{"hostPath": recycles(spoils)},
		}
		for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
			server, controller := hookedController(t, hooks, releasedVolume(policy))
			_, err := controller.Sync(t.Context(), aKey)
			require.NoError(t, err)
			require.Len(t, controller.Known(), 1)
			assert.Equal(t, server.Volume("a"), controller.Known()[0], "X6")
		}
	})
	t.Run("Rh what it returned stays its own", func(t *testing.T) {
		kept := &corev1.PersistentVolume{}
		hooks := provisionedBy1(func(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
			made, err := makesPaths(ctx, request)
			kept = made
			return made, err
		})
		_, controller := hookedController(t, hooks, provisionable()...)
		_, err := controller.Sync(t.Context(), dataKey)
		require.NoError(t, err)
		before := kept.DeepCopy()
		assert.Empty(t, before.Status.Phase)
		assert.Empty(t, before.UID)
	})
}

func keyOf(t *testing.T, object obj.Object) obj.Key {
	t.Helper()
	key, err := bindingtest.KeyOf(object)
	require.NoError(t, err)
	return key
}

func TestRhTheContextOfSyncReachesTheHook(t *testing.T) {
	type mark struct{}
	var value any
	var deadline bool
	hooks := provisionedBy1(func(ctx context.Context, request binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
		value = ctx.Value(mark{})
		_, deadline = ctx.Deadline()
		return makesPaths(ctx, request)
	})
	_, controller := hookedController(t, hooks, provisionable()...)
	_, err := controller.Sync(context.WithValue(t.Context(), mark{}, "here"), dataKey)
	require.NoError(t, err)
	assert.Equal(t, "here", value)
	assert.True(t, deadline, "Rh it has one, whatever the caller's")
}

func TestRhAHookThatIsNotRegistered(t *testing.T) {
	claim, volume := provisioningClaim(), releasedVolume(corev1.PersistentVolumeReclaimDelete)
	named := madeByOwn()
	request := &binding.ProvisionRequest{Claim: claim, Volume: madeVolume()}
	called := func(context.Context, *corev1.PersistentVolume) error { return errors.New("the wrong one") }
	for name, test := range map[string]struct {
		hooks  binding.Hooks
		action binding.Action
	}{
		"none at all":                   {binding.Hooks{}, binding.Action{Kind: binding.RunProvisioner, Hook: own, Request: request}},
		"a nil provisioner":             {provisionedBy1(nil), binding.Action{Kind: binding.RunProvisioner, Hook: "other", Request: request}},
		"a deleter of a source":         {binding.Hooks{SourceDeleters: map[string]binding.Deleter{own: deletes(called)}}, binding.Action{Kind: binding.RunDeleter, Hook: own, Volume: named}},
		"a deleter of a provisioner":    {binding.Hooks{Deleters: map[string]binding.Deleter{"hostPath": deletes(called)}}, binding.Action{Kind: binding.RunDeleter, Hook: "hostPath", Volume: volume}},
		"a recycler for another source": {binding.Hooks{Recyclers: map[string]binding.Recycler{"nfs": recycles(called)}}, binding.Action{Kind: binding.RunRecycler, Hook: "hostPath", Volume: volume}},
		"what is no hook":               {binding.Hooks{}, binding.Action{Kind: binding.DeleteVolume, Hook: "hostPath", Volume: volume}},
	} {
		t.Run("Rh "+name, func(t *testing.T) {
			err := (&binding.Controller{Hooks: test.hooks}).RunHook(test.action)
			assert.EqualError(t, err, `no hook is registered under "`+test.action.Hook+`"`)
		})
	}
}

func TestRhASyncThatIsCancelledIsNoFailureOfItsHook(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := bindingtest.NewServer()
	hook := provisions(func(ctx context.Context, _ binding.ProvisionRequest) (*corev1.PersistentVolume, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	driver := bindingtest.NewDriver(server, bindingtest.Options{Hooks: provisionedBy1(hook)})
	_, err := server.Create(t.Context(), classOf("fast", own))
	require.NoError(t, err)
	_, err = server.Create(t.Context(), bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") }))
	require.NoError(t, err)
	_ = driver.Settle(ctx)
	assert.Empty(t, server.Events())
}
