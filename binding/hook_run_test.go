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
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/hookrun"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// hookedController is a server with what the objects say, and a controller with the hooks that knows all of it.
func hookedController(t *testing.T, hookSet hooks.Set, objects ...obj.Object) (*bindingtest.Server, *binding.Controller) {
	t.Helper()
	server := bindingtest.NewServer()
	controller := &binding.Controller{Client: server.NewClient("controller"), Recorder: server.NewClient("controller"), Hooks: hookSet}
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
	return []obj.Object{bindingtest.Class("fast", func(c *storagev1.StorageClass) { c.Provisioner = Own }), claim}
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

func provisionedBy1(hook Provisions) hooks.Set {
	return hooks.Set{Provisioners: map[string]hooks.Provisioner{Own: hook}}
}

// The time in which these play passes only when nothing else is left to happen.
func TestRhAHookThatOutlastsItsTime(t *testing.T) {
	run := func(name string, play func(*testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, play) })
	}
	run("Rh it minds its context", func(t *testing.T) {
		hookSet := provisionedBy1(func(ctx context.Context, _ hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		hookSet.Timeout = time.Millisecond
		server, controller := hookedController(t, hookSet, provisionable()...)
		result, err := controller.Sync(t.Context(), DataKey)
		require.NoError(t, err)
		assert.Positive(t, result.After, "W6")
		require.Len(t, warnings(server), 1)
		assert.Contains(t, warnings(server)[0], context.DeadlineExceeded.Error())
	})
	run("Rh it does not: it is not called again for this storage until it has returned", func(t *testing.T) {
		var calls atomic.Int32
		goOn := make(chan struct{})
		hookSet := provisionedBy1(func(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			if calls.Add(1) == 1 {
				<-goOn
			}
			return MakesPaths(ctx, request)
		})
		hookSet.Timeout = time.Millisecond
		server, controller := hookedController(t, hookSet, provisionable()...)
		_, err := controller.Sync(t.Context(), DataKey)
		require.NoError(t, err)
		require.Len(t, warnings(server), 1)
		assert.Contains(t, warnings(server)[0], "1ms", "how long it was waited for")

		result, err := controller.Sync(t.Context(), DataKey)
		require.NoError(t, err)
		assert.Positive(t, result.After, "W6")
		require.Len(t, warnings(server), 2)
		assert.Contains(t, warnings(server)[1], "has not returned")
		assert.EqualValues(t, 1, calls.Load())

		close(goOn)
		synctest.Wait() // until the runner has noticed
		_, err = controller.Sync(t.Context(), DataKey)
		require.NoError(t, err)
		assert.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase)
		assert.EqualValues(t, 2, calls.Load())
	})
	run("Rh others go on meanwhile", func(t *testing.T) {
		goOn := make(chan struct{})
		defer close(goOn)
		hookSet := provisionedBy1(func(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			if request.Claim.Name == "data" {
				<-goOn
			}
			return MakesPaths(ctx, request)
		})
		hookSet.Timeout, hookSet.MaxConcurrent = time.Millisecond, 1
		other := bindingtest.Claim("default", "other", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") })
		server, controller := hookedController(t, hookSet, append(provisionable(), other)...)
		for _, key := range []obj.Key{DataKey, obj.ClaimKey("default", "other")} {
			_, err := controller.Sync(t.Context(), key)
			require.NoError(t, err)
		}
		assert.Equal(t, corev1.ClaimBound, server.Claim("default", "other").Status.Phase, "a call that was given up takes no room")
	})
	run("Rh no call of it holds a lock", func(t *testing.T) {
		var controller *binding.Controller
		hookSet := provisionedBy1(func(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			controller.Observe(bindingtest.Class("another"))
			_, err := controller.Sync(ctx, obj.ClaimKey("default", "nobody"))
			require.NoError(t, err)
			return MakesPaths(ctx, request)
		})
		var server *bindingtest.Server
		server, controller = hookedController(t, hookSet, provisionable()...)
		_, err := controller.Sync(t.Context(), DataKey)
		require.NoError(t, err)
		assert.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase)
	})
}

