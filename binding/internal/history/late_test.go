package history

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// provisioningWorld is one server with one storage, and a claim that two controllers may provision for.
type provisioningWorld struct {
	t             *testing.T
	server        *bindingtest.Server
	storage       *bindingtest.Storage
	first, second *bindingtest.Driver
	pause         time.Duration // how much later it is for the first than the server says
}

const provisioned = "pvc-uid-2"

func newProvisioningWorld(t *testing.T, odd hooks.Provisioner) *provisioningWorld {
	w := &provisioningWorld{t: t, server: bindingtest.NewServer(), storage: bindingtest.NewStorage()}
	firsts := w.storage.Hooks(Own)
	if odd != nil {
		firsts.Provisioners = map[string]hooks.Provisioner{Own: odd}
	}
	leader := func(name string, hookSet hooks.Set) *bindingtest.Driver {
		return bindingtest.NewDriver(w.server, bindingtest.DriverOptions{Name: name, Hooks: hookSet, BindingOptions: decision.Options{Protection: decision.ProtectionOn}})
	}
	w.first, w.second = leader("first", firsts), leader("second", w.storage.Hooks(Own))
	w.first.Controller.Now = func() time.Time { return w.server.Now().Add(w.pause) }
	w.create(ClassOf("fast", Own))
	w.create(bindingtest.Claim("default", "data", "1Gi", RequestingClass(new("fast"))))
	return w
}

func (w *provisioningWorld) create(object obj.Object) {
	_, err := w.server.Create(w.t.Context(), object)
	require.NoError(w.t, err)
}

func (w *provisioningWorld) claim() *corev1.PersistentVolumeClaim {
	return w.server.Claim("default", "data")
}

// binds has the second bind the claim, and a pod write.
func (w *provisioningWorld) binds() {
	require.NoError(w.t, w.second.Settle(w.t.Context()))
	require.Equal(w.t, corev1.ClaimBound, w.claim().Status.Phase)
	require.True(w.t, w.storage.Write(provisioned))
}

// settle lets both go on until nothing is left to do.
func (w *provisioningWorld) settle() {
	for range 6 {
		_ = bindingtest.Settle(w.t.Context(), w.first, w.second) // that the server went back is an error
		_ = w.first.AdvanceClock(w.t.Context())
		_ = w.second.AdvanceClock(w.t.Context())
	}
}

// P2: a call that comes late, of a create or of a deleter, finds another world than the one it was decided in.
func TestP2WhatComesLate(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"P2 a cache drops the claim while its storage is made":          aCacheDropsTheClaim,
		"P2 V3 a cache shows the claim of before":                       aCacheShowsTheClaimOfBefore,
		"P2 what was made is deleted late":                              leftoverIsDeletedLate,
		"P2 a create lands late":                                        aCreateLandsLate,
		"P2 a create lands after its storage is deleted":                aCreateLandsAfterTheDeleter,
		"P2 a create lands once its class has another provisioner":      aCreateLandsAfterItsProvisioner,
		"P2 R2 a create lands once its volume was retained and is gone": aCreateLandsAfterAll,
		"P2 another is paused before its create":                        anotherIsPausedBeforeItsCreate,
	} {
		t.Run(name, test)
	}
}

// P2, V3: a list of a cache that is behind drops the claim while its provisioner runs. That proves nothing: another controller
// has the volume stored and bound, whatever the first one reads when.
func aCacheDropsTheClaim(t *testing.T) {
	for paused := 1; paused < 4; paused++ { // after so many of the first one's later reads
		w, reads := newProvisioningWorld(t, nil), -1
		w.storage.Use(func(ctx context.Context, call *bindingtest.StorageCall, do func() error) error {
			err := do()
			if call.Verb == bindingtest.StorageProvision && reads < 0 {
				reads = 0
				w.first.Controller.ObserveDeleted(w.claim())
			}
			return err
		})
		w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
			err := do()
			if call.Verb == bindingtest.VerbGet && reads >= 0 {
				if reads++; reads == paused {
					w.binds()
				}
			}
			return err
		})
		w.settle()
		assert.Empty(t, w.storage.Problems(), "paused after %d reads", paused)
		assert.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
	}
}

