package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// toCreate is a sync of provisioningClaim up to the point where its volume is to be stored.
func toCreate(t *testing.T) *talk {
	t.Helper()
	d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
	d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(MadeVolume(), nil)
	return d.says("P2 CreateVolume pv/pvc-uid-1")
}

// storedOwn is the volume as somebody stored it.
func storedOwn() *corev1.PersistentVolume {
	return At("50", KnownVolume(OwnKey.Name, OfClass("fast"), BoundToClaim, OnHostPath, InPhase(corev1.VolumePending), VolumeNote(ProvisionedBy, Own)))
}

// isThere has the claim read, for which a volume is stored.
func (d *talk) isThere() *talk {
	d.Helper()
	return d.says("B2 Read pvc/default/data").gets(d.state.Known(DataKey), nil)
}

// binds is the rest of a sync whose volume is stored.
func (d *talk) binds() {
	d.Helper()
	d.isThere().says("B2 UpdateVolumeStatus pv/pvc-uid-1").stored().says("B3 UpdateClaim pvc/default/data").stored()
	d.says("B4 UpdateClaimStatus pvc/default/data").stored().ends()
}

func TestP2WhatComesOfCreatingTheVolume(t *testing.T) {
	t.Run("P2 B2 done: the binding goes on", func(t *testing.T) {
		d := toCreate(t).stored()
		assert.Equal(t, []string{"Normal ProvisioningSucceeded"}, d.published)
		d.binds()
		assert.Empty(t, d.step.After)
	})
	t.Run("P2 AlreadyExists is success", func(t *testing.T) {
		toCreate(t).gets(nil, ErrExists).says("B6 Read pv/pvc-uid-1").gets(storedOwn(), nil).binds()
	})
	t.Run("P2 AlreadyExists counts as no failure", func(t *testing.T) {
		d := toCreate(t)
		for range 6 {
			d.gets(nil, ErrExists).says("B6 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 CreateVolume pv/pvc-uid-1")
		}
	})
	t.Run("P2 AlreadyExists, and it is another's", func(t *testing.T) {
		other := storedOwn()
		RefersToOther(other)
		d := toCreate(t).gets(nil, ErrExists).says("B6 Read pv/pvc-uid-1").gets(other, nil).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
		assert.Positive(t, d.step.After, "W6")
	})
	for _, failure := range []error{ErrConnection, ErrForbidden, ErrConflict} {
		t.Run("P2 B6 it failed and was stored: "+failure.Error(), func(t *testing.T) {
			toCreate(t).gets(nil, failure).says("B6 Read pv/pvc-uid-1").gets(storedOwn(), nil).binds()
		})
		t.Run("P2 B6 it failed and was not stored: "+failure.Error(), func(t *testing.T) {
			d := toCreate(t).gets(nil, failure).says("B6 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
			d.says("P2 CreateVolume pv/pvc-uid-1").stored().binds()
		})
	}
	t.Run("P2 B6 the outcome stays unknown: it is read before anything else, and provisioned again", func(t *testing.T) {
		d := toCreate(t).gets(nil, ErrConnection).says("B6 Read pv/pvc-uid-1").gets(nil, ErrConnection)
		require.ErrorIs(t, d.step.Err, ErrConnection)
		assert.Positive(t, d.step.After, "W6")
		d.starts().says("B6 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	})
}

// failsThrice is a sync whose volume is not stored three times.
func failsThrice(t *testing.T) *talk {
	t.Helper()
	d := toCreate(t)
	for range 2 {
		d.gets(nil, ErrForbidden).says("B6 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 CreateVolume pv/pvc-uid-1")
	}
	return d.gets(nil, ErrForbidden).says("B6 Read pv/pvc-uid-1")
}

func TestP2WhatIsNotStoredIsDeletedAgain(t *testing.T) {
	t.Run("P2 after a live read, with an event", func(t *testing.T) {
		d := failsThrice(t).gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1")
		assert.Empty(t, d.published)
		d.gets(nil, nil).says("R8 UpdateClaim pvc/default/data").stored().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
		assert.Positive(t, d.step.After, "W6")
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	})
	t.Run("P2 not deleted: an event for both", func(t *testing.T) {
		d := failsThrice(t).gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1").gets(nil, ErrBroken)
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed", "Warning ProvisioningCleanupFailed"}, d.published)
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1") // before it is made anew (R8)
	})
	t.Run("P2 X2 the third time it was stored: nothing is deleted", func(t *testing.T) {
		failsThrice(t).gets(storedOwn(), nil).binds()
	})
	t.Run("P2 the claim is deleted meanwhile, and the volume not stored: its storage goes", func(t *testing.T) {
		d := toCreate(t)
		d.state.Observe(At("30", ProvisioningClaim(ClaimBeingDeleted)))
		d.gets(nil, ErrConnection).says("B6 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1")
		d.gets(nil, nil).says("P2 UpdateClaim pvc/default/data").stored().ends()
	})
	t.Run("P2 V3 the claim is deleted meanwhile, and the volume stored: the storage is the volume's", func(t *testing.T) {
		d := toCreate(t)
		d.state.Observe(At("30", ProvisioningClaim(ClaimBeingDeleted)))
		d.stored().says("P2 Read pv/pvc-uid-1").gets(At("101", storedOwn()), nil).says("P2 UpdateClaim pvc/default/data").stored().ends()
		assert.Contains(t, d.step.Next, OwnKey, "V3")
	})
}

func TestP2WhatHappensWhileItsProvisionerRuns(t *testing.T) {
	const successor = "new.example.com"
	both := Hooked(func(n *hooks.Names) { n.Provisioners.Insert(successor); n.Deleters.Insert(successor) })
	running := func(t *testing.T) *talk {
		t.Helper()
		d := newTalk(t, both, DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
		return d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	}
	t.Run("P2 X2 somebody else stored its volume: a bad answer deletes nothing", func(t *testing.T) {
		running(t).gets(nil, nil).says("P2 Read pv/pvc-uid-1").gets(storedOwn(), nil).binds()
	})
	t.Run("P2 nobody else did: what a bad answer is about is deleted", func(t *testing.T) {
		running(t).gets(nil, nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1")
	})
	t.Run("P2 the claim is deleted: so is what was made, after one more live read", func(t *testing.T) {
		d := running(t)
		d.state.Observe(At("30", ProvisioningClaim(ClaimBeingDeleted)))
		d.gets(MadeVolume(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1").gets(nil, nil)
		d.says("P2 UpdateClaim pvc/default/data").stored().ends()
	})
	t.Run("P1 the class goes", func(t *testing.T) {
		d := running(t)
		d.state.ObserveDeleted(ClassOf("fast", Own))
		d.gets(MadeVolume(), nil).ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
	})
	t.Run("P2 the class gets another provisioner, which makes its own", func(t *testing.T) {
		d := running(t)
		d.state.ObserveDeleted(ClassOf("fast", Own))
		d.state.Observe(ClassOf("fast", successor))
		d.gets(MadeVolume(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1").gets(nil, nil)
		d.says("P2 UpdateClaim pvc/default/data").stored().says("P3 UpdateClaim pvc/default/data").stored()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
		assert.Equal(t, successor, d.step.Action.Hook)
		d.gets(nil, nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, successor, d.step.Action.Hook, "the success of the old one is not its own")
	})
	t.Run("P2 C1 Rh a volume that fits comes and is bound; what was made is deleted", func(t *testing.T) {
		d := running(t)
		d.state.Observe(KnownVolume("a", OfClass("fast")))
		d.gets(MadeVolume(), nil).says("B1 UpdateVolume pv/a").stored().says("B2 UpdateVolumeStatus pv/a").stored()
		d.says("B3 UpdateClaim pvc/default/data").stored().says("B4 UpdateClaimStatus pvc/default/data").stored()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, "/pool/pvc-uid-1", d.step.Action.Volume.Spec.HostPath.Path, "the answer held through the writes")
		d.gets(nil, nil).says("P2 UpdateClaim pvc/default/data").stored().ends()
	})
}

func TestRhWhenAHookIsAskedAgain(t *testing.T) {
	runs := func(d *talk) *talk {
		d.Helper()
		return d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	}
	fresh := func(t *testing.T, edits ...ClaimEdit) *talk {
		return newTalk(t, Hooked(), DataKey, ClassOf("fast", Own, WaitsForFirstConsumer), ProvisioningClaim(edits...))
	}
	placed := PlacedOn("n1")
	t.Run("P2 C3 it fails on a node: once the scheduler has chosen another", func(t *testing.T) {
		d := runs(fresh(t, placed)).gets(nil, ErrBroken).says("P2 UpdateClaim pvc/default/data").stored().ends()
		assert.Equal(t, []string{"Warning ProvisioningFailed", "Normal WaitForFirstConsumer"}, d.published)
		assert.Zero(t, d.step.After)
	})
	immediate := func(t *testing.T) *talk {
		return newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim())
	}
	t.Run("Rh it is in progress: after d, each time", func(t *testing.T) {
		d := immediate(t)
		for range 3 {
			runs(d).gets(nil, InProgress(7*time.Second)).ends()
			assert.Equal(t, 7*time.Second, d.step.After)
		}
		assert.Empty(t, d.published)
	})
	t.Run("Rh W6 N it fails: by the next sync, later each time, with one event", func(t *testing.T) {
		d, last := immediate(t), time.Duration(0)
		for range 5 {
			runs(d).gets(nil, ErrBroken).ends()
			assert.Greater(t, d.step.After, last)
			last = d.step.After
		}
		assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
	})
	t.Run("Rh it refused for good: never by itself", func(t *testing.T) {
		assert.Zero(t, runs(immediate(t)).gets(nil, Meaning(hooks.Refused)).ends().step.After)
	})
}

// toDelete is a sync of madeByOwn up to the point where its object is to be deleted.
func toDelete(t *testing.T) *talk {
	t.Helper()
	d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
	d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again()
	return d.says("R3 RunDeleter pv/a").gets(nil, nil).says("R3 DeleteVolume pv/a")
}

func TestR3WhatComesOfDeletingTheVolume(t *testing.T) {
	t.Run("R3 done and gone", func(t *testing.T) {
		d := toDelete(t).gets(nil, nil).says("B6 Read pv/a").gets(nil, ErrNotFound).ends()
		assert.Zero(t, d.step.After)
		assert.Empty(t, d.published)
	})
	t.Run("R3 A5 done, and its finalizer keeps it", func(t *testing.T) {
		d := toDelete(t).gets(nil, nil).says("B6 Read pv/a").returns(At("60", MadeByOwn(BeingDeleted)))
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 UpdateVolume pv/a").stored().ends()
		assert.Equal(t, "nothing", decides(t, d.state, AKey), "it is gone")
	})
	t.Run("R3 done, and others keep it", func(t *testing.T) {
		d := toDelete(t).gets(nil, nil).says("B6 Read pv/a").returns(At("60", MadeByOwn(BeingDeleted, VolumeFinalizers("theirs"))))
		if !d.step.Done {
			d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound)
		}
		d.says("R3 UpdateVolume pv/a").stored().ends()
	})
	t.Run("R3 B6 Conflict: a live read, and again on what that says", func(t *testing.T) {
		d := toDelete(t).gets(nil, ErrConflict).says("B6 Read pv/a").returns(At("60", MadeByOwn(Labelled("x", "y"))))
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 DeleteVolume pv/a")
		assert.Equal(t, "60", d.step.Action.Volume.ResourceVersion)
	})
	t.Run("R3 Rh Conflict: another volume of its name has storage of its own", func(t *testing.T) {
		d := toDelete(t).gets(nil, ErrConflict).says("B6 Read pv/a").gets(At("60", MadeByOwn(func(v *corev1.PersistentVolume) { v.UID = "uid-9" })), nil)
		d.announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
		assert.Equal(t, types.UID("uid-9"), d.step.Action.Volume.UID)
	})
	t.Run("R3 NotFound: a live read proves it", func(t *testing.T) {
		toDelete(t).gets(nil, ErrNotFound).says("B6 Read pv/a").gets(nil, ErrNotFound).ends()
	})
	for _, failure := range []error{ErrConnection, ErrForbidden} {
		t.Run("R3 W6 it failed: "+failure.Error(), func(t *testing.T) {
			d := toDelete(t).gets(nil, failure)
			require.ErrorIs(t, d.step.Err, failure)
			assert.Positive(t, d.step.After)
		})
	}
	t.Run("R3 B6 Rh nobody knows: a live read first, and the deleter once more, in the next sync", func(t *testing.T) {
		d := toDelete(t).gets(nil, ErrConnection).starts().says("B6 Read pv/a").again().announces()
		d.says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
	t.Run("R3 B6 nobody knows, and it is gone", func(t *testing.T) {
		toDelete(t).gets(nil, ErrConnection).starts().says("B6 Read pv/a").gets(nil, ErrNotFound).ends()
	})
	t.Run("R3 Rh a failure holds through the write of the phase", func(t *testing.T) {
		d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again()
		d.says("R3 RunDeleter pv/a").gets(nil, ErrBroken).says("R3 UpdateVolumeStatus pv/a").stored().says("R3 Read pv/a").again().ends()
		assert.Positive(t, d.step.After, "W6")
		assert.Equal(t, []string{"Warning VolumeFailedDelete"}, d.published)
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
	})
	t.Run("R3 W6 a watch that shows the phase before the reply does not have it called again without its delay", func(t *testing.T) {
		d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again()
		d.says("R3 RunDeleter pv/a").gets(nil, ErrBroken).says("R3 UpdateVolumeStatus pv/a")
		written := d.step.Action.Complete().Volume
		assert.Contains(t, d.state.Observe(At("90", MadeByOwn(Labelled("x", "y")))), AKey, "what another has written")
		assert.NotContains(t, d.state.Observe(At("101", written.DeepCopy())), AKey)
		d.stored().says("R3 Read pv/a").again().ends()
		assert.Positive(t, d.step.After, "W6")
	})
}

func TestRhNeverTwoHooksForOneStorage(t *testing.T) {
	d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
	d.says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	d.state.Observe(storedOwn()) // by somebody else
	for _, key := range []obj.Key{OwnKey, DataKey} {
		step := d.state.Start(key)
		assert.True(t, step.Done, "Rh %s", key)
		assert.Empty(t, step.Next)
	}
	d.gets(nil, ErrBroken).binds()
	assert.Subset(t, d.step.Next, []obj.Key{OwnKey, DataKey}, "Rh who found it at work goes next")
}

// R8, X2: the announcement of a deleter that goes on, or did not return in time, is taken off its volume with the finalizer, as by a manifest of before. It is written again, but
// not where a person removes the annotation alone.
func TestR8ACallThatGoesOnIsAnnouncedAgain(t *testing.T) {
	goesOn := func(t *testing.T, answer error) *talk {
		d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a").gets(nil, answer)
		if !d.step.Done {
			d.says("R3 UpdateVolumeStatus pv/a").stored().says("R3 Read pv/a").again()
		}
		return d.ends()
	}
	edits := func(d *talk, edits ...VolumeEdit) {
		d.version++
		edited := At(fmt.Sprint(d.version), d.state.Known(AKey).(*corev1.PersistentVolume).DeepCopy())
		for _, edit := range edits {
			edit(edited)
		}
		d.state.Observe(edited)
	}
	withoutAnnouncement := func(v *corev1.PersistentVolume) { delete(v.Annotations, reclaim.AnnouncementAnnotation) }
	ofBefore := func(v *corev1.PersistentVolume) {
		withoutAnnouncement(v)
		v.Finalizers = nil
	}
	withoutClaimRef := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }
	for name, answer := range map[string]error{"it goes on": InProgress(0), "it has not returned in time": context.DeadlineExceeded} {
		t.Run("R8 X2 "+name, func(t *testing.T) {
			d := goesOn(t, answer)
			was, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
			edits(d, ofBefore, withoutClaimRef)
			d.starts().says("W8 UpdateVolume pv/a")
			again, _ := reclaim.AnnouncementOf(d.step.Action.Volume)
			assert.Equal(t, was, again)
			d.stored()
			edits(d, withoutAnnouncement)
			assert.NotEqual(t, "W8", d.starts().step.Action.Rule, "who was told says that nobody is at work")
		})
	}
	t.Run("R8 X2 it has not returned when it is to be called again", func(t *testing.T) {
		d := goesOn(t, Meaning(hooks.NotReturned)) // of a call before, as far as this controller knows
		edits(d, ofBefore, withoutClaimRef)
		d.starts().says("W8 UpdateVolume pv/a").stored()
	})
	t.Run("R8 X2 it is announced again, and the volume replaced then", func(t *testing.T) {
		d := goesOn(t, InProgress(0)).starts().announces()
		was, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
		edits(d, ofBefore, withoutClaimRef)
		d.says("R3 Read volumeattachments").gets(nil, nil)
		for !d.step.Done && d.step.Action.Kind == decision.Read {
			d.again()
		}
		d.says("W8 UpdateVolume pv/a")
		again, _ := reclaim.AnnouncementOf(d.step.Action.Volume)
		assert.Equal(t, was, again)
	})
	t.Run("R8 X2 it goes on, and the volume was replaced before it has answered", func(t *testing.T) {
		d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
		edits(d, ofBefore, withoutClaimRef)
		d.gets(nil, InProgress(0)).says("W8 UpdateVolume pv/a").stored()
	})
	t.Run("R8 X2 it fails, and the volume was replaced before", func(t *testing.T) { // without that its announcement had stayed, for a failure may have an effect later
		d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
		edits(d, ofBefore, withoutClaimRef)
		if d.gets(nil, ErrBroken); d.step.Done {
			d.starts()
		}
		d.says("W8 UpdateVolume pv/a").stored()
	})
	for name, edit := range map[string]func(*talk){
		"replaced before": func(d *talk) { edits(d, ofBefore, withoutClaimRef) },
		"no edit before":  func(*talk) {},
	} {
		t.Run("R8 X2 it is taken away, and made again, while it goes on, "+name, func(t *testing.T) {
			for _, answered := range []bool{false, true} {
				d := newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
				d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a")
				if answered {
					d.gets(nil, InProgress(0)).ends()
				}
				was, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
				edit(d)
				d.state.ObserveDeleted(d.state.Known(AKey))
				again := At("500", MadeByOwn(ofBefore, withoutClaimRef))
				again.UID = "uid-again"
				d.state.Observe(again)
				if answered {
					d.starts()
				} else {
					d.gets(nil, InProgress(0))
				}
				for !d.step.Done && d.step.Action.Kind == decision.Read {
					d.gets(nil, ErrNotFound)
				}
				if d.step.Done {
					d.starts()
				}
				d.says("W8 UpdateVolume pv/a")
				written, _ := reclaim.AnnouncementOf(d.step.Action.Volume)
				assert.Equal(t, was, written)
				d.version = 600
				for !d.step.Done {
					if d.step.Action.Writes() {
						d.stored()
					} else {
						require.Equal(t, decision.Read, d.step.Action.Kind, "%s", d.step.Action)
						d.gets(nil, nil)
					}
				}
				edits(d, ofBefore, withoutClaimRef)
				d.starts().says("W8 UpdateVolume pv/a") // also where that is replaced
			}
		})
	}
	t.Run("R8 its announcement is removed, and then it is taken away, and made again", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, withoutAnnouncement)
		d.state.ObserveDeleted(d.state.Known(AKey))
		again := At("500", MadeByOwn(ofBefore, withoutClaimRef))
		again.UID = "uid-again"
		d.state.Observe(again)
		assert.NotEqual(t, "W8", d.starts().step.Action.Rule)
	})
	t.Run("R6 X2 the volume of before has a finalizer of kube-controller-manager's", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, func(v *corev1.PersistentVolume) { v.Finalizers = append(v.Finalizers, reclaim.InTreeFinalizer) })
		edits(d, ofBefore, withoutClaimRef, VolumeFinalizers(reclaim.InTreeFinalizer))
		d.starts().says("W8 UpdateVolume pv/a")
	})
	t.Run("R6 X2 that alone keeps it, for it is being deleted", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, BeingDeleted, VolumeFinalizers(reclaim.InTreeFinalizer))
		edits(d, withoutAnnouncement, RefersTo("default", "data", ""))
		d.starts().says("W8 UpdateVolume pv/a")
	})
	t.Run("R8 X2 another edit comes before it is announced again", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, ofBefore, withoutClaimRef)
		edits(d, RefersTo("shop", "cart", ""))
		d.starts().says("W8 UpdateVolume pv/a")
	})
	t.Run("R8 X2 a person has made it unreadable before", func(t *testing.T) {
		for _, text := range []string{"", "{"} {
			d := goesOn(t, InProgress(0))
			was, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
			edits(d, VolumeNote(reclaim.AnnouncementAnnotation, text))
			edits(d, ofBefore, withoutClaimRef)
			d.starts().says("W8 UpdateVolume pv/a")
			again, _ := reclaim.AnnouncementOf(d.step.Action.Volume)
			assert.Equal(t, was, again)
		}
	})
	t.Run("R8 X2 a manifest has an earlier announcement", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		before, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
		before.Recycles = true
		d.starts().announces()
		was, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
		edits(d, VolumeNote(reclaim.AnnouncementAnnotation, before.String()), withoutClaimRef)
		for !d.step.Done && d.step.Action.Kind == decision.Read {
			d.again()
		}
		d.says("W8 UpdateVolume pv/a")
		again, _ := reclaim.AnnouncementOf(d.step.Action.Volume)
		assert.Equal(t, was, again)
	})
	t.Run("R8 X2 another controller's later call fails before", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		later, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
		later.By, later.Token = "another", later.Token+1
		edits(d, VolumeNote(reclaim.AnnouncementAnnotation, later.String()))
		edits(d, ofBefore, withoutClaimRef)
		d.starts().says("W8 UpdateVolume pv/a")
	})
	t.Run("R8 W8 X2 a person has emptied it, and the server goes back", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		was, _ := reclaim.AnnouncementOf(d.state.Known(AKey))
		edits(d, VolumeNote(reclaim.AnnouncementAnnotation, ""))
		d.state.ObserveRestore()
		d.state.OutwaitCalls()
		d.took(reads(t, d.state, d.starts().step, AKey, At("10", MadeByOwn(ofBefore, withoutClaimRef))))
		d.says("W8 UpdateVolume pv/a")
		again, _ := reclaim.AnnouncementOf(d.step.Action.Volume)
		assert.Equal(t, was, again)
	})
	t.Run("R8 X2 its finalizers and claimRef were removed before", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, withoutClaimRef, VolumeFinalizers())
		edits(d, ofBefore, withoutClaimRef)
		d.starts().says("W8 UpdateVolume pv/a")
	})
	t.Run("R6 X2 it is replaced twice by the same manifest, for it is being deleted", func(t *testing.T) {
		leaving := MadeByOwn(BeingDeleted, VolumeFinalizers(reclaim.InTreeFinalizer))
		d := newTalk(t, Hooked(), AKey, leaving).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a").gets(nil, InProgress(0))
		if !d.step.Done {
			d.says("R3 UpdateVolumeStatus pv/a").stored().says("R3 Read pv/a").again()
		}
		d.ends()
		for range 2 {
			edits(d, withoutAnnouncement, RefersTo("default", "data", ""))
			d.starts().says("W8 UpdateVolume pv/a").stored()
		}
	})
	t.Run("R6 X2 it is replaced by one that has claimRef and policy alone, for it is being deleted", func(t *testing.T) {
		leaving := MadeByOwn(BeingDeleted, VolumeFinalizers(reclaim.InTreeFinalizer))
		d := newTalk(t, Hooked(), AKey, leaving).starts().announces().says("R3 Read volumeattachments").gets(nil, nil)
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again().says("R3 RunDeleter pv/a").gets(nil, InProgress(0)).ends()
		edits(d, withoutAnnouncement, VolumeFinalizers("theirs"))
		d.starts().says("W8 UpdateVolume pv/a")
	})
	t.Run("R8 it is removed alone, from a volume that is being deleted", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, BeingDeleted, func(v *corev1.PersistentVolume) { v.Finalizers = append(v.Finalizers, "theirs") })
		edits(d, withoutAnnouncement)
		assert.NotEqual(t, "W8", d.starts().step.Action.Rule)
	})
	t.Run("R8 it is removed alone, and its finalizer after that", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, withoutAnnouncement)
		edits(d, VolumeFinalizers())
		assert.NotEqual(t, "W8", d.starts().step.Action.Rule)
	})
	t.Run("R8 it is removed alone, with the claimRef", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, withoutAnnouncement, withoutClaimRef)
		assert.NotEqual(t, "W8", d.starts().step.Action.Rule)
	})
	t.Run("R8 X2 its claimRef was removed before", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		edits(d, withoutClaimRef)
		edits(d, ofBefore, RefersTo("shop", "cart", ""))
		d.starts().says("W8 UpdateVolume pv/a")
	})
	t.Run("R8 X2 a later call fails", func(t *testing.T) {
		d := goesOn(t, InProgress(0))
		d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again()
		d.says("R3 RunDeleter pv/a").gets(nil, ErrBroken).says("R3 UpdateVolumeStatus pv/a").stored().says("R3 Read pv/a").again().ends()
		edits(d, ofBefore, withoutClaimRef)
		d.starts().says("W8 UpdateVolume pv/a")
	})
}
