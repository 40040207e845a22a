package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
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
		assert.Equal(t, time.Second, d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().ends().step.After)
		d.state.SetTime(time.Time{}.Add(150 * time.Second))
		d.starts().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	})
	for policy, waits := range map[corev1.PersistentVolumeReclaimPolicy]bool{corev1.PersistentVolumeReclaimRecycle: true, corev1.PersistentVolumeReclaimDelete: true, corev1.PersistentVolumeReclaimRetain: false} {
		t.Run("W8 who reclaims a volume that is free by it: "+string(policy), func(t *testing.T) {
			free := KnownVolume("a", InPhase(corev1.VolumeAvailable), WithPolicy(policy))
			d := newTalk(t, decision.Options{}, DataKey, free, KnownClaim())
			d.state.ObserveRestore()
			d.starts().says("W8 Read pvc/default/data").gets(KnownClaim(), nil)
			if waits {
				d.ends()
				assert.Equal(t, 150*time.Second, d.step.After)
				d.outwaitsCalls()
			}
			d.says("W8 Read pv/a").gets(free, nil).says("B1 UpdateVolume pv/a")
		})
	}
	t.Run("W8 C11 nor does who has it: its claimRef is written again at once", func(t *testing.T) {
		dropped := KnownVolume("a", InPhase(corev1.VolumeBound), WithPolicy(corev1.PersistentVolumeReclaimDelete))
		d := newTalk(t, decision.Options{}, DataKey, dropped, KnownClaim(BoundTo("a")))
		d.state.ObserveRestore()
		d.starts().says("W8 Read pvc/default/data").gets(KnownClaim(BoundTo("a")), nil).says("W8 Read pv/a").gets(dropped, nil).says("B1 UpdateVolume pv/a")
	})
	t.Run("W8 what a provisioner has found before is found again, however late", func(t *testing.T) {
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), ProvisioningClaim()).starts()
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
		d.state.ObserveRestore()
		d.state.OutwaitCalls()
		d.gets(MadeVolume(), nil).says("W8 Read pvc/default/data").gets(ProvisioningClaim(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound)
		d.says("P2 RunProvisioner pv/pvc-uid-1").gets(MadeVolume(), nil).says("P2 CreateVolume pv/pvc-uid-1")
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
		d.says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
		d.state.ObserveRestore()
		d.gets(MadeVolume(), nil).says("W8 Read pvc/default/data").gets(ProvisioningClaim(), nil).says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).ends()
		assert.Equal(t, 150*time.Second, d.step.After)
		d.outwaitsCalls().says("P2 Read pv/pvc-uid-1").gets(nil, ErrNotFound).says("P2 Read pvc/default/data").again().says("P2 RunProvisioner pv/pvc-uid-1")
	})
	t.Run("W8 what was made for a claim that is gone is not deleted, nor does the next claim of that name wait", func(t *testing.T) {
		next := At("60", KnownClaim(OfUID("uid-9")))
		d := whileMaking(t)
		d.state.Observe(next)
		d.state.Observe(KnownVolume("b"))
		d.state.ObserveRestore()
		d.gets(MadeVolume(), nil).says("W8 Read pvc/default/data").gets(next, nil)
		d.says("W8 Read pv/b").gets(KnownVolume("b"), nil).says("B1 UpdateVolume pv/b")
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

// W8, R8, X3, R2: what the server has lost of a volume, and a controller knows, is given back: whoever was at work on it may be for
// long, whose data is on it nobody else can tell, and what was to be retained stays.
func TestW8WhatTheServerHasLostIsGivenBack(t *testing.T) {
	a, other := obj.VolumeKey("a"), &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "other"}
	volume := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", append([]VolumeEdit{InPhase(corev1.VolumeAvailable)}, edits...)...))
	}
	announced := func(v *corev1.PersistentVolume) {
		reclaim.Announce(v, reclaim.Announcement{By: "another", Token: 5, Seconds: 600, Recycles: true})
	}
	scrubbed := func(v *corev1.PersistentVolume) {
		reclaim.Announce(v, reclaim.Announcement{By: "another", Token: 4, Recycles: true})
	}
	ours, remade := VolumeNote(BoundBy, "yes"), func(v *corev1.PersistentVolume) { v.UID = "uid-remade" }
	free, bound := volume("10"), volume("20", RefersToOther, InPhase(corev1.VolumeBound), ours)
	removed := volume("10", WithPolicy(corev1.PersistentVolumeReclaimDelete))
	recycled := WithPolicy(corev1.PersistentVolumeReclaimRecycle)
	scrubs := volume("10", BoundToClaim, InPhase(corev1.VolumeReleased), recycled)
	reserved := volume("10", RefersTo("default", "data", ""), recycled)
	owner := KnownClaim(Named("other"), BoundTo("a"), func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-2" })
	for _, test := range []struct {
		name        string
		former, now *corev1.PersistentVolume
		by          obj.Key                 // whose sync it is
		want        *corev1.ObjectReference // the claimRef
		notes       []string                // the annotations of the write
	}{
		{"W8 R8 its announcement", volume("20", announced), free, a, nil, []string{reclaim.AnnouncementAnnotation}},
		{"W8 R8 before it is given to a claim", volume("20", announced), free, DataKey, nil, []string{reclaim.AnnouncementAnnotation}},
		{"W8 R8 of a volume that was made again since the backup", volume("20", announced, remade), free, a, nil, []string{reclaim.AnnouncementAnnotation}},
		{"W8 R8 one that is later than that of the backup", volume("20", announced), volume("10", scrubbed), a, nil, []string{reclaim.AnnouncementAnnotation}},
		{"W8 X3 its claimRef", bound, free, a, other, nil},
		{"W8 X3 before it is given to another claim", bound, free, DataKey, other, nil},
		{"W8 X3 of a volume that was made again since the backup", volume("20", RefersToOther, InPhase(corev1.VolumeBound), ours, remade), free, a, other, nil},
		{"W8 V4 a reservation", volume("20", RefersTo("default", "other", "")), free, a, other, nil},
		{"W8 X3 where it was Released it is reserved, and destroyed by nobody", volume("20", RefersToOther, InPhase(corev1.VolumeReleased), ours), free, a, other, nil},
		{"W8 X3 and where a person may have freed it since", volume("20", RefersToOther, InPhase(corev1.VolumeReleased), ours), volume("30"), a, other, nil},
		{"W8 R2 its reclaim policy too", volume("20", RefersToOther, InPhase(corev1.VolumeReleased), ours), removed, a, other, nil},
		{"W8 R2 its reclaim policy alone", volume("20"), removed, a, nil, nil},
		{"W8 X3 Retain, where a later claim had what is to be scrubbed", volume("20", RefersToOther, InPhase(corev1.VolumeBound), recycled), scrubs, a, scrubs.Spec.ClaimRef, nil},
		{"W8 X3 or was to have it", volume("20", RefersTo("default", "other", ""), recycled), scrubs, a, scrubs.Spec.ClaimRef, nil},
		{"W8 X3 or had it, made again", volume("20", RefersToOther, InPhase(corev1.VolumeBound), recycled, remade), scrubs, a, scrubs.Spec.ClaimRef, nil},
		{"W8 X3 or had what is reserved by name", volume("20", RefersToOther, InPhase(corev1.VolumeBound), recycled), reserved, a, reserved.Spec.ClaimRef, nil},
		{"W8 X3 or the next one of the same name", volume("20", RefersTo("default", "data", ""), recycled), scrubs, a, scrubs.Spec.ClaimRef, nil},
	} {
		there := []obj.Object{test.now}
		if test.by == DataKey {
			there = append(there, KnownClaim(Naming("a")))
		}
		for how, notice := range map[string]func(*engine.State){
			"told":                 func(state *engine.State) { state.ObserveRestore() },
			"told, its claim late": func(state *engine.State) { state.Observe(owner); state.ObserveRestore() },
			"seen": func(state *engine.State) {
				state.Recheck(test.now)
				require.ErrorIs(t, reads(t, state, state.Start(a), a, test.now).Err, engine.ErrWentBack)
			},
			"listed anew before": func(state *engine.State) {
				state.ObserveDeleted(test.former)
				state.ObserveRestore()
				state.Observe(test.now)
			},
			"told, and listed anew": func(state *engine.State) {
				state.ObserveRestore()
				state.ObserveDeleted(test.former)
				state.Observe(test.now)
			},
		} {
			if how != "seen" && test.by == DataKey || how != "told" && !obj.Older(test.now, test.former) || how == "told, its claim late" && test.want == nil {
				continue // who is to get it has not read it yet; nothing shows it; nobody had it
			}
			t.Run(test.name+", "+how, func(t *testing.T) {
				state := engine.New(Unprotected(Hooked()), 10)
				for _, object := range append([]obj.Object{test.former}, there[1:]...) {
					state.Observe(object)
				}
				notice(state)
				state.OutwaitCalls()
				step := reads(t, state, state.Start(test.by), test.by, there...)
				require.False(t, step.Done)
				require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
				written := step.Action.Complete().Volume
				assert.Equal(t, test.want, written.Spec.ClaimRef)
				assert.Equal(t, corev1.PersistentVolumeReclaimRetain, written.Spec.PersistentVolumeReclaimPolicy)
				assert.ElementsMatch(t, test.notes, slices.Collect(maps.Keys(written.Annotations)))
			})
		}
	}
}

// W8, X3: the backup shows a volume without claimRef, and a claim that is Bound to it, which has it again (C11). What another claim has written since is
// not destroyed with that one.
func TestW8AnOwnerOfTheBackupHasWhatALaterClaimHad(t *testing.T) {
	a, owner := obj.VolumeKey("a"), At("5", KnownClaim(BoundTo("a")))
	for name, test := range map[string]struct {
		had    VolumeEdit
		policy corev1.PersistentVolumeReclaimPolicy
	}{
		"another claim had it": {RefersToOther, corev1.PersistentVolumeReclaimRetain},
		"it had it itself":     {BoundToClaim, corev1.PersistentVolumeReclaimRecycle},
	} {
		for _, by := range []obj.Key{a, DataKey} {
			t.Run(fmt.Sprintf("W8 X3 %s, by %s", name, by), func(t *testing.T) {
				now := At("10", KnownVolume("a", InPhase(corev1.VolumeBound), WithPolicy(corev1.PersistentVolumeReclaimRecycle)))
				state := engine.New(Unprotected(Hooked()), 10)
				state.Observe(At("20", KnownVolume("a", test.had, InPhase(corev1.VolumeBound), WithPolicy(corev1.PersistentVolumeReclaimRecycle))))
				state.ObserveRestore()
				state.OutwaitCalls()
				state.Observe(owner)
				for range 8 {
					for _, key := range []obj.Key{by, a, DataKey} {
						step := reads(t, state, state.Start(key), key, now, owner)
						for !step.Done {
							if step.Action.Volume != nil {
								now = At(fmt.Sprint(len(now.ResourceVersion))+now.ResourceVersion, step.Action.Complete().Volume)
								require.True(t, now.Spec.ClaimRef == nil || now.Spec.PersistentVolumeReclaimPolicy == test.policy, "a crash here leaves it to be reclaimed")
								step = reads(t, state, state.Proceed(key, engine.Reply{Object: now}), key, now, owner)
								continue
							}
							step = reads(t, state, state.Proceed(key, engine.Reply{Err: ErrConnection}), key, now, owner)
						}
					}
				}
				assert.Equal(t, DataKey, obj.ReferencedClaim(now))
				assert.Equal(t, test.policy, now.Spec.PersistentVolumeReclaimPolicy)
			})
		}
	}
}

// W8, V3, X3: a slip in its claimRef, of before a restore or after it, hides the claim of a volume. That claim has gone, and the restore brings it back, which a
// list shows, and nothing has read yet. The volume is not Released before it is.
func TestW8ASlipHidesNoClaimThatIsBack(t *testing.T) {
	had := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), DeletedPolicy))
	slip := func(version string) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", RefersTo("default", "dtaa", "uid-1"), InPhase(corev1.VolumeBound), DeletedPolicy))
	}
	back := At("6", KnownClaim(BoundTo("a")))
	for name, test := range map[string]struct {
		before, after *corev1.PersistentVolume
		outwait       bool
	}{
		"the slip is of before, and the claim shown late": {before: slip("7"), after: slip("7"), outwait: true},
		"the slip comes after":                            {after: slip("8")},
	} {
		t.Run("W8 V3 "+name, func(t *testing.T) {
			state := engine.New(Unprotected(decision.Options{}), 10)
			for _, object := range []obj.Object{had, back} {
				state.Observe(object)
			}
			if test.before != nil {
				state.Observe(test.before)
			}
			state.ObserveDeleted(back)
			state.Observe(At("9", state.Known(AKey).(*corev1.PersistentVolume).DeepCopy()))
			state.ObserveRestore()
			if test.outwait {
				state.OutwaitCalls()
			}
			state.Observe(back)
			step := state.Start(AKey)
			for range 3 { // the first is behind, or what it shows is, and ends
				step = reads(t, state, step, AKey, test.after, back)
				require.True(t, step.Done, "%s", step.Action)
				step = state.Start(AKey)
			}
			reads(t, state, state.Start(DataKey), DataKey, back, test.after)
			assert.NotNil(t, state.Known(DataKey))
			step = reads(t, state, step, AKey, test.after, back)
			require.True(t, step.Done, "%s", step.Action)
		})
	}
}

