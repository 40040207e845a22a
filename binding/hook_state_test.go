package binding_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

var (
	errNotFound  = apierrors.NewNotFound(schema.GroupResource{}, "it")
	errExists    = apierrors.NewAlreadyExists(schema.GroupResource{}, "it")
	errConflict  = apierrors.NewConflict(schema.GroupResource{}, "it", errors.New("changed"))
	errForbidden = apierrors.NewForbidden(schema.GroupResource{}, "it", errors.New("not allowed"))
	errLost      = errors.New("connection lost")
)

// toCreate is a sync of provisioningClaim up to the point where its volume is to be stored.
func toCreate(t *testing.T) *talk {
	t.Helper()
	d := newTalk(t, hooked(), dataKey, classOf("fast", own), provisioningClaim()).starts()
	d.says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunProvisioner pv/pvc-uid-1").gets(madeVolume(), nil)
	return d.says("P2 CreateVolume pv/pvc-uid-1")
}

// storedOwn is the volume as somebody stored it.
func storedOwn() *corev1.PersistentVolume {
	return at("50", knownVolume(ownKey.Name, ofClass("fast"), held, onHostPath, inPhase(corev1.VolumePending)))
}

// binds is the rest of a sync whose volume is stored.
func (d *talk) binds() {
	d.Helper()
	d.says("B2 UpdateVolumeStatus pv/pvc-uid-1").stored().says("B3 UpdateClaim pvc/default/data").stored()
	d.says("B4 UpdateClaimStatus pvc/default/data").stored().ends()
}

func TestP2WhatComesOfCreatingTheVolume(t *testing.T) {
	t.Run("P2 B2 done: the binding goes on", func(t *testing.T) {
		d := toCreate(t).stored()
		assert.Equal(t, []string{"Normal ProvisioningSucceeded"}, d.published)
		d.binds()
		assert.Empty(t, d.step.After())
	})
	t.Run("P2 AlreadyExists is success", func(t *testing.T) {
		toCreate(t).gets(nil, errExists).says("B6 Read pv/pvc-uid-1").gets(storedOwn(), nil).binds()
	})
	t.Run("P2 AlreadyExists counts as no failure", func(t *testing.T) {
		d := toCreate(t)
		for range 6 {
			d.gets(nil, errExists).says("B6 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 CreateVolume pv/pvc-uid-1")
		}
	})
	t.Run("P2 AlreadyExists, and it is another's", func(t *testing.T) {
		other := storedOwn()
		refersToOther(other)
		d := toCreate(t).gets(nil, errExists).says("B6 Read pv/pvc-uid-1").gets(other, nil).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
		assert.Positive(t, d.step.After(), "W6")
	})
	for _, failure := range []error{errLost, errForbidden, errConflict} {
		t.Run("P2 B6 it failed and was stored: "+failure.Error(), func(t *testing.T) {
			toCreate(t).gets(nil, failure).says("B6 Read pv/pvc-uid-1").gets(storedOwn(), nil).binds()
		})
		t.Run("P2 B6 it failed and was not stored: "+failure.Error(), func(t *testing.T) {
			d := toCreate(t).gets(nil, failure).says("B6 Read pv/pvc-uid-1").gets(nil, errNotFound)
			d.says("P2 CreateVolume pv/pvc-uid-1").stored().binds()
		})
	}
	t.Run("P2 B6 the outcome stays unknown: it is read before anything else, and provisioned again", func(t *testing.T) {
		d := toCreate(t).gets(nil, errLost).says("B6 Read pv/pvc-uid-1").gets(nil, errLost)
		require.ErrorIs(t, d.step.Err(), errLost)
		assert.Positive(t, d.step.After(), "W6")
		d.starts().says("B6 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
	})
}

// failsThrice is a sync whose volume is not stored three times.
func failsThrice(t *testing.T) *talk {
	t.Helper()
	d := toCreate(t)
	for range 2 {
		d.gets(nil, errForbidden).says("B6 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 CreateVolume pv/pvc-uid-1")
	}
	return d.gets(nil, errForbidden).says("B6 Read pv/pvc-uid-1")
}

func TestP2WhatIsNotStoredIsDeletedAgain(t *testing.T) {
	t.Run("P2 after a live read, and said", func(t *testing.T) {
		d := failsThrice(t).gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		assert.Empty(t, d.published)
		d.gets(nil, nil).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
		assert.Positive(t, d.step.After(), "W6")
	})
	t.Run("P2 not deleted: both are said", func(t *testing.T) {
		d := failsThrice(t).gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1").gets(nil, errBroken).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed", "Warning ProvisioningCleanupFailed"}, d.published)
	})
	t.Run("P2 X2 the third time it was stored: nothing is deleted", func(t *testing.T) {
		failsThrice(t).gets(storedOwn(), nil).binds()
	})
	t.Run("P2 the claim is deleted meanwhile, and the volume not stored: its storage goes", func(t *testing.T) {
		d := toCreate(t)
		d.state.Observe(at("30", provisioningClaim(claimBeingDeleted)))
		d.gets(nil, errLost).says("B6 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		d.gets(nil, nil).says("P2 UpdateClaim pvc/default/data").stored().ends()
	})
	t.Run("P2 V3 the claim is deleted meanwhile, and the volume stored: the storage is the volume's", func(t *testing.T) {
		d := toCreate(t)
		d.state.Observe(at("30", provisioningClaim(claimBeingDeleted)))
		d.stored().says("P2 Read pv/pvc-uid-1").gets(at("101", storedOwn()), nil).says("P2 UpdateClaim pvc/default/data").stored().ends()
		assert.Contains(t, d.step.Next(), ownKey, "V3")
	})
}

