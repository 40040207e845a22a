package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// whileMaking is a sync whose provisioner runs when its claim goes: another controller has let it go.
func whileMaking(t *testing.T) *talk {
	t.Helper()
	d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
	d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	d.state.ObserveDeleted(ProvisioningClaim())
	return d
}

// withOneSlot is a sync whose provisioner runs, where one hook may run at once, and that of a volume that is to be deleted.
func withOneSlot(t *testing.T) (making, other *talk) {
	t.Helper()
	state := engine.New(Unprotected(Hooked()), 1)
	for _, object := range []obj.Object{ClassOf("fast", Own), ProvisioningClaim(), MadeByOwn(RefersTo("default", "logs", "uid-2"))} {
		state.Observe(object)
	}
	making = &talk{T: t, state: state, key: DataKey, version: 100}
	making.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	return making, &talk{T: t, state: state, key: obj.VolumeKey("a"), version: 100}
}

// comesAndGoes has the informers show the volume, and that it is gone.
func (d *talk) comesAndGoes(volume *corev1.PersistentVolume) *talk {
	d.state.Observe(volume)
	d.state.ObserveDeleted(volume)
	return d
}

// isProvenGone is what proves the claim gone.
func (d *talk) isProvenGone() *talk {
	d.Helper()
	return d.says("P2 Read pvc/default/data").gets(nil, ErrNotFound)
}

// leftoverDeleted has the deleter of what was made for the claim give the answer.
func (d *talk) leftoverDeleted(answer error) *talk {
	d.Helper()
	d.isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
	return d.says("P2 RunDeleter pv/pvc-uid-1").gets(nil, answer)
}