// W8, X3: a backup shows a volume with the claimRef of an earlier claim that is gone, and an older backup, which is restored after that, with none. It is kept
// for the claim that had it last, of whom the first backup did not know. Where the earlier claim was back, and had it again, it is kept for that.
func TestW8ASecondBackupIsOlder(t *testing.T) {
	volume := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", edits...))
	}
	for name, back := range map[string]*corev1.PersistentVolumeClaim{"the earlier claim is gone": nil, "it is back": At("19", KnownClaim(BoundTo("a")))} {
		t.Run("W8 X3 "+name, func(t *testing.T) {
			state, kept := engine.New(Unprotected(Hooked()), 10), obj.ClaimKey("default", "other")
			state.Observe(volume("30", RefersToOther, InPhase(corev1.VolumeBound)))
			there := []obj.Object{volume("20", BoundToClaim, InPhase(corev1.VolumeReleased), WithPolicy(corev1.PersistentVolumeReclaimRetain))}
			if back != nil {
				kept, there = DataKey, append(there, back)
				state.Observe(back)
			}
			state.ObserveRestore()
			state.OutwaitCalls()
			for range 2 {
				for step := reads(t, state, state.Start(AKey), AKey, there...); !step.Done; {
					require.Equal(t, decision.UpdateVolumeStatus, step.Action.Kind, "%s", step.Action)
					there[0] = At("21", step.Action.Complete().Volume)
					step = reads(t, state, state.Proceed(AKey, engine.Reply{Object: there[0]}), AKey, there...)
				}
			}
			state.ObserveRestore()
			state.OutwaitCalls()

			step := reads(t, state, state.Start(AKey), AKey, volume("10", InPhase(corev1.VolumeAvailable)))

			require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind), "%s", step.Action)
			assert.Equal(t, kept, obj.ReferencedClaim(step.Action.Volume))
		})
	}
}