// P2, V3: while its provisioner runs, what answers is behind, and shows the claim that had the name before, and no volume. That is
// no proof that the later claim is gone: another controller has its volume stored and bound.
func aCacheShowsTheClaimOfBefore(t *testing.T) {
	w, behind := newProvisioningWorld(t, nil), false
	before := w.claim()
	before.UID, before.ResourceVersion = "uid-0", "1"
	w.storage.Use(func(ctx context.Context, call *bindingtest.StorageCall, do func() error) error {
		err := do()
		if call.Verb == bindingtest.StorageProvision && !behind {
			behind = true
			w.binds()
			w.first.Controller.ObserveDeleted(w.claim())
		}
		return err
	})
	w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if behind && call.Verb == bindingtest.VerbGet && call.Key.Kind == obj.KindVolume {
			return apierrors.NewNotFound(corev1.Resource("persistentvolumes"), call.Key.Name)
		}
		if behind && call.Verb == bindingtest.VerbGet && call.Key == DataKey {
			return bindingtest.Answer(1, func(*bindingtest.Call) bool { return true }, before)(call, do)
		}
		return do()
	})
	w.settle()
	require.True(t, behind)
	assert.Empty(t, w.storage.Problems())
	assert.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
}

// P2, R8: the claim is gone indeed, as the first one has read, and it is paused before the deleter. Meanwhile the server is
// restored, with the claim, and another controller has the volume stored and bound. Where the pause was longer than the margin
// of an announcement, the call is not made.
func leftoverIsDeletedLate(t *testing.T) {
	for pause, late := range map[time.Duration]bool{hooks.Margin: false, hooks.Margin + time.Second: true} {
		w := newProvisioningWorld(t, nil)
		backup, gone, restored := w.server.Snapshot(), false, false
		w.storage.Use(func(ctx context.Context, call *bindingtest.StorageCall, do func() error) error {
			err := do()
			if call.Verb == bindingtest.StorageProvision && !gone {
				gone = true
				claim := w.claim()
				claim.Finalizers = nil
				_, failed := w.server.UpdateClaim(ctx, claim)
				require.NoError(t, failed)
				require.NoError(t, w.server.Delete(ctx, DataKey, metav1.DeleteOptions{}))
				w.first.Controller.ObserveDeleted(claim)
			}
			return err
		})
		w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
			err := do()
			if gone && !restored && call.Verb == bindingtest.VerbGet && call.Key.Kind == obj.KindVolume {
				restored = true
				began := w.server.Now()
				w.server.Restore(backup)
				w.second = bindingtest.NewDriver(w.server, bindingtest.DriverOptions{Name: "second", Hooks: w.storage.Hooks(Own)})
				w.binds()
				w.pause += pause - w.server.Now().Sub(began)
			}
			return err
		})
		w.settle()
		require.True(t, restored)
		assert.Equal(t, late, len(w.storage.Problems()) == 0, "after %s: %v", pause, w.storage.Problems())
	}
}

// P2: the outcome of each create stays unknown, and one takes effect while the controller does whatever it does then.
func aCreateLandsLate(t *testing.T) {
	w := newProvisioningWorld(t, nil)
	var late *corev1.PersistentVolume
	w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb == bindingtest.VerbCreate && len(w.storage.Calls()) == 1 {
			late = call.Sent.DeepCopyObject().(*corev1.PersistentVolume)
			return bindingtest.ErrAnswerLost
		}
		return do()
	})
	w.storage.Use(func(ctx context.Context, call *bindingtest.StorageCall, do func() error) error {
		if late != nil {
			w.create(late)
			late = nil
		}
		return do()
	})
	require.NoError(t, w.first.Settle(t.Context()))
	require.NoError(t, w.first.AdvanceClock(t.Context()))
	assert.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
	for _, call := range w.storage.Calls() {
		assert.Equal(t, bindingtest.StorageProvision, call.Verb, "it is needed yet")
	}
	assert.Empty(t, w.storage.Problems())
}

// P2: the server refuses each create, but for one that came before, whose outcome was unknown. It takes effect when the storage
// is deleted again.
func aCreateLandsAfterTheDeleter(t *testing.T) {
	w := newProvisioningWorld(t, nil)
	var late *corev1.PersistentVolume
	down, refused := false, 0
	w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
		switch {
		case call.Verb == bindingtest.VerbCreate && late == nil && refused == 0:
			late, down = call.Sent.DeepCopyObject().(*corev1.PersistentVolume), true
			return bindingtest.ErrAnswerLost
		case down && call.Verb == bindingtest.VerbGet:
			down = false
			return ErrConnection
		case call.Verb == bindingtest.VerbCreate && refused < 3:
			refused++
			return ErrForbidden
		}
		return do()
	})
	w.storage.Use(func(ctx context.Context, call *bindingtest.StorageCall, do func() error) error {
		err := do()
		if call.Verb == bindingtest.StorageDelete && late != nil {
			w.create(late)
			late = nil
		}
		return err
	})
	for range 4 {
		_ = w.first.Settle(t.Context()) // that the connection was lost is an error
		_ = w.first.AdvanceClock(t.Context())
	}
	require.Equal(t, 3, refused)
	assert.Nil(t, late, "it has landed")
	assert.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
	assert.Empty(t, w.storage.Problems())
}