func TestP2WhatIsMadeForAClaimThatIsGone(t *testing.T) {
	t.Run("P2 it is deleted, after a live read", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		volume := d.step.Action.Volume
		assert.Equal(t, Own, d.step.Action.Hook)
		assert.Equal(t, types.UID("uid-1"), volume.Spec.ClaimRef.UID)
		assert.NotNil(t, volume.Spec.HostPath, "as it was made")
		d.gets(nil, nil).ends()
	})
	t.Run("P2 V3 only a cache lacked it: what was made is stored", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).says("P2 Read pvc/default/data").gets(ProvisioningClaim(), nil).says("P2 Read pvc/default/data")
		d.gets(ProvisioningClaim(), nil)
		require.ErrorIs(t, d.step.Err, engine.ErrWentBack, "W8")
		d.outwaitsCalls().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	})
	t.Run("P2 so is what may have been made, for its answer was lost", func(t *testing.T) {
		d := whileMaking(t).gets(nil, ErrConnection).isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, "pvc-uid-1", d.step.Action.Volume.Name)
		d.gets(nil, nil).ends()
	})
	t.Run("P2 W6 a deleter that fails is run again with back-off, and it is told", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil)
		for delay := 500 * time.Millisecond; delay < 2*time.Minute; delay *= 2 {
			d.leftoverDeleted(ErrBroken).ends()
			assert.Equal(t, delay, d.step.After)
			d.starts()
		}
		assert.Equal(t, []string{"Warning ProvisioningCleanupFailed"}, d.published, "N once")
		assert.Zero(t, d.leftoverDeleted(nil).ends().step.After)
		d.starts().ends()
	})
	t.Run("R8 P2 W6 so is one whose call would have come too late after the reads that it relies on", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil)
		for delay := 500 * time.Millisecond; delay < 2*time.Minute; delay *= 2 {
			d.leftoverDeleted(Meaning(hooks.TooLate)).ends()
			assert.Equal(t, delay, d.step.After)
			d.starts()
		}
		assert.Equal(t, []string{"Warning ProvisioningCleanupFailed"}, d.published, "N once")
	})
	t.Run("P2 Rh one that is at work is called again when it says", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).leftoverDeleted(InProgress(time.Hour)).ends()
		assert.Equal(t, time.Hour, d.step.After)
		assert.Empty(t, d.published)
		d.starts().leftoverDeleted(InProgress(0)).ends()
		assert.Equal(t, 500*time.Millisecond, d.step.After)
		assert.Zero(t, d.starts().leftoverDeleted(nil).ends().step.After)
	})
	t.Run("P2 Rh one that refuses for good is not called again, and it is told", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).leftoverDeleted(Meaning(hooks.Refused)).ends()
		assert.Zero(t, d.step.After)
		assert.Equal(t, []string{"Warning ProvisioningCleanupFailed"}, d.published)
		d.starts().ends()
	})
	t.Run("P2 meanwhile a new claim of its name goes its own way", func(t *testing.T) {
		d := whileMaking(t)
		d.state.Observe(At("60", ProvisioningClaim(OfUID("uid-9"))))
		d.gets(MadeVolume(), nil).says("P2 Read pvc/default/data").gets(At("60", ProvisioningClaim(OfUID("uid-9"))), nil)
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1").gets(nil, InProgress(time.Minute))
		d.says("P2 Read pv/pvc-uid-9").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-9").gets(nil, InProgress(time.Hour)).ends()
		assert.Equal(t, time.Minute, d.step.After, "the sooner of both")
	})
	t.Run("P2 Rh it waits for its turn, if others wait for the slot", func(t *testing.T) {
		d, e := withOneSlot(t)
		e.starts().ends()
		d.state.Observe(At("60", ProvisioningClaim(OfUID("uid-9"))))
		d.gets(nil, InProgress(time.Hour)).says("P2 Read pvc/default/data").gets(At("60", ProvisioningClaim(OfUID("uid-9"))), nil)
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1").gets(nil, nil)
		d.says("P2 Read pv/pvc-uid-9").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().ends()
		assert.Subset(t, d.step.Next, []obj.Key{e.key, DataKey})
		e.starts().says("R8 UpdateVolume pv/a")
		d.starts().says("P2 Read pv/pvc-uid-9").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().ends()
		e.gets(nil, ErrBroken)
		d.starts().says("P2 Read pv/pvc-uid-9").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-9")
	})
	t.Run("P2 X2 that there was no volume before the claim went proves nothing of one that was retained", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).says("P2 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, "70")).says("P2 Read pv/pvc-uid-1")
		assert.Positive(t, d.gets(nil, AbsentAsOf(OwnKey, "69")).ends().step.After, "W6")
		d.starts().says("P2 Read pvc/default/data").gets(nil, AbsentAsOf(DataKey, "70")).says("P2 Read pv/pvc-uid-1").gets(nil, AbsentAsOf(OwnKey, "70")).says("P2 RunDeleter pv/pvc-uid-1")
	})
	t.Run("P2 X2 nor before the claim was as provisioner was given it", func(t *testing.T) {
		version := ProvisioningClaim().ResourceVersion
		d := whileMaking(t).gets(MadeVolume(), nil).isProvenGone().says("P2 Read pv/pvc-uid-1")
		d.gets(nil, AbsentAsOf(OwnKey, "1")).ends()
		require.NotEqual(t, "1", version)
		d.starts().isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, AbsentAsOf(OwnKey, version)).says("P2 RunDeleter pv/pvc-uid-1")
	})
	t.Run("P2 X2 a volume that is seen to stand for it meanwhile has its say", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).leftoverDeleted(InProgress(time.Hour)).ends()
		d.comesAndGoes(storedOwn()).starts().ends()
	})
	t.Run("P2 X2 for as long as that is needed", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).leftoverDeleted(InProgress(time.Hour)).ends().comesAndGoes(storedOwn())
		for i := range 3 * 4096 { // more than are remembered
			d.comesAndGoes(KnownVolume(fmt.Sprint("disk-", i), func(v *corev1.PersistentVolume) { v.UID = types.UID(v.Name) }))
		}
		d.starts().ends()
	})
	t.Run("P2 X2 so has one that came and went while its provisioner ran", func(t *testing.T) {
		whileMaking(t).comesAndGoes(storedOwn()).gets(MadeVolume(), nil).ends()
	})
	t.Run("P2 X2 or before, where only a cache has the claim still", func(t *testing.T) {
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).comesAndGoes(storedOwn()).starts()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
		d.state.ObserveDeleted(ProvisioningClaim())
		d.gets(MadeVolume(), nil).ends()
	})
	t.Run("P2 X2 W8 or before the server went back", func(t *testing.T) {
		d := whileMaking(t).comesAndGoes(storedOwn())
		d.state.ObserveRestore()
		d.gets(MadeVolume(), nil).ends()
	})
	t.Run("P2 Rh its deleter has the slot that the provisioner had, though others wait for it", func(t *testing.T) {
		d, e := withOneSlot(t)
		e.starts().ends()
		d.state.ObserveDeleted(ProvisioningClaim())
		d.gets(MadeVolume(), nil).leftoverDeleted(nil).ends()
		assert.Contains(t, d.step.Next, e.key)
		e.starts().says("R8 UpdateVolume pv/a")
	})
	t.Run("P2 Rh so has that of what does not fit its claim", func(t *testing.T) {
		d, e := withOneSlot(t)
		e.starts().ends()
		d.gets(MadeVolume(Sized("1Gi")), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
		d.announcesUnstored().says("P2 RunDeleter pv/pvc-uid-1")
	})
	t.Run("P2 a sync that finds no slot for the deleter leaves it to the next", func(t *testing.T) {
		d, e := withOneSlot(t)
		d.state.ObserveDeleted(ProvisioningClaim())
		d.gets(MadeVolume(), nil).says("P2 Read pvc/default/data").gets(nil, ErrBroken)
		require.ErrorIs(t, d.step.Err, ErrBroken)
		e.starts().says("R8 UpdateVolume pv/a")
		d.starts().isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
		e.gets(nil, ErrBroken)
		require.True(t, e.step.Done)
		assert.Contains(t, e.step.Next, DataKey)
		d.starts().leftoverDeleted(nil).ends()
	})
	t.Run("P2 a sync that another one blocks leaves it to the next", func(t *testing.T) {
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim(), KnownVolume("disk", InPhase(corev1.VolumePending))).starts()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
		d.state.Start(obj.VolumeKey("disk"))
		d.state.Observe(At("60", ProvisioningClaim(Naming("disk"))))
		d.gets(MadeVolume(), nil).ends()
		d.state.ObserveDeleted(ProvisioningClaim())
		d.starts().leftoverDeleted(nil).ends()
	})
	t.Run("P2 a volume that stands for it is reclaimed as any other", func(t *testing.T) {
		whileMaking(t).gets(MadeVolume(), nil).isProvenGone().says("P2 Read pv/pvc-uid-1").gets(storedOwn(), nil).ends()
	})
	t.Run("P2 before anything is done for a new claim of its name", func(t *testing.T) {
		d := whileMaking(t)
		d.state.Observe(At("60", ProvisioningClaim(OfUID("uid-9"))))
		d.gets(MadeVolume(), nil).says("P2 Read pvc/default/data").gets(At("60", ProvisioningClaim(OfUID("uid-9"))), nil)
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		d.gets(nil, nil).says("P2 Read pv/pvc-uid-9").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-9")
	})
	t.Run("P2 X2 a volume that stood for it has had its say, Retain perhaps", func(t *testing.T) {
		for name, stores := range map[string]func(*talk) *talk{
			"stored": (*talk).stored,
			"stored, and the answer lost": func(d *talk) *talk {
				return d.gets(nil, ErrConnection).says("B6 Read pv/pvc-uid-1").gets(storedOwn(), nil)
			},
			"stored by somebody else": func(d *talk) *talk {
				return d.gets(nil, ErrExists).says("B6 Read pv/pvc-uid-1").gets(storedOwn(), nil)
			},
		} {
			t.Run(name, func(t *testing.T) {
				d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
				d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(MadeVolume(), nil)
				d = stores(d.says("P2 CreateVolume pv/pvc-uid-1")).isThere().says("B2 UpdateVolumeStatus pv/pvc-uid-1").stored()
				d.says("B3 UpdateClaim pvc/default/data").stored().says("B4 UpdateClaimStatus pvc/default/data")
				d.state.ObserveDeleted(d.state.Known(OwnKey))
				d.state.ObserveDeleted(d.state.Known(DataKey))
				d.gets(nil, ErrNotFound).says("B6 Read pvc/default/data").gets(nil, ErrNotFound).ends()
			})
			t.Run(name+", and gone with its storage before it is bound", func(t *testing.T) {
				d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
				d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1").gets(MadeVolume(), nil)
				stores(d.says("P2 CreateVolume pv/pvc-uid-1")).isThere().says("B2 UpdateVolumeStatus pv/pvc-uid-1")
				d.state.ObserveDeleted(d.state.Known(OwnKey))
				d.gets(nil, ErrNotFound).says("B6 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
			})
		}
	})
}
