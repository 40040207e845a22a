package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// W8: no hook is called and nothing announced until the calls are over that began before a restore was noticed, whether all has been
// read anew or not.
func TestW8CallsOfOthersAreWaitedFor(t *testing.T) {
	t.Run("W8 a provisioner", func(t *testing.T) {
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim())
		d.state.ObserveRestore()
		d.starts().says("W8 Read pvc/default/data").gets(ProvisioningClaim(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
		assert.Equal(t, 150*time.Second, d.step.After)
		d.state.SetTime(time.Time{}.Add(149 * time.Second))
		assert.Equal(t, time.Second, d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends().step.After)
		d.state.SetTime(time.Time{}.Add(150 * time.Second))
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
	})
	t.Run("W8 a second notice begins anew", func(t *testing.T) {
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim())
		d.state.ObserveRestore()
		d.state.SetTime(time.Time{}.Add(time.Minute))
		d.state.ObserveRestoreAgain()
		d.starts().says("W8 Read pvc/default/data").gets(ProvisioningClaim(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
		assert.Equal(t, 150*time.Second, d.step.After)
	})
	t.Run("W8 what a provisioner has found before is not stored: it is found again", func(t *testing.T) {
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
		d.state.ObserveRestore()
		d.gets(MadeVolume(), nil).says("W8 Read pvc/default/data").gets(ProvisioningClaim(), nil).ends()
		assert.Equal(t, 150*time.Second, d.step.After)
		d.outwaitsCalls().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 RunProvisioner pv/pvc-uid-1")
	})
	t.Run("W8 the deleter of what was made for a claim that is gone, but not the next claim of that name", func(t *testing.T) {
		next := At("60", KnownClaim(OfUID("uid-9")))
		d := whileMaking(t)
		d.state.Observe(next)
		d.state.Observe(KnownVolume("b"))
		d.state.ObserveRestore()
		d.gets(MadeVolume(), nil).says("W8 Read pvc/default/data").gets(next, nil)
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("W8 Read pv/b").gets(KnownVolume("b"), nil).says("B1 UpdateVolume pv/b")
	})
}

// W8, X3: what looks like a restore may be the old reply of a cache. By what it shows no volume is taken from its claim for a while.
func TestW8NoVolumeIsTakenFromItsClaim(t *testing.T) {
	a := obj.VolumeKey("a")
	known := map[obj.Key]obj.Object{a: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), obj.VolumeKey("b"): KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound)), DataKey: KnownClaim(BoundTo("b"))}
	state := engine.New(Unprotected(decision.Options{}), 10)
	for _, object := range known {
		state.Observe(object)
	}
	sync := func(key obj.Key) engine.Step {
		step := state.Start(key)
		for !step.Done && step.Action.Kind == decision.Read {
			step = state.Proceed(key, engine.Reply{Object: known[step.Action.Key]})
		}
		return step
	}
	for _, key := range state.ObserveRestore() {
		step := sync(key)
		require.True(t, step.Done, "%s: %s", key, step.Action)
	}
	assert.Equal(t, 150*time.Second, sync(a).After)
	state.SetTime(time.Time{}.Add(150 * time.Second))
	assert.Equal(t, "V4", sync(a).Action.Rule)
}

// W8: a volume that others had announced, and that a restore shows as if nobody had, is given to nobody until their call is over.
func TestW8WhatWasAnnouncedBeforeIsGivenToNobody(t *testing.T) {
	a := obj.VolumeKey("a")
	free := At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable)))
	announced := At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeReleased)))
	reclaim.Announce(announced, reclaim.Announcement{By: "another", Token: 5, Seconds: 600, Recycles: true})
	for name, notice := range map[string]func(*engine.State){
		"it is told": func(state *engine.State) { state.ObserveRestore() },
		"the read of the volume shows it": func(state *engine.State) {
			state.Recheck(free)
			step := reads(t, state, state.Start(a), a, free)
			require.ErrorIs(t, step.Err, engine.ErrWentBack)
		},
	} {
		t.Run("W8 "+name, func(t *testing.T) {
			state := engine.New(Unprotected(decision.Options{}), 10)
			for _, object := range []obj.Object{announced, KnownClaim()} {
				state.Observe(object)
			}
			notice(state)
			reads(t, state, state.Start(a), a, free)
			require.Equal(t, free, state.Known(a))
			for range 2 {
				step := reads(t, state, state.Start(DataKey), DataKey, KnownClaim())
				require.True(t, step.Done, "%s", step.Action)
				require.NoError(t, step.Err)
				assert.Equal(t, 630*time.Second, step.After, "as long as it said")
				assert.True(t, reads(t, state, state.Start(a), a, free).Done)
			}
			state.SetTime(time.Time{}.Add(630 * time.Second))
			assert.Equal(t, "B1 UpdateVolume pv/a", reads(t, state, state.Start(DataKey), DataKey, KnownClaim()).Action.String()[:20])
		})
	}
}