// W8, M2: a restore takes back which volume a claim has lost, and its tenant names another one. It owns nothing of that.
func TestM2W8AClaimOwnsWhatItHasLostAlone(t *testing.T) {
	had := At("20", KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound)))
	of := KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("a"))
	state := engine.New(Unprotected(decision.Options{}), 10)
	for _, object := range []obj.Object{At("10", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound))), At("11", of), had, At("21", KnownClaim(BoundTo("b")))} {
		state.Observe(object)
	}
	state.ObserveDeleted(had)
	state.Observe(At("30", KnownClaim(BoundTo("b"), ClaimPhase(corev1.ClaimLost))))
	state.ObserveRestore()
	back := At("9", KnownClaim())
	for _, key := range []obj.Key{DataKey, obj.VolumeKey("a"), obj.KeyOf(of)} {
		require.True(t, reads(t, state, state.Start(key), key, back, At("10", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound))), At("11", of)).Done, key)
	}
	state.Observe(At("40", KnownClaim(Naming("a"))))
	slip := At("41", KnownVolume("a", InPhase(corev1.VolumeBound)))
	state.Observe(slip)
	step := reads(t, state, state.Start(obj.KeyOf(of)), obj.KeyOf(of), slip, At("11", of), At("40", KnownClaim(Naming("a"))))
	require.False(t, step.Done)
	assert.Equal(t, "B1 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind), "it has its claimRef again")
}

