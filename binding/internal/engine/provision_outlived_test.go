package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
)

// whileMaking is a sync whose provisioner runs when its claim goes: another controller has let it go.
func whileMaking(t *testing.T) *talk {
	t.Helper()
	d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
	d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
	d.state.ObserveDeleted(ProvisioningClaim())
	return d
}

// isProvenGone is what proves the claim gone.
func (d *talk) isProvenGone() *talk {
	d.Helper()
	return d.says("P2 Read pvc/default/data").gets(nil, ErrNotFound)
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
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
	})
	t.Run("P2 so is what may have been made, for its answer was lost", func(t *testing.T) {
		d := whileMaking(t).gets(nil, ErrConnection).isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		assert.Equal(t, "pvc-uid-1", d.step.Action.Volume.Name)
		d.gets(nil, nil).ends()
	})
	t.Run("P2 a deleter that fails is run three times", func(t *testing.T) {
		d := whileMaking(t).gets(MadeVolume(), nil).isProvenGone().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
		for range 2 {
			d.says("P2 RunDeleter pv/pvc-uid-1").gets(nil, ErrBroken)
			d.says("P2 Read pvc/default/data").gets(nil, ErrNotFound).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
		}
		d.says("P2 RunDeleter pv/pvc-uid-1").gets(nil, ErrBroken).ends()
	})
	t.Run("P2 a volume that stands for it is reclaimed as any other", func(t *testing.T) {
		whileMaking(t).gets(MadeVolume(), nil).isProvenGone().says("P2 Read pv/pvc-uid-1").gets(storedOwn(), nil).ends()
	})
	t.Run("P2 before anything is done for a new claim of its name", func(t *testing.T) {
		d := whileMaking(t)
		d.state.Observe(At("60", ProvisioningClaim(OfUID("uid-9"))))
		d.gets(MadeVolume(), nil).says("P2 Read pvc/default/data").gets(At("60", ProvisioningClaim(OfUID("uid-9"))), nil)
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunDeleter pv/pvc-uid-1")
		d.gets(nil, nil).says("P2 Read pv/pvc-uid-9").gets(nil, ErrNotFound).says("P2 RunProvisioner pv/pvc-uid-9")
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
				d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunProvisioner pv/pvc-uid-1").gets(MadeVolume(), nil)
				d = stores(d.says("P2 CreateVolume pv/pvc-uid-1")).says("B2 UpdateVolumeStatus pv/pvc-uid-1").stored()
				d.says("B3 UpdateClaim pvc/default/data").stored().says("B4 UpdateClaimStatus pvc/default/data")
				d.state.ObserveDeleted(d.state.Known(OwnKey))
				d.state.ObserveDeleted(d.state.Known(DataKey))
				d.gets(nil, ErrNotFound).says("B6 Read pvc/default/data").gets(nil, ErrNotFound).ends()
			})
		}
	})
}