func TestP2WhatHappensWhileItsProvisionerRuns(t *testing.T) {
	const successor = "new.example.com"
	both := hooked(func(n *binding.HookNames) { n.Provisioners.Insert(successor); n.Deleters.Insert(successor) })
	running := func(t *testing.T) *talk {
		t.Helper()
		d := newTalk(t, both, dataKey, classOf("fast", own), provisioningClaim()).starts()
		return d.says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
	}
	t.Run("P2 X2 somebody else stored its volume: a bad answer deletes nothing", func(t *testing.T) {
		running(t).gets(nil, nil).says("P2 Read pv/pvc-uid-1").gets(storedOwn(), nil).binds()
	})
	t.Run("P2 nobody else did: what a bad answer is about is deleted", func(t *testing.T) {
		running(t).gets(nil, nil).says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1")
	})
	t.Run("P2 the claim is deleted: so is what was made, after one more live read", func(t *testing.T) {
		d := running(t)
		d.state.Observe(at("30", provisioningClaim(claimBeingDeleted)))
		d.gets(madeVolume(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1").gets(nil, nil)
		d.says("P2 UpdateClaim pvc/default/data").stored().ends()
	})
	t.Run("P1 the class goes", func(t *testing.T) {
		d := running(t)
		d.state.Forget(classOf("fast", own))
		d.gets(madeVolume(), nil).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
	})
	t.Run("P2 the class gets another provisioner, which makes its own", func(t *testing.T) {
		d := running(t)
		d.state.Forget(classOf("fast", own))
		d.state.Observe(classOf("fast", successor))
		d.gets(madeVolume(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1").gets(nil, nil)
		d.says("P2 UpdateClaim pvc/default/data").stored().says("P3 UpdateClaim pvc/default/data").stored()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
		assert.Equal(t, successor, d.step.Action().Hook)
		d.gets(nil, nil).says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, successor, d.step.Action().Hook, "the success of the old one is not its own")
	})
	t.Run("P2 C1 Rh a volume that fits comes and is bound; what was made is deleted", func(t *testing.T) {
		d := running(t)
		d.state.Observe(knownVolume("a", ofClass("fast")))
		d.gets(madeVolume(), nil).says("B1 UpdateVolume pv/a").stored().says("B2 UpdateVolumeStatus pv/a").stored()
		d.says("B3 UpdateClaim pvc/default/data").stored().says("B4 UpdateClaimStatus pvc/default/data").stored()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, "/pool/pvc-uid-1", d.step.Action().Volume.Spec.HostPath.Path, "the answer held through the writes")
		d.gets(nil, nil).says("P2 UpdateClaim pvc/default/data").stored().ends()
	})
}

func TestRhWhenAHookIsAskedAgain(t *testing.T) {
	runs := func(d *talk) *talk {
		d.Helper()
		return d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
	}
	fresh := func(t *testing.T, edits ...claimEdit) *talk {
		return newTalk(t, hooked(), dataKey, classOf("fast", own, delayedClass), provisioningClaim(edits...))
	}
	placed := placedOn("n1")
	t.Run("P2 C3 it fails on a node: once the scheduler has chosen another", func(t *testing.T) {
		d := runs(fresh(t, placed)).gets(nil, errBroken).says("P2 UpdateClaim pvc/default/data").stored().ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed", "Normal WaitForFirstConsumer"}, d.published)
		assert.Zero(t, d.step.After())
	})
	immediate := func(t *testing.T) *talk {
		return newTalk(t, hooked(), dataKey, classOf("fast", own), provisioningClaim())
	}
	t.Run("Rh it is in progress: after d, each time", func(t *testing.T) {
		d := immediate(t)
		for range 3 {
			runs(d).gets(nil, inProgress(7*time.Second)).ends()
			assert.Equal(t, 7*time.Second, d.step.After())
		}
		assert.Empty(t, d.published)
	})
	t.Run("Rh W6 N it fails: by the next sync, later each time, and said once", func(t *testing.T) {
		d, last := immediate(t), time.Duration(0)
		for range 5 {
			runs(d).gets(nil, errBroken).ends()
			assert.Greater(t, d.step.After(), last)
			last = d.step.After()
		}
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
	})
	t.Run("Rh it refused for good: never by itself", func(t *testing.T) {
		assert.Zero(t, runs(immediate(t)).gets(nil, meaning(binding.HookRefused)).ends().step.After())
	})
}

// toDelete is a sync of madeByOwn up to the point where its object is to be deleted.
func toDelete(t *testing.T) *talk {
	t.Helper()
	d := newTalk(t, hooked(), aKey, madeByOwn()).starts().says("R3 Read volumeattachments").gets(nil, nil)
	d.says("R3 Read pv/a").gets(madeByOwn(), nil).says("V3 Read pvc/default/data").gets(nil, errNotFound)
	return d.says("R3 RunDeleter pv/a").gets(nil, nil).says("R3 DeleteVolume pv/a")
}

func TestR3WhatComesOfDeletingTheVolume(t *testing.T) {
	t.Run("R3 done and gone", func(t *testing.T) {
		d := toDelete(t).gets(nil, nil).says("B6 Read pv/a").gets(nil, errNotFound).ends()
		assert.Zero(t, d.step.After())
		assert.Empty(t, d.published)
	})
	t.Run("R3 A5 done, and its finalizer keeps it", func(t *testing.T) {
		d := toDelete(t).gets(nil, nil).says("B6 Read pv/a").gets(at("60", madeByOwn(beingDeleted)), nil)
		d.says("V3 Read pvc/default/data").gets(nil, errNotFound).says("R3 UpdateVolume pv/a").stored().ends()
		assert.Equal(t, "nothing", decides(t, d.state, aKey), "it is gone")
	})
	t.Run("R3 done, and others keep it", func(t *testing.T) {
		kept := at("60", madeByOwn(beingDeleted, volumeFinalizers("theirs")))
		d := toDelete(t).gets(nil, nil).says("B6 Read pv/a").gets(kept, nil)
		if !d.step.Done() {
			d.says("V3 Read pvc/default/data").gets(nil, errNotFound)
		}
		d.ends()
	})
	t.Run("R3 B6 Conflict: a live read, and again on what that says", func(t *testing.T) {
		d := toDelete(t).gets(nil, errConflict).says("B6 Read pv/a").gets(at("60", madeByOwn(labelled("x", "y"))), nil)
		d.says("V3 Read pvc/default/data").gets(nil, errNotFound).says("R3 DeleteVolume pv/a")
		assert.Equal(t, "60", d.step.Action().Volume.ResourceVersion)
	})
	t.Run("R3 Rh Conflict: another volume of its name has storage of its own", func(t *testing.T) {
		d := toDelete(t).gets(nil, errConflict).says("B6 Read pv/a").gets(at("60", madeByOwn(func(v *corev1.PersistentVolume) { v.UID = "uid-9" })), nil)
		d.says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, errNotFound).says("R3 RunDeleter pv/a")
		assert.Equal(t, types.UID("uid-9"), d.step.Action().Volume.UID)
	})
	t.Run("R3 NotFound: a live read proves it", func(t *testing.T) {
		toDelete(t).gets(nil, errNotFound).says("B6 Read pv/a").gets(nil, errNotFound).ends()
	})
	for _, failure := range []error{errLost, errForbidden} {
		t.Run("R3 W6 it failed: "+failure.Error(), func(t *testing.T) {
			d := toDelete(t).gets(nil, failure)
			require.ErrorIs(t, d.step.Err(), failure)
			assert.Positive(t, d.step.After())
		})
	}
	t.Run("R3 B6 Rh nobody knows: a live read first, and the deleter once more, in the next sync", func(t *testing.T) {
		d := toDelete(t).gets(nil, errLost).starts().says("B6 Read pv/a").gets(madeByOwn(), nil)
		d.says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, errNotFound).says("R3 RunDeleter pv/a")
	})
	t.Run("R3 B6 nobody knows, and it is gone", func(t *testing.T) {
		toDelete(t).gets(nil, errLost).starts().says("B6 Read pv/a").gets(nil, errNotFound).ends()
	})
	t.Run("R3 Rh a failure holds through the write of the phase", func(t *testing.T) {
		failed := at("101", madeByOwn(inPhase(corev1.VolumeFailed), func(v *corev1.PersistentVolume) {
			v.Status.Message = "the volume cannot be reclaimed: the disk is broken"
		}))
		d := newTalk(t, hooked(), aKey, madeByOwn()).starts().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("R3 Read pv/a").gets(madeByOwn(), nil).says("V3 Read pvc/default/data").gets(nil, errNotFound)
		d.says("R3 RunDeleter pv/a").gets(nil, errBroken).says("R3 UpdateVolumeStatus pv/a").stored().says("R3 Read pv/a").gets(failed, nil).ends()
		assert.Positive(t, d.step.After(), "W6")
		assert.Equal(t, []string{"Warning VolumeFailedDelete"}, d.published)
		d.starts().says("R3 Read volumeattachments").gets(nil, nil).says("R3 Read pv/a").gets(failed, nil).says("V3 Read pvc/default/data").gets(nil, errNotFound).says("R3 RunDeleter pv/a")
	})
}

func TestRhNeverTwoHooksForOneStorage(t *testing.T) {
	d := newTalk(t, hooked(), dataKey, classOf("fast", own), provisioningClaim()).starts().says("P2 Read pv/pvc-uid-1").gets(nil, errNotFound)
	d.says("P2 RunProvisioner pv/pvc-uid-1")
	d.state.Observe(storedOwn()) // by somebody else
	for _, key := range []obj.Key{ownKey, dataKey} {
		step := d.state.Start(key)
		assert.True(t, step.Done(), "Rh %s", key)
		assert.Empty(t, step.Next())
	}
	d.gets(nil, errBroken).binds()
	assert.Subset(t, d.step.Next(), []obj.Key{ownKey, dataKey}, "Rh who found it at work goes next")
}