// W8, X2: a person has taken the UID out of the claimRef of a volume that a later claim is Bound to, and the backup shows it Bound to an earlier one. Who had it is
// what was known when the server went back, be the earlier claim read before the volume.
func TestW8WhoHadAVolumeIsWhoWasKnownToHaveIt(t *testing.T) {
	later, back := At("31", KnownClaim(BoundTo("a"), Named("later"), OfUID("uid-later"))), At("6", KnownClaim(BoundTo("a")))
	volume := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), DeletedPolicy, OnHostPath))
	for name, order := range map[string][]obj.Key{"the volume is read first": {AKey, DataKey}, "the claim is read first": {DataKey, AKey}} {
		t.Run("W8 X2 "+name, func(t *testing.T) {
			d := newTalk(t, Hooked(), AKey, At("30", KnownVolume("a", RefersTo("default", "later", ""), InPhase(corev1.VolumeAvailable), DeletedPolicy, OnHostPath)), later)
			d.state.ObserveRestore()
			d.state.ObserveDeleted(later)
			retained := false
			d.state.Recheck(back)
			for _, d.key = range order {
				for d.took(reads(t, d.state, d.starts().step, d.key, volume, back)); !d.step.Done; d.gets(nil, ErrConnection) {
					retained = retained || d.step.Action.Kind == decision.UpdateVolume && d.step.Action.Complete().Volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
				}
			}
			assert.True(t, retained)
		})
	}
}

// W8, R7: Retain that was set since the backup stays, where that shows a transfer which is to end with another policy. A transfer that went on
// since the backup is no such case.
func TestW8RetainOutlivesATransferOfTheBackup(t *testing.T) {
	a := obj.VolumeKey("a")
	transferred := func(policy corev1.PersistentVolumeReclaimPolicy) VolumeEdit {
		return VolumeNote(reclaim.TransferAnnotation, fmt.Sprintf(`{"from": {"namespace": "shop", "name": "data", "uid": "uid-shop"},
			"to": {"metadata": {"namespace": "default", "name": "data"}}, "reclaimPolicy": %q, "volume": %q}`, policy, KnownVolume("a").UID))
	}
	volume := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", append([]VolumeEdit{InPhase(corev1.VolumeAvailable), RefersToOther}, edits...)...))
	}
	for _, test := range []struct {
		name   string
		former *corev1.PersistentVolume
		after  corev1.PersistentVolumeReclaimPolicy
	}{
		{"the transfer had ended", volume("20"), corev1.PersistentVolumeReclaimRetain},
		{"it was under way", volume("20", transferred(corev1.PersistentVolumeReclaimRetain)), corev1.PersistentVolumeReclaimRetain},
		{"another claim has had it since", volume("20", transferred(corev1.PersistentVolumeReclaimDelete), RefersTo("default", "next", "uid-next")), corev1.PersistentVolumeReclaimRetain},
		{"it was under way, and Retain not set", volume("20", transferred(corev1.PersistentVolumeReclaimDelete)), corev1.PersistentVolumeReclaimDelete},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := volume("10", transferred(corev1.PersistentVolumeReclaimDelete))
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(test.former)
			state.ObserveRestore()
			state.OutwaitCalls()

			step := reads(t, state, state.Start(a), a, now)

			if written := step.Action.Volume; step.Action.Rule == "W8" {
				now = written
			}
			assert.Equal(t, test.after, reclaim.PolicyAfterTransfer(now))
		})
	}
}

// W8, X3: a volume that the restore took, and a person has made again under its name, is reserved for whose data may be on it too.
func TestW8AVolumeThatWentByARestoreIsMadeAgain(t *testing.T) {
	a := obj.VolumeKey("a")
	state := engine.New(Unprotected(Hooked()), 10)
	bound := At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound)))
	state.Observe(bound)
	state.ObserveRestore()
	state.ObserveDeleted(bound)
	again := At("30", KnownVolume("a", func(v *corev1.PersistentVolume) { v.UID = "uid-again" }))
	state.Observe(again)
	state.OutwaitCalls()
	step := reads(t, state, state.Start(a), a, again)
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
	assert.Equal(t, obj.ClaimKey("default", "other"), obj.ReferencedClaim(step.Action.Complete().Volume))
}