func TestRhAPanicIsTheErrorOfItsObject(t *testing.T) {
	hookSet := provisionedBy1(func(context.Context, hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
		panic("no such pool")
	})
	server, controller := hookedController(t, hookSet, provisionable()...)
	result, err := controller.Sync(t.Context(), DataKey)
	require.NoError(t, err)
	assert.Positive(t, result.After, "W6")
	var failures []decision.Event
	for _, call := range server.Calls() {
		if call.Verb == bindingtest.VerbRecord {
			failures = append(failures, call.Event)
		}
	}
	require.Len(t, failures, 1)
	assert.Equal(t, DataKey, failures[0].On)
	assert.Contains(t, failures[0].Message, "the hook panicked: no such pool")
}

// released is a volume whose claim is gone, as a running cluster has it.
func releasedVolume(policy corev1.PersistentVolumeReclaimPolicy, edits ...VolumeEdit) *corev1.PersistentVolume {
	return Orphan(policy, append([]VolumeEdit{OfClass(""), func(v *corev1.PersistentVolume) {
		v.ResourceVersion, v.Spec.VolumeMode = "", new(corev1.PersistentVolumeFilesystem)
	}}, edits...)...)
}

func TestRhPanicsOfTheOtherHooks(t *testing.T) {
	for policy, hookSet := range map[corev1.PersistentVolumeReclaimPolicy]hooks.Set{
		corev1.PersistentVolumeReclaimDelete:  {SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(func(context.Context, hooks.ReclaimRequest) error { panic(ErrBroken) })}},
		corev1.PersistentVolumeReclaimRecycle: {Recyclers: map[string]hooks.Recycler{"hostPath": Recycles(func(context.Context, hooks.ReclaimRequest) error { panic(ErrBroken) })}},
	} {
		t.Run("Rh "+string(policy), func(t *testing.T) {
			server, controller := hookedController(t, hookSet, releasedVolume(policy))
			_, err := controller.Sync(t.Context(), AKey)
			require.NoError(t, err)
			assert.Equal(t, corev1.VolumeFailed, server.Volume("a").Status.Phase)
			assert.Contains(t, server.Volume("a").Status.Message, "the hook panicked: the disk is broken")
		})
	}
}