// P2: the outcome of each create is unknown, until the class is made again with another provisioner. What was made is deleted, and the claim's finalizer
// goes. One of the creates takes effect right after that, or when another controller has taken over.
func aCreateLandsAfterItsProvisioner(t *testing.T) {
	for _, takesOver := range []bool{false, true} {
		w := newProvisioningWorld(t, nil)
		var late *corev1.PersistentVolume
		landed := false
		w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
			if call.Verb == bindingtest.VerbCreate {
				late = call.Sent.DeepCopyObject().(*corev1.PersistentVolume)
				return bindingtest.ErrAnswerLost
			}
			err := do()
			if call.Verb == bindingtest.VerbUpdate && late != nil && !landed && !slices.Contains(w.claim().Finalizers, decision.ProvisioningFinalizer) {
				landed = true
				if w.create(late); takesOver {
					w.first.Client.CrashAfter(0)
					w.storage.Restarted()
				}
			}
			return err
		})
		_ = w.first.Settle(t.Context()) // that the outcome is unknown is an error
		require.NotNil(t, late)
		require.NoError(t, w.server.Delete(t.Context(), obj.Key{Kind: obj.KindClass, Name: "fast"}, metav1.DeleteOptions{}))
		w.create(ClassOf("fast", "another.example.com"))
		w.settle()
		require.True(t, landed)
		assert.Empty(t, w.storage.Problems())
		assert.Equal(t, corev1.ClaimPending, w.claim().Status.Phase)
		assert.Nil(t, w.server.Volume(provisioned), "it has lost its storage")
		assert.NotContains(t, w.claim().Finalizers, decision.ProvisioningFinalizer, "nothing is left of the former provisioner")
	}
}

// P2, R2: the first controller is paused before its create, or that is on its way for long. Meanwhile the second binds the claim, and a pod writes. A person retains
// the volume and deletes the claim, and the volume, to keep its storage. Then the create takes effect. Its volume has the policy of the class, and a claim that is gone.
func aCreateLandsAfterAll(t *testing.T) {
	for _, lost := range []bool{false, true} { // so that somebody else finds it first
		w, landed := newProvisioningWorld(t, nil), false
		w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
			if call.Verb != bindingtest.VerbCreate || landed {
				return do()
			}
			landed = true
			w.binds()
			volume := w.server.Volume(provisioned)
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			_, err := w.server.UpdateVolume(t.Context(), volume)
			require.NoError(t, err)
			for _, key := range []obj.Key{DataKey, obj.VolumeKey(provisioned)} {
				require.NoError(t, w.server.Delete(t.Context(), key, metav1.DeleteOptions{}))
				_ = w.second.Settle(t.Context())
			}
			require.Nil(t, w.server.Volume(provisioned))
			if err := do(); err != nil || !lost {
				return err
			}
			return bindingtest.ErrAnswerLost
		})
		_ = bindingtest.Settle(t.Context(), w.first, w.second) // that the answer was lost is an error
		require.True(t, landed)
		assert.Equal(t, corev1.PersistentVolumeReclaimRetain, w.server.Volume(provisioned).Spec.PersistentVolumeReclaimPolicy, "who has seen the earlier one does not wait")
		w.settle()
		assert.Len(t, w.storage.Kept(), 1, "it is there")
		volume := w.server.Volume(provisioned)
		assert.Equal(t, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy)
		assert.Equal(t, corev1.VolumeReleased, volume.Status.Phase)
	}
}

// oddOnce returns what does not fit, the first time.
type oddOnce struct {
	hooks.Provisioner
	called *bool
}

func (o oddOnce) Provision(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	volume, err := o.Provisioner.Provision(ctx, request)
	if !*o.called && err == nil {
		volume.Spec.Capacity = nil
	}
	*o.called = true
	return volume, err
}

// P2, R8: the second controller is paused before its create. The first one deletes the storage again, for what its provisioner
// returned does not fit. The second goes on, and its volume has no storage.
func anotherIsPausedBeforeItsCreate(t *testing.T) {
	called := false
	odd := &oddOnce{called: &called}
	w := newProvisioningWorld(t, odd)
	odd.Provisioner = w.storage
	paused := false
	w.second.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb == bindingtest.VerbCreate && !paused {
			paused = true
			require.NoError(t, w.first.Settle(t.Context()))
			require.Empty(t, w.storage.Kept())
		}
		return do()
	})
	require.NoError(t, w.second.Settle(t.Context()))
	require.True(t, paused)
	w.settle()
	assert.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
	assert.Empty(t, w.storage.Problems())
}