// W8, X3: a late cache shows, after the notice, that a person took the names from the claimRef, and the claim is gone by the restore.
func TestW8ASlipThatALateCacheShowsHidesNoOwner(t *testing.T) {
	a := obj.VolumeKey("a")
	claim := At("15", KnownClaim(BoundTo("a")))
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(claim)
	state.Observe(At("20", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))))
	state.ObserveRestore()
	state.Observe(At("25", KnownVolume("a", RefersTo("", "", "uid-1"), InPhase(corev1.VolumeBound))))
	state.ObserveDeleted(claim)
	state.OutwaitCalls()
	step := reads(t, state, state.Start(a), a, At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable))))
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
	assert.Equal(t, DataKey, obj.ReferencedClaim(step.Action.Complete().Volume))
}

// W8, C10: a late cache that shows one volume of a name after the next one is no restore, and what is made under that name later is as any
// other.
func TestW8ALateCacheIsNoRestore(t *testing.T) {
	a := obj.VolumeKey("a")
	state := engine.New(Unprotected(Hooked()), 10)
	made := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		volume := At(version, KnownVolume("a", edits...))
		volume.UID = types.UID("uid-" + version)
		return volume
	}
	last, late := made("30", RefersToOther, InPhase(corev1.VolumeBound)), made("20", RefersToOther, InPhase(corev1.VolumeBound))
	for _, volume := range []*corev1.PersistentVolume{last, late} { // the later one was read live
		state.Observe(volume)
		state.ObserveDeleted(volume)
	}
	again := made("40", InPhase(corev1.VolumeAvailable))
	state.Observe(again)
	step := reads(t, state, state.Start(a), a, again)
	assert.NotEqual(t, "W8", step.Action.Rule, "%s", step.Action)
}

// W8, R8: the same where somebody had deleted the volume, and it stayed for its storage was being reclaimed: that may still go on.
func TestW8AVolumeThatWasBeingDeletedIsMadeAgain(t *testing.T) {
	a := obj.VolumeKey("a")
	for name, kept := range map[string]VolumeEdit{
		"nothing kept it":        VolumeFinalizers(),
		"R8's finalizer kept it": VolumeFinalizers(reclaim.AnnouncementFinalizer),
	} {
		t.Run("W8 R8 "+name, func(t *testing.T) {
			state := engine.New(Unprotected(Hooked()), 10)
			leaving := At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeReleased), BeingDeleted, kept, func(v *corev1.PersistentVolume) {
				reclaim.Announce(v, reclaim.Announcement{By: "another", Token: 5, Seconds: 600})
			}))
			state.Observe(leaving)
			state.ObserveRestore()
			state.ObserveDeleted(leaving)
			again := At("30", KnownVolume("a", func(v *corev1.PersistentVolume) { v.UID = "uid-again" }))
			state.Observe(again)
			state.OutwaitCalls()
			step := reads(t, state, state.Start(a), a, again)
			require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
			assert.Contains(t, step.Action.Complete().Volume.Annotations, reclaim.AnnouncementAnnotation)
		})
	}
}