func TestRhAHookGetsCopies(t *testing.T) {
	t.Run("Rh X6 of what to provision", func(t *testing.T) {
		var seen hooks.ProvisionRequest
		hookSet := provisionedBy1(func(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			seen = hooks.ProvisionRequest{Claim: request.Claim.DeepCopy(), Class: request.Class.DeepCopy(), Volume: request.Volume.DeepCopy()}
			request.Claim.UID = "spoilt"
			SpoilMeta(&request.Claim.ObjectMeta)
			SpoilModes(request.Claim.Spec.AccessModes)
			request.Class.MountOptions = []string{"spoilt"}
			clear(request.Class.Parameters)
			SpoilMeta(&request.Volume.ObjectMeta)
			clear(request.Volume.Spec.Capacity)
			return nil, ErrBroken
		})
		server, controller := hookedController(t, hookSet, provisionable()...)
		for range 2 {
			_, err := controller.Sync(t.Context(), DataKey)
			require.NoError(t, err)
			assert.Equal(t, server.Claim("default", "data"), seen.Claim)
			assert.Equal(t, Own, seen.Volume.Annotations[ProvisionedBy])
			assert.NotEmpty(t, seen.Volume.Spec.Capacity)
			assert.Empty(t, seen.Class.MountOptions)
		}
		for _, known := range Remembered(controller) {
			stored, err := server.Get(t.Context(), keyOf(t, known))
			require.NoError(t, err)
			assert.Equal(t, stored, known, "X6")
		}
	})
	t.Run("Rh X6 of what to delete and to scrub", func(t *testing.T) {
		spoils := func(_ context.Context, request hooks.ReclaimRequest) error {
			volume := request.Volume
			SpoilMeta(&volume.ObjectMeta)
			SpoilModes(volume.Spec.AccessModes)
			volume.UID, volume.Spec.ClaimRef.UID, volume.ResourceVersion = "spoilt", "spoilt", "0"
			return &hooks.Error{Meaning: hooks.InProgress}
		}
		hookSet := hooks.Set{
			SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(spoils)}, Recyclers: map[string]hooks.Recycler{"hostPath": Recycles(spoils)},
		}
		for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle} {
			server, controller := hookedController(t, hookSet, releasedVolume(policy))
			_, err := controller.Sync(t.Context(), AKey)
			require.NoError(t, err)
			require.Len(t, Remembered(controller), 1)
			assert.Equal(t, server.Volume("a"), Remembered(controller)[0], "X6")
		}
	})
	t.Run("Rh what it returned stays its own", func(t *testing.T) {
		kept := &corev1.PersistentVolume{}
		hookSet := provisionedBy1(func(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
			made, err := MakesPaths(ctx, request)
			kept = made
			return made, err
		})
		_, controller := hookedController(t, hookSet, provisionable()...)
		_, err := controller.Sync(t.Context(), DataKey)
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
	hookSet := provisionedBy1(func(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
		value = ctx.Value(mark{})
		_, deadline = ctx.Deadline()
		return MakesPaths(ctx, request)
	})
	_, controller := hookedController(t, hookSet, provisionable()...)
	_, err := controller.Sync(context.WithValue(t.Context(), mark{}, "here"), DataKey)
	require.NoError(t, err)
	assert.Equal(t, "here", value)
	assert.True(t, deadline, "Rh it has one, whatever the caller's")
}

func TestRhAHookThatIsNotRegistered(t *testing.T) {
	claim, volume := ProvisioningClaim(), releasedVolume(corev1.PersistentVolumeReclaimDelete)
	named := MadeByOwn()
	request := &hooks.ProvisionRequest{Claim: claim, Volume: MadeVolume()}
	called := func(context.Context, hooks.ReclaimRequest) error { return errors.New("the wrong one") }
	for name, test := range map[string]struct {
		hooks  hooks.Set
		action decision.Action
	}{
		"none at all":                   {hooks.Set{}, decision.Action{Kind: decision.RunProvisioner, Hook: Own, Request: request}},
		"a nil provisioner":             {provisionedBy1(nil), decision.Action{Kind: decision.RunProvisioner, Hook: "other", Request: request}},
		"a deleter of a source":         {hooks.Set{SourceDeleters: map[string]hooks.Deleter{Own: Deletes(called)}}, decision.Action{Kind: decision.RunDeleter, Hook: Own, Volume: named}},
		"a deleter of a provisioner":    {hooks.Set{Deleters: map[string]hooks.Deleter{"hostPath": Deletes(called)}}, decision.Action{Kind: decision.RunDeleter, Hook: "hostPath", Volume: volume}},
		"a recycler for another source": {hooks.Set{Recyclers: map[string]hooks.Recycler{"nfs": Recycles(called)}}, decision.Action{Kind: decision.RunRecycler, Hook: "hostPath", Volume: volume}},
		"what is no hook":               {hooks.Set{}, decision.Action{Kind: decision.DeleteVolume, Hook: "hostPath", Volume: volume}},
	} {
		t.Run("Rh "+name, func(t *testing.T) {
			err := (&hookrun.Runner{}).Run(t.Context(), test.hooks, test.action, nil).Err
			assert.EqualError(t, err, `no hook is registered under "`+test.action.Hook+`"`)
		})
	}
}

func TestRhASyncThatIsCancelledIsNoFailureOfItsHook(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := bindingtest.NewServer()
	hook := Provisions(func(ctx context.Context, _ hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	driver := bindingtest.NewDriver(server, bindingtest.DriverOptions{Hooks: provisionedBy1(hook)})
	_, err := server.Create(t.Context(), ClassOf("fast", Own))
	require.NoError(t, err)
	_, err = server.Create(t.Context(), bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") }))
	require.NoError(t, err)
	_ = driver.Settle(ctx)
	assert.Empty(t, server.Events())
}

// panicsAtCreate is a client that panics when it is to create a volume for the first time.
type panicsAtCreate struct {
	*bindingtest.Client
	panicked bool
}

func (p *panicsAtCreate) CreateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if !p.panicked {
		p.panicked = true
		panic("the client is broken")
	}
	return p.Client.CreateVolume(ctx, volume)
}

func TestB6AClientThatPanicsLeavesNothingLocked(t *testing.T) {
	server, controller := hookedController(t, provisionedBy1(MakesPaths), provisionable()...)
	controller.Client = &panicsAtCreate{Client: server.NewClient("controller")}
	_, err := controller.Sync(t.Context(), DataKey)
	require.ErrorContains(t, err, "the Client panicked: the client is broken")
	assert.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase, "P2 as after an answer that was lost")
}

// R8: the time of a call counts from its announcement, and one that comes too late is not made.
func TestR8TheTimeOfAnAnnouncedCall(t *testing.T) {
	volume := releasedVolume(corev1.PersistentVolumeReclaimDelete)
	action := decision.Action{Kind: decision.RunDeleter, Hook: "hostPath", Volume: volume, Token: 7}
	for name, test := range map[string]struct {
		since  time.Duration
		called bool
		in     time.Duration
	}{
		"at once":                                {0, true, time.Hour},
		"after a while":                          {20 * time.Second, true, time.Hour},
		"at the last":                            {hooks.Margin, true, time.Hour},
		"a moment too late":                      {hooks.Margin + 1, false, time.Hour},
		"after its Timeout, where that is short": {20 * time.Second, false, 10 * time.Second},
	} {
		t.Run("R8 "+name, func(t *testing.T) {
			called, left := false, time.Duration(0)
			hookSet := hooks.Set{Timeout: test.in, SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(func(ctx context.Context, request hooks.ReclaimRequest) error {
				deadline, _ := ctx.Deadline()
				called, left = true, time.Until(deadline)
				assert.Equal(t, int64(7), request.Token)
				return nil
			})}}
			got := (&hookrun.Runner{}).Run(t.Context(), hookSet, action, func() time.Duration { return test.since })
			require.Equal(t, test.called, called)
			if called {
				assert.LessOrEqual(t, left, test.in-test.since)
				return
			}
			var late *hooks.Error
			require.ErrorAs(t, got.Err, &late)
			assert.Equal(t, hooks.TooLate, late.Meaning, "it is announced anew")
			assert.Contains(t, late.Error(), "more than "+min(test.in, hooks.Margin).String())
		})
	}
}

// R8 W6 X10: where what comes between the announcement and the call always takes too long, as with a slow API server or a low limit of the
// client's own, that is told once, and the call is announced ever more seldom.
func TestR8RequestsThatAreTooSlow(t *testing.T) {
	for policy, reason := range map[corev1.PersistentVolumeReclaimPolicy]string{
		corev1.PersistentVolumeReclaimDelete: "VolumeFailedDelete", corev1.PersistentVolumeReclaimRecycle: "VolumeFailedRecycle",
	} {
		t.Run("R8 "+string(policy), func(t *testing.T) {
			called := 0
			calls := func(context.Context, hooks.ReclaimRequest) error { called++; return nil }
			hookSet := hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(calls)}, Recyclers: map[string]hooks.Recycler{"hostPath": Recycles(calls)}}
			server, controller := hookedController(t, hookSet, releasedVolume(policy))
			client, now, each := server.NewClient("slow"), time.Now(), 11*time.Second
			client.Use(func(_ *bindingtest.Call, do func() error) error { now = now.Add(each); return do() })
			controller.Client, controller.Now = client, func() time.Time { return now }
			for delay := 500 * time.Millisecond; delay < 2*time.Minute; delay *= 2 {
				result, err := controller.Sync(t.Context(), AKey)
				require.NoError(t, err)
				require.Equal(t, delay, result.After, "W6")
				now = now.Add(result.After)
			}
			assert.Zero(t, called)
			assert.Equal(t, corev1.VolumeReleased, server.Volume("a").Status.Phase)
			require.Len(t, server.Events(), 1, "N once")
			assert.Contains(t, server.Events()[0].String(), "Warning "+reason+" pv/a: ")
			assert.Contains(t, server.Events()[0].String(), "QPS")

			each = time.Second
			_, err := controller.Sync(t.Context(), AKey)
			require.NoError(t, err)
			assert.Equal(t, 1, called)
		})
	}
}

// R8: no two Controllers announce by the same identity, not even one after the other in one process.
func TestR8EachControllerHasAnIdentity(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		hookSet := hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": Deletes(func(context.Context, hooks.ReclaimRequest) error { return ErrBroken })}}
		server, controller := hookedController(t, hookSet, releasedVolume(corev1.PersistentVolumeReclaimDelete))
		_, err := controller.Sync(t.Context(), AKey)
		require.NoError(t, err)
		announcement, announced := reclaim.AnnouncementOf(server.Volume("a"))
		require.True(t, announced)
		assert.NotEmpty(t, announcement.By)
		assert.False(t, seen[announcement.By])
		assert.InDelta(t, time.Now().UnixNano(), announcement.Token, float64(time.Minute))
		assert.Equal(t, hooks.DefaultTimeout, announcement.Lasts())
		seen[announcement.By] = true
	}
}