// W8, R8: what is being deleted takes no finalizer, and goes under an announcement that is given back to it. What is made again has that.
func TestW8WhatGoesUnderAnAnnouncementIsMadeAgain(t *testing.T) {
	a := obj.VolumeKey("a")
	for name, test := range map[string]struct {
		edit VolumeEdit
		want bool
	}{
		"it could not stay":               {func(*corev1.PersistentVolume) {}, true},
		"it stayed until R3 or R4 let go": {VolumeFinalizers(reclaim.AnnouncementFinalizer), false},
		"somebody has emptied it": {func(v *corev1.PersistentVolume) {
			v.Annotations[reclaim.AnnouncementAnnotation], v.Spec.ClaimRef, v.Spec.PersistentVolumeReclaimPolicy = "", nil, corev1.PersistentVolumeReclaimDelete
		}, false},
	} {
		for how, goes := range map[string]func(*engine.State, *corev1.PersistentVolume){
			"its end is shown": func(state *engine.State, volume *corev1.PersistentVolume) { state.ObserveDeleted(volume) },
			"the next one is":  func(*engine.State, *corev1.PersistentVolume) {},
		} {
			t.Run("R8 F3 "+name+", "+how, func(t *testing.T) {
				state := engine.New(Unprotected(Hooked()), 10)
				leaving := At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeReleased), BeingDeleted, VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"another","token":5}`), test.edit))
				state.Observe(leaving)
				goes(state, leaving)
				again := At("30", KnownVolume("a", InPhase(corev1.VolumeAvailable), func(v *corev1.PersistentVolume) { v.UID = "uid-again" }))
				state.Observe(again)
				step := reads(t, state, state.Start(a), a, again)
				assert.Equal(t, test.want, step.Action.Rule == "W8", "%s", step.Action)
			})
		}
	}
}

// W8, X3: a volume is given back to the claim whose data is on it, as far as that is known: whatever its claimRef says by a slip, or if
// somebody removed it.
func TestW8AVolumeIsGivenBackToWhoHadIt(t *testing.T) {
	a, other := obj.VolumeKey("a"), KnownClaim(Named("other"), BoundTo("a"), OfUID("uid-2"))
	stays := func(*engine.State, *corev1.PersistentVolumeClaim) {}
	goes := func(state *engine.State, claim *corev1.PersistentVolumeClaim) { state.ObserveDeleted(claim) }
	makeAgain := func(state *engine.State, edits ...VolumeEdit) {
		state.ObserveDeleted(state.Known(a))
		state.Observe(At("22", KnownVolume("a", append(edits, func(v *corev1.PersistentVolume) { v.UID = "uid-again" })...)))
	}
	isReplaced := func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
		state.Observe(At("30", KnownClaim(Named(claim.Name), OfUID("uid-3"))))
	}
	for name, test := range map[string]struct {
		ref   VolumeEdit
		phase corev1.PersistentVolumeClaimPhase
		end   func(*engine.State, *corev1.PersistentVolumeClaim)
	}{
		"a slip in the name of its claim":                       {RefersTo("default", "slip", "uid-2"), corev1.ClaimLost, stays},
		"a slip in the namespace":                               {RefersTo("shop", "other", "uid-2"), corev1.ClaimLost, stays},
		"no claimRef, and a claim that is Bound to it":          {func(*corev1.PersistentVolume) {}, corev1.ClaimBound, stays},
		"a slip in the name of its claim, which is gone":        {RefersTo("default", "slip", "uid-2"), corev1.ClaimLost, goes},
		"a slip in the name of its claim, which was made again": {RefersTo("default", "slip", "uid-2"), corev1.ClaimLost, isReplaced},
		"no name in its claimRef, and its claim is gone":        {RefersTo("", "", "uid-2"), corev1.ClaimBound, goes},
		"its claim is gone, and a slip comes after": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.ObserveDeleted(claim)
			state.Observe(At("21", KnownVolume("a", RefersTo("default", "slip", "uid-2"))))
			state.Observe(At("22", KnownVolume("a", RefersTo("", "", "uid-2"))))
		}},
		"its claim is gone, and another name, written after that, is lost": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.ObserveDeleted(claim)
			state.Observe(At("21", KnownVolume("a", RefersTo("shop", "next", ""))))
			state.Observe(At("22", KnownVolume("a", RefersTo("", "next", ""))))
		}},
		"the UID of none, and its name": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(At("22", KnownVolume("a", RefersTo("default", "other", "uid-none"))))
		}},
		"the UID of none, and another name": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(At("22", KnownVolume("a", RefersTo("shop", "cart", "uid-none"))))
			state.Observe(At("23", KnownVolume("a", RefersTo("shop", "cart", "uid-nobodys"))))
		}},
		"the UID of none, and another name, and its claim goes": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(At("22", KnownVolume("a", RefersTo("shop", "cart", "uid-none"))))
			state.ObserveDeleted(claim)
		}},
		"another claim, which comes, goes, and never had it": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(At("22", KnownVolume("a", RefersTo("shop", "cart", "uid-3"))))
			given := KnownClaim(Named("cart"), OfUID("uid-3"), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "shop" }, Naming("a"))
			state.Observe(given)
			state.ObserveDeleted(given)
		}},
		"no claimRef any more, and its claim goes before it is written again": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(At("22", KnownVolume("a")))
			state.ObserveDeleted(claim)
		}},
		"the UID of a claim that has another one": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(KnownClaim(Named("cart"), OfUID("uid-3"), BoundTo("b")))
			state.Observe(At("22", KnownVolume("a", RefersTo("default", "other", "uid-3"))))
			state.Observe(At("23", KnownVolume("a", RefersTo("default", "cart", "uid-3"))))
		}},
		"the UID of a claim that waits": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(KnownClaim(Named("cart"), OfUID("uid-3")))
			state.Observe(At("22", KnownVolume("a", RefersTo("default", "other", "uid-3"))))
		}},
		"another claim, which requests more": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(KnownClaim(Named("cart"), OfUID("uid-3"), Requesting("100Gi")))
			state.Observe(At("22", KnownVolume("a", RefersTo("default", "cart", "uid-3"))))
		}},
		"another claim, which is being deleted": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(KnownClaim(Named("cart"), OfUID("uid-3"), Naming("a"), ClaimBeingDeleted))
			state.Observe(At("22", KnownVolume("a", RefersTo("default", "cart", "uid-3"))))
		}},
		"another claim, which has bind-completed and no volume": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(KnownClaim(Named("cart"), OfUID("uid-3"), ClaimNote(phase.BindCompletedAnnotation, "yes")))
			state.Observe(At("22", KnownVolume("a", RefersTo("default", "cart", "uid-3"))))
		}},
		"it was made again with the UID of none": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			makeAgain(state, RefersTo("shop", "cart", "uid-none"))
		}},
		"it was made again without claimRef, and its claim goes": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			makeAgain(state)
			state.ObserveDeleted(claim)
		}},
		"nothing in its claimRef any more, and its claim goes": {RefersTo("default", "other", "uid-2"), corev1.ClaimBound, func(state *engine.State, claim *corev1.PersistentVolumeClaim) {
			state.Observe(At("22", KnownVolume("a", RefersTo("", "", ""))))
			state.ObserveDeleted(claim)
		}},
	} {
		t.Run("W8 X3 "+name, func(t *testing.T) {
			was := other.DeepCopy()
			was.Status.Phase = test.phase
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(At("20", KnownVolume("a", test.ref)))
			state.Observe(was)
			test.end(state, was)
			state.ObserveRestore()
			state.OutwaitCalls()
			step := reads(t, state, state.Start(a), a, At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable))))
			require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
			assert.Equal(t, obj.ClaimKey("default", "other"), obj.ReferencedClaim(step.Action.Complete().Volume))
		})
	}
}

// W8, X2: under the claim that had a volume, somebody has written the UID of the one that the backup shows. That one has it again, and it is retained.
func TestW8AVolumeIsRetainedForWhoHadItLast(t *testing.T) {
	a := obj.VolumeKey("a")
	backup := At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), WithPolicy(corev1.PersistentVolumeReclaimDelete)))
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(At("20", KnownVolume("a", RefersTo("default", "other", "uid-2"), WithPolicy(corev1.PersistentVolumeReclaimDelete))))
	state.Observe(KnownClaim(Named("other"), BoundTo("a"), OfUID("uid-2")))
	state.Observe(At("21", KnownVolume("a", BoundToClaim, WithPolicy(corev1.PersistentVolumeReclaimDelete))))
	state.ObserveRestore()
	state.OutwaitCalls()
	step := reads(t, state, state.Start(a), a, backup, KnownClaim(BoundTo("a")))
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind), "%s", step.Action)
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, step.Action.Complete().Volume.Spec.PersistentVolumeReclaimPolicy)
}

// W8: a person gives a volume to a claim that waits, and then to anybody. What changes of it after that is no claim's.
func TestW8AVolumeThatWasGivenAndFreed(t *testing.T) {
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(At("20", KnownVolume("a", RefersTo("default", "other", "uid-2"))))
	state.Observe(KnownClaim(Named("other"), BoundTo("a"), OfUID("uid-2")))
	state.Observe(KnownClaim(Named("cart"), OfUID("uid-3")))
	for i, edit := range []VolumeEdit{RefersTo("default", "cart", "uid-3"), func(*corev1.PersistentVolume) {}, Labelled("x", "y")} {
		state.Observe(At(fmt.Sprint(21+i), KnownVolume("a", edit)))
	}
	assert.Equal(t, "23", state.Known(AKey).GetResourceVersion())
}

// W8: the claim that a volume was given to had it, and is gone. It is given back to that one.
func TestW8AVolumeIsGivenBackToWhoHadItLast(t *testing.T) {
	a := obj.VolumeKey("a")
	inShop := func(c *corev1.PersistentVolumeClaim) { c.Namespace = "shop" }
	for name, goes := range map[string]func(*engine.State, *corev1.PersistentVolumeClaim){
		"who is gone": func(state *engine.State, given *corev1.PersistentVolumeClaim) { state.ObserveDeleted(given) },
		"who is being deleted": func(state *engine.State, given *corev1.PersistentVolumeClaim) {
			leaving := At("30", given.DeepCopy())
			ClaimBeingDeleted(leaving)
			state.Observe(leaving)
		},
	} {
		t.Run("W8 X3 "+name, func(t *testing.T) {
			given := KnownClaim(Named("cart"), OfUID("uid-3"), inShop, BoundTo("a"))
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(At("20", KnownVolume("a", RefersToOther)))
			state.Observe(KnownClaim(Named("other"), BoundTo("a"), OfUID(KnownVolume("a", RefersToOther).Spec.ClaimRef.UID)))
			state.Observe(At("21", KnownVolume("a", RefersTo("shop", "cart", "uid-3"))))
			state.Observe(given)
			goes(state, given)
			state.ObserveRestore()
			state.OutwaitCalls()
			step := reads(t, state, state.Start(a), a, At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable))))
			require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
			assert.Equal(t, obj.ClaimKey("shop", "cart"), obj.ReferencedClaim(step.Action.Complete().Volume))
		})
	}
}

// W8, X9: while a volume waits to be given back, a search costs others what it costs without.
func TestW8ASearchCostsNoMoreThanWithout(t *testing.T) {
	a := obj.VolumeKey("a")
	free := At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable)))
	allocated := func(volumes int) float64 {
		state := engine.New(Unprotected(Hooked()), 10)
		for n := range volumes {
			state.Observe(KnownVolume(fmt.Sprint("b-", n), Sized("1Mi"), InPhase(corev1.VolumeAvailable)))
		}
		pending := KnownClaim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
		state.Observe(At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound))))
		state.Observe(pending)
		state.Recheck(free)
		require.ErrorIs(t, reads(t, state, state.Start(a), a, free).Err, engine.ErrWentBack)
		state.OutwaitCalls()
		step := reads(t, state, state.Start(a), a, free)
		require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
		require.True(t, state.Proceed(a, engine.Reply{Err: ErrForbidden}).Done)
		require.True(t, reads(t, state, state.Start(DataKey), DataKey, free, pending).Done)
		return testing.AllocsPerRun(5, func() { require.True(t, state.Start(DataKey).Done) })
	}
	assert.LessOrEqual(t, allocated(1000), 2*allocated(10))
}

// W8: the write that gives a volume back fails, in the sync of a claim that names the volume. That claim does not get it for that.
func TestW8AVolumeIsGivenBackThoughTheWriteFails(t *testing.T) {
	a := obj.VolumeKey("a")
	bound, free := At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound))), At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable)))
	names := KnownClaim(Naming("a"))
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(bound)
	state.Observe(names)
	state.Recheck(free)
	require.ErrorIs(t, reads(t, state, state.Start(a), a, free).Err, engine.ErrWentBack)
	state.OutwaitCalls()
	step := reads(t, state, state.Start(DataKey), DataKey, free, names)
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
	labelled := At("12", KnownVolume("a", InPhase(corev1.VolumeAvailable), Labelled("x", "y")))
	step = reads(t, state, state.Proceed(DataKey, engine.Reply{Err: ErrConflict}), DataKey, labelled, names)
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
	assert.Equal(t, obj.ClaimKey("default", "other"), obj.ReferencedClaim(step.Action.Complete().Volume))
}

// W8: a volume that cannot be given back, for the server rejects that write, holds up no claim that another volume fits.
func TestW8OthersDoNotWaitForWhatIsToBeGivenBack(t *testing.T) {
	a := obj.VolumeKey("a")
	bound, free := At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound))), At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable)))
	claim, larger := KnownClaim(), KnownVolume("b", Sized("50Gi"), InPhase(corev1.VolumeAvailable))
	state := engine.New(Unprotected(Hooked()), 10)
	for _, object := range []obj.Object{bound, claim, larger} {
		state.Observe(object)
	}
	state.Recheck(free)
	require.ErrorIs(t, reads(t, state, state.Start(a), a, free).Err, engine.ErrWentBack)
	state.OutwaitCalls()
	step := reads(t, state, state.Start(a), a, free, larger)
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
	require.True(t, state.Proceed(a, engine.Reply{Err: ErrForbidden}).Done)
	step = reads(t, state, state.Start(DataKey), DataKey, free, larger, claim)
	assert.Equal(t, "B1 UpdateVolume pv/b", step.Action.Rule+" "+string(step.Action.Kind)+" "+step.Action.Target().String())
}

// W8: what a restored server shows to be another claim's, which is there, is that claim's.
func TestW8WhatAnotherClaimHasIsNotTaken(t *testing.T) {
	a := obj.VolumeKey("a")
	there := []obj.Object{At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), KnownClaim(BoundTo("a"))}
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound))))
	for _, key := range append(state.ObserveRestore(), a, DataKey, a) {
		step := reads(t, state, state.Start(key), key, there...)
		require.True(t, step.Done, "%s", step.Action)
	}
}

// W8, R8: the backup shows a claim in the middle of its binding, and since then the claim was deleted, and the deleter of its volume announced. That is announced again before the
// claim is Bound.
func TestW8WhatIsBoundIsAnnouncedAgainBefore(t *testing.T) {
	a := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
	for rule, back := range map[string]*corev1.PersistentVolumeClaim{
		"B3": At("4", KnownClaim(ClaimPhase(corev1.ClaimPending))),
		"B4": At("6", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimPending))),
	} {
		t.Run("before "+rule, func(t *testing.T) {
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(At("20", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"me","token":5}`))))
			state.ObserveRestore()
			state.OutwaitCalls()
			state.Observe(back)
			for step := reads(t, state, state.Start(AKey), AKey, a, back); !step.Done; {
				step = state.Proceed(AKey, engine.Reply{Err: ErrConnection})
			}
			step := reads(t, state, state.Start(DataKey), DataKey, a, back)
			assert.Equal(t, "W8 UpdateVolume pv/a", step.Action.Rule+" "+string(step.Action.Kind)+" "+step.Action.Target().String())
		})
	}
}

// W8, R2: after a restore the volume was read, as of the backup, and a late watch shows it as the last claim had it before that, which is gone. It is no person who has written that one into its claimRef:
// once it is read again, it is retained for the data of that one.
func TestW8ALateWatchAfterARestoreIsNoHandOver(t *testing.T) {
	deletes, data := WithPolicy(corev1.PersistentVolumeReclaimDelete), KnownClaim(BoundTo("a"))
	backup := At("15", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), deletes))
	last := KnownVolume("a", RefersTo("default", "other", "uid-2"), InPhase(corev1.VolumeBound), deletes)
	other := KnownClaim(Named("other"), BoundTo("a"), OfUID("uid-2"))
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(At("31", last))
	state.Observe(other)
	state.ObserveRestore()
	state.ObserveDeleted(other)
	state.Observe(data)
	step := state.Start(AKey)
	for state.Known(AKey).GetResourceVersion() != "15" {
		require.Equal(t, AKey, step.Action.Key)
		step = state.Proceed(AKey, engine.Reply{Object: backup})
	}
	require.True(t, state.Proceed(AKey, engine.Reply{Err: ErrConnection}).Done)
	state.Observe(At("34", last.DeepCopy()))
	require.ErrorIs(t, reads(t, state, state.Start(AKey), AKey, backup, data).Err, engine.ErrWentBack)
	state.OutwaitCalls()
	step = reads(t, state, state.Start(AKey), AKey, backup, data)
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind), "%s", step.Action)
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, step.Action.Complete().Volume.Spec.PersistentVolumeReclaimPolicy)
}
