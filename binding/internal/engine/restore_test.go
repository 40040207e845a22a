package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// reads answers the reads of a sync with these objects until it asks for something else, and returns that.
func reads(t *testing.T, state *engine.State, step engine.Step, key obj.Key, there ...obj.Object) engine.Step {
	t.Helper()
	for range 20 {
		if step.Done || step.Action.Kind != decision.Read {
			return step
		}
		reply := engine.Reply{Err: NotFoundError(step.Action.Key)}
		if step.Action.Key.IsList() {
			reply.Err = nil
		}
		for _, object := range there {
			if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && step.Action.Key == obj.ClaimsKey() {
				reply.Claims = append(reply.Claims, claim)
			}
			if object.GetName() == step.Action.Key.Name {
				reply = engine.Reply{Object: object}
			}
		}
		step = state.Proceed(key, reply)
	}
	require.Fail(t, "it reads without end")
	return step
}

// orphan is a volume whose claim is gone and whose storage is to be deleted, and another volume.
func orphan() (state *engine.State, orphaned, other *corev1.PersistentVolume) {
	state = engine.New(decision.Options{Protection: decision.ProtectionOff, Hooks: hooks.Names{SourceDeleters: sets.New("hostPath")}}, 10)
	orphaned = KnownVolume("a", BoundToClaim, DeletedPolicy, InPhase(corev1.VolumeReleased), OnHostPath)
	other = KnownVolume("other")
	state.Observe(orphaned)
	state.Observe(other)
	return state, orphaned, other
}

func TestW8NothingIsDestroyedBeforeTheLastRead(t *testing.T) {
	state, orphaned, other := orphan()
	a, b := obj.VolumeKey("a"), obj.VolumeKey("other")
	require.Equal(t, []obj.Key{a, b}, state.ObserveRestore(), "all that is known")
	step := state.Start(a)
	assert.Equal(t, "W8 Read pv/a: the server went back in time", step.Action.String())
	step = reads(t, state, step, a, orphaned)
	require.True(t, step.Done, "%s", step.Action)
	require.NoError(t, step.Err)
	assert.Zero(t, step.After, "it is woken")

	step = state.Start(b)
	failed := state.Proceed(b, engine.Reply{Err: ErrConnection})
	require.ErrorIs(t, failed.Err, ErrConnection)
	require.ErrorContains(t, failed.Err, "until it is read nothing is destroyed")
	assert.NotZero(t, failed.After, "W6")
	step = reads(t, state, state.Start(a), a, orphaned)
	require.True(t, step.Done, "%s", step.Action)

	step = reads(t, state, state.Start(b), b, other)
	require.True(t, step.Done, "%s", step.Action)
	assert.Contains(t, step.Next, a, "the last read wakes it")
	step = reads(t, state, state.Start(a), a, orphaned)
	require.True(t, step.Done, "%s", step.Action)
	assert.Equal(t, 150*time.Second, step.After, "what was announced before, and is lost, is waited for")
	state.SetTime(time.Time{}.Add(step.After))
	assert.True(t, reads(t, state, state.Start(a), a, orphaned).Action.Announces(), "R8 the deleter is next")
}

// The table names every action that may lose storage or data, and some that may not.
func TestW8WhatWaits(t *testing.T) {
	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		waits  bool
	}{
		"V3 a volume is released":       {volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), waits: true},
		"V1 a volume becomes available": {volume: KnownVolume("a", InPhase(corev1.VolumePending))},
		"V2 a volume becomes Bound":     {volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumePending)), claim: KnownClaim(BoundTo("a"))},
		"R5 a policy that nobody knows": {volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = "Burn" })},
		"R3 storage is deleted":         {volume: KnownVolume("a", BoundToClaim, DeletedPolicy, InPhase(corev1.VolumeReleased), OnHostPath), waits: true},
		"F3 the finalizer of a volume leaves": {volume: KnownVolume("a", InPhase(corev1.VolumeAvailable), func(v *corev1.PersistentVolume) {
			v.DeletionTimestamp, v.Finalizers = &metav1.Time{}, []string{"kubernetes.io/pv-protection"}
		}), waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := engine.New(decision.Options{Protection: decision.ProtectionOn, Hooks: hooks.Names{SourceDeleters: sets.New("hostPath")}}, 10)
			test.volume.Finalizers = append(test.volume.Finalizers, "kubernetes.io/pv-protection")[:1]
			objects := []obj.Object{test.volume}
			if test.claim != nil {
				objects = append(objects, test.claim)
			}
			for _, object := range append(objects, KnownVolume("unread")) {
				state.Observe(object)
			}
			state.ObserveRestore()
			a := obj.VolumeKey("a")
			step := reads(t, state, state.Start(a), a, objects...)
			assert.Equal(t, test.waits, step.Done, "%s %v", step.Action, step.Err)
		})
	}
}

// A sync that finds by itself that the server went back tells of it once, and has all else read anew.
func TestW8IsNoticedByALiveRead(t *testing.T) {
	state, orphaned, other := orphan()
	a, b := obj.VolumeKey("a"), obj.VolumeKey("other")
	before := KnownVolume("other")
	other.ResourceVersion, before.ResourceVersion = "30", "20"
	state.Observe(other)
	state.Recheck(before)
	step := reads(t, state, state.Start(b), b, before)
	require.ErrorIs(t, step.Err, engine.ErrWentBack)
	assert.NotZero(t, step.After, "W6")
	require.Len(t, step.Publish, 1, "N")
	assert.Equal(t, decision.EventServerWentBack, step.Publish[0].Reason)
	assert.Equal(t, b, step.Publish[0].On)
	assert.Contains(t, step.Next, a)
	require.Len(t, state.Unread(), 1, "but for what was read just now")

	older := orphaned.DeepCopy()
	older.ResourceVersion = "5"
	step = state.Start(a)
	require.Equal(t, "W8", step.Action.Rule)
	for range 2 { // what is read anew is older than it was, as was to be expected: no second notice
		step = state.Proceed(a, engine.Reply{Object: older})
		require.NoError(t, step.Err)
		assert.Empty(t, step.Publish)
	}
	assert.Empty(t, state.Unread())
	assert.Equal(t, "5", state.Known(a).GetResourceVersion())
}

// Nor does what an informer shows of before, and after it of the object once more, in an older version than the one that was written.
func TestW8WhatWasSupersededIsReadBeforeItIsBelieved(t *testing.T) {
	a, made, former := obj.VolumeKey("a"), At("10", KnownVolume("a", InPhase(corev1.VolumePending))), At("50", KnownVolume("a", func(v *corev1.PersistentVolume) { v.UID = "uid-former" }))
	d := newTalk(t, decision.Options{}, a, made)
	written := At("11", KnownVolume("a"))
	d.starts().says("V1 UpdateVolumeStatus pv/a").gets(written, nil)
	d.state.Observe(former)
	assert.Empty(t, d.state.Observe(made), "a late report")
	d.state.ObserveDeleted(former)
	assert.NotEmpty(t, d.state.Observe(made))
	d.starts().says("B6 Read pv/a").gets(written, nil).says("B6 Read pv/a").gets(written, nil)
	require.True(t, d.step.Done)
	assert.Equal(t, written, d.state.Known(a))
}

// Nor does an informer's late report of what was there before hide it: what was written is there, so that the other is not.
func TestW8IsNoticedByAWrite(t *testing.T) {
	a, made, former := obj.VolumeKey("a"), At("10", KnownVolume("a", InPhase(corev1.VolumePending))), At("50", KnownVolume("a", func(v *corev1.PersistentVolume) { v.UID = "uid-former" }))
	d := newTalk(t, decision.Options{}, a, made)
	d.starts().says("V1 UpdateVolumeStatus pv/a")
	d.state.Observe(former)
	written := At("11", KnownVolume("a"))
	d.gets(written, nil).says("B6 Read pv/a").gets(written, nil).says("B6 Read pv/a")
	require.ErrorIs(t, d.gets(written, nil).step.Err, engine.ErrWentBack)
	assert.Equal(t, written, d.state.Known(a))
}

// After a restore the server gives other writes the versions that it gave before: what is read counts, not what was known.
func TestW8TheSameVersionWithOtherContent(t *testing.T) {
	state, orphaned, other := orphan()
	a := obj.VolumeKey("a")
	freed := orphaned.DeepCopy()
	freed.Spec.ClaimRef, freed.Status.Phase = nil, corev1.VolumeAvailable
	state.ObserveRestore()
	reads(t, state, state.Start(obj.VolumeKey("other")), obj.VolumeKey("other"), other)
	step := reads(t, state, state.Start(a), a, freed)
	assert.Nil(t, state.Known(a).(*corev1.PersistentVolume).Spec.ClaimRef)
	assert.Equal(t, "W8 UpdateVolume pv/a", step.Action.Rule+" "+string(step.Action.Kind)+" "+step.Action.Target().String(), "R3 its storage is not deleted, nor is it given away")
}

// What was known to be gone may be there again. A cache that shows it proves nothing: it is read.
func TestW8WhatWasGoneIsReadBeforeItIsBelieved(t *testing.T) {
	state, _, _ := orphan()
	claim := KnownClaim()
	state.Observe(claim)
	state.ObserveDeleted(claim)
	state.ObserveRestore()
	require.Equal(t, []obj.Key{DataKey}, state.Observe(claim))
	assert.Nil(t, state.Known(DataKey))
	step := state.Start(DataKey)
	for !step.Done { // the server has none
		require.Equal(t, decision.Read, step.Action.Kind)
		step = state.Proceed(DataKey, engine.Reply{Err: NotFoundError(DataKey)})
	}
	require.Equal(t, []obj.Key{DataKey}, state.Observe(claim), "each time")
	assert.Nil(t, state.Known(DataKey))
	step = state.Start(DataKey)
	require.Equal(t, decision.Read, step.Action.Kind)
	step = state.Proceed(DataKey, engine.Reply{Object: claim})
	assert.Nil(t, state.Known(DataKey), "it may be an old reply, which does not look old any more")
	require.Equal(t, decision.Read, step.Action.Kind)
	step = state.Proceed(DataKey, engine.Reply{Object: claim})
	assert.Equal(t, claim, state.Known(DataKey), "%v", step.Err)
	assert.NotEmpty(t, state.Observe(At("99", claim.DeepCopy())))
	assert.Equal(t, "99", state.Known(DataKey).GetResourceVersion(), "no more")
}

// Nobody reads classes and pods live: what a cache shows is there.
func TestW8AClassThatWasGoneIsBelieved(t *testing.T) {
	state, class := engine.New(Unprotected(decision.Options{}), 10), ClassOf("fast", "example.com/disks")
	key := obj.Key{Kind: obj.KindClass, Name: class.Name}
	state.Observe(class)
	state.ObserveDeleted(class)
	state.ObserveRestore()
	state.Observe(class)
	assert.Equal(t, class, state.Known(key))
}

// A second notice has read again what was read since the first, and the reply that is on its way proves nothing.
func TestW8ASecondTime(t *testing.T) {
	state, orphaned, other := orphan()
	a, b := obj.VolumeKey("a"), obj.VolumeKey("other")
	state.ObserveRestore()
	reads(t, state, state.Start(b), b, other)
	require.Len(t, state.Unread(), 1)
	step := state.Start(a)
	require.Equal(t, decision.Read, step.Action.Kind)
	state.ObserveRestore()
	require.Len(t, state.Unread(), 2)
	step = state.Proceed(a, engine.Reply{Object: orphaned})
	assert.Equal(t, "W8 Read pv/a: the server went back in time", step.Action.String(), "once more")
	require.Len(t, state.Unread(), 2)
}

// A list of another kind that shows what was told already may show another restore: all is read once more, and what was gone before
// the first notice may still be there again. No second event tells of it.
func TestW8WhatWasToldIsReadAnewAndNotTold(t *testing.T) {
	state, _, other := orphan()
	b, claim := obj.VolumeKey("other"), KnownClaim()
	state.Observe(claim)
	state.ObserveDeleted(claim)
	state.ObserveRestore()
	step := state.Start(b)
	told := len(step.Publish)
	for !step.Done {
		step = state.Proceed(b, engine.Reply{Object: other})
		told += len(step.Publish)
	}
	require.Equal(t, 1, told)

	state.ObserveRestoreAgain()
	require.Len(t, state.Unread(), 2)
	assert.Empty(t, reads(t, state, state.Start(b), b, other).Publish)
	assert.Equal(t, []obj.Key{DataKey}, state.Observe(claim))
	assert.Nil(t, state.Known(DataKey), "it is read before it is believed")
}

// The server clears no volumeName: a claim that has lost it is of before a restore, though its revisions go on, and somebody has changed it since. What
// an informer shows is read first.
func TestW8AClaimHasLostTheVolumeThatItNamed(t *testing.T) {
	bound, volume := At("20", KnownClaim(BoundTo("a"))), At("19", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
	for name, back := range map[string]*corev1.PersistentVolumeClaim{"it names none": At("99", KnownClaim()), "it names another": At("99", KnownClaim(Naming("other")))} {
		t.Run("W8 X2 "+name, func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, volume, bound)
			require.Equal(t, []obj.Key{DataKey}, d.state.Observe(back))
			assert.Equal(t, bound, d.state.Known(DataKey), "not yet")
			d.starts().says("B6 Read pvc/default/data").gets(back, nil).says("B6 Read pvc/default/data").gets(back, nil)
			require.ErrorIs(t, d.step.Err, engine.ErrWentBack)
			assert.Equal(t, back, d.state.Known(DataKey))
			assert.Contains(t, d.step.Next, AKey, "whose claim it was is known")

			d = newTalk(t, decision.Options{}, DataKey, volume, bound)
			d.state.Observe(back)
			d.starts().says("B6 Read pvc/default/data").gets(bound, nil).ends()
			assert.Equal(t, bound, d.state.Known(DataKey), "an informer proves nothing")
		})
	}
}

// A claim owns a volume by status alone, for a cache of volumes is late. A live read of that very claim shows first that the server went back: the volume
// is kept for its name.
func TestW8WhatAClaimOwnsByStatusIsNotForgotten(t *testing.T) {
	free := At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable)))
	before := At("5", KnownClaim(OfUID("uid-before")))
	d := newTalk(t, decision.Options{}, DataKey, free, At("20", KnownClaim(BoundTo("a"))))
	d.state.Recheck(before)
	d.starts().says("B6 Read pvc/default/data").gets(before, nil).says("B6 Read pvc/default/data").gets(before, nil)
	require.ErrorIs(t, d.step.Err, engine.ErrWentBack)
	d.key = AKey
	d.took(reads(t, d.state, d.starts().step, AKey, free, before))
	require.Equal(t, "W8 UpdateVolume pv/a", d.step.Action.Rule+" "+string(d.step.Action.Kind)+" "+d.step.Action.Target().String())
	assert.Equal(t, DataKey, obj.ReferencedClaim(d.step.Action.Complete().Volume))
}

// V2, V4: the backup is from between B1 and B3 of a binding, and the claim takes another volume before it has its own again. Its data is not anybody's, and not
// reclaimed, be it on what was made for it.
func TestW8AVolumeWhoseClaimTakesAnother(t *testing.T) {
	lost := At("21", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)))
	for name, test := range map[string]struct {
		volume string
		was    *corev1.PersistentVolumeClaim
		edits  []VolumeEdit
	}{
		"it was Bound": {volume: "a", was: At("21", KnownClaim(BoundTo("a")))},
		"the volume was deleted, and it was Lost": {volume: "a", was: lost},
		"it was provisioned for it":               {volume: OwnKey.Name, was: At("21", KnownClaim(BoundTo(OwnKey.Name))), edits: []VolumeEdit{DeletedPolicy, VolumeNote(ProvisionedBy, Own), VolumeFinalizers(reclaim.InTreeFinalizer)}},
		"that is Released already":                {volume: OwnKey.Name, was: At("21", KnownClaim(BoundTo(OwnKey.Name))), edits: []VolumeEdit{DeletedPolicy, VolumeNote(ProvisionedBy, Own), VolumeFinalizers(reclaim.InTreeFinalizer), InPhase(corev1.VolumeReleased)}},
	} {
		for _, first := range []string{"the claim", "the volume"} {
			t.Run("W8 X3 "+name+", "+first+" is read first", func(t *testing.T) { testClaimTakesAnother(t, test.volume, test.was, first, test.edits...) })
		}
	}
}

// V3, V4: the same, and a slip in the name in claimRef besides: no claim has that name and the UID.
func TestW8ASlipHidesAClaimThatTakesAnother(t *testing.T) {
	back := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), DeletedPolicy, VolumeNote(BoundBy, "yes")))
	slip := At("6", KnownVolume("a", RefersTo("default", "dtaa", "uid-1"), InPhase(corev1.VolumeAvailable), DeletedPolicy, VolumeNote(BoundBy, "yes")))
	d := newTalk(t, Hooked(), AKey, At("20", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), DeletedPolicy)), At("21", KnownClaim(BoundTo("a"))))
	d.state.ObserveRestore()
	for _, now := range []*corev1.PersistentVolume{back, slip} {
		d.state.Observe(now)
		for _, d.key = range []obj.Key{DataKey, AKey} {
			for d.took(reads(t, d.state, d.starts().step, d.key, now, At("4", KnownClaim()))); !d.step.Done; {
				d.gets(nil, ErrConnection)
			}
		}
	}
	taken, other := At("30", KnownClaim(BoundTo("b"))), At("31", KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound)))
	d.state.Observe(taken)
	d.state.Observe(other)
	d.state.OutwaitCalls()
	d.key = AKey
	d.took(reads(t, d.state, d.starts().step, AKey, slip, taken, other))
	require.Equal(t, "V4 UpdateVolume pv/a", d.step.Action.Rule+" "+string(d.step.Action.Kind)+" "+d.step.Action.Target().String())
	assert.Equal(t, DataKey, obj.ReferencedClaim(d.step.Action.Volume))
}

// P2, X2: the backup is from before what was provisioned for a claim was given to another one. Whatever the tenant of the first one announces, it is not deleted
// as if nobody had used it.
func TestW8WhatALaterClaimHadIsNotMadeAnew(t *testing.T) {
	made := func(version string, claim VolumeEdit) *corev1.PersistentVolume {
		volume := At(version, MadeVolume(claim, VolumeNote(ProvisionedBy, Own), VolumeNote(BoundBy, "yes"), WithPolicy(corev1.PersistentVolumeReclaimRetain), InPhase(corev1.VolumeBound)))
		volume.UID = "uid-v"
		return volume
	}
	class := ClassOf("fast", Own, func(class *storagev1.StorageClass) { class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) })
	for _, way := range []string{"one restore", "a second one, and the claim is read first"} {
		t.Run("P2 W8 X2 "+way, func(t *testing.T) {
			claim := At("4", ProvisioningClaim())
			d := newTalk(t, withTwo(), OwnKey, class, claim, made("10", BoundToClaim), made("20", RefersToOther))
			d.state.ObserveRestore()
			d.took(reads(t, d.state, d.starts().step, OwnKey, made("5", BoundToClaim), claim)).ends()
			if way != "one restore" {
				d.state.ObserveRestore()
			}
			d.key = DataKey
			announced := At("30", ProvisioningClaim(ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"x","token":1,"seconds":1,"done":true}`)))
			d.state.Observe(announced)
			d.state.OutwaitCalls()
			d.state.Outwait(DataKey)
			for d.starts(); !d.step.Done && d.step.Action.Kind != decision.DeleteVolume; {
				switch {
				case d.step.Action.Kind != decision.Read:
					d.stored()
				case d.step.Action.Key == OwnKey:
					d.gets(made("3", BoundToClaim), nil)
				case d.state.Known(d.step.Action.Key) != nil:
					d.again()
				default:
					d.gets(nil, nil)
				}
			}
			assert.NotEqual(t, decision.DeleteVolume, d.step.Action.Kind)
		})
	}
}

func testClaimTakesAnother(t *testing.T, name string, was *corev1.PersistentVolumeClaim, first string, edits ...VolumeEdit) {
	key := obj.VolumeKey(name)
	made := KnownVolume(name, append([]VolumeEdit{BoundToClaim, InPhase(corev1.VolumeBound), VolumeNote(BoundBy, "yes")}, edits...)...)
	made.ResourceVersion = "5"
	d := newTalk(t, Hooked(), DataKey, made, At("20", KnownClaim(BoundTo(name))))
	if was.Status.Phase == corev1.ClaimLost {
		last := At("8", made.DeepCopy())
		d.state.Observe(last)
		d.state.ObserveDeleted(last)
	}
	d.state.Observe(was)
	d.state.ObserveRestore()
	back := At("6", KnownClaim())
	if first == "the volume" {
		d.key = key
		for d.starts(); !d.step.Done; {
			if d.step.Action.Key == key {
				d.gets(made, nil)
			} else {
				d.gets(nil, ErrConnection)
			}
		}
		d.key = DataKey
	}
	d.starts().says("W8 Read pvc/default/data").gets(back, nil).says("W8 Read pvc/default/data").gets(back, nil)
	for !d.step.Done {
		d.gets(nil, ErrConnection)
	}
	now, other := At("30", KnownClaim(BoundTo("b"))), At("31", KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound)))
	d.state.Observe(made)
	d.state.Observe(now)
	d.state.Observe(other)
	d.key = key
	d.state.OutwaitCalls()
	d.took(reads(t, d.state, d.starts().step, key, made, now, other))
	require.Equal(t, "V4 UpdateVolume "+key.String(), d.step.Action.Rule+" "+string(d.step.Action.Kind)+" "+d.step.Action.Target().String())
	kept := d.step.Action.Complete().Volume
	assert.Equal(t, DataKey, obj.ReferencedClaim(kept))
	assert.Empty(t, kept.Spec.ClaimRef.UID)
}

// A later claim had a volume that the backup shows with the claimRef of one that is gone. It is retained already, so that nothing is written: that the
// data of the later one may be on it is told all the same.
func TestW8AVolumeThatWasGivenSinceIsTold(t *testing.T) {
	retain := WithPolicy(corev1.PersistentVolumeReclaimRetain)
	d := newTalk(t, decision.Options{}, AKey, At("40", KnownVolume("a", RefersTo("default", "later", "uid-later"), InPhase(corev1.VolumeBound), retain)))
	d.state.ObserveRestoreAgain()
	back := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), retain))
	for range 2 {
		d.took(reads(t, d.state, d.starts().step, AKey, back))
	}
	assert.Equal(t, []string{"Warning ServerWentBack"}, d.published, "once")
}

// An old reply of a proxy says, after the restore is known, that a claim which the server has not any more is Bound to its volume. What the volume is to get
// back is not forgotten by that.
func TestW8AnOldReplyAfterTheRestore(t *testing.T) {
	volume, ghost := At("25", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), At("25", KnownClaim(BoundTo("a")))
	free, now := At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable))), At("20", KnownClaim(OfUID("uid-now")))
	t.Run("W8 X2 a claim has its name by then", func(t *testing.T) {
		d := newTalk(t, decision.Options{}, DataKey, volume, ghost)
		d.state.ObserveDeleted(ghost)
		d.state.ObserveRestore()
		d.state.Observe(now)
		d.state.OutwaitCalls()
		d.state.Recheck(At("19", now.DeepCopy()))
		d.starts().says("B6 Read pvc/default/data").gets(ghost, nil).says("B6 Read pvc/default/data").gets(now, nil)
		assert.Equal(t, now, d.state.Known(DataKey))
	})
	t.Run("W8 X3 it is still the one that was known", func(t *testing.T) {
		d := newTalk(t, decision.Options{}, AKey, volume, ghost)
		d.state.ObserveRestore()
		d.starts().says("W8 Read pv/a").gets(free, nil).says("W8 Read pv/a").gets(free, nil).says("W8 Read pvc/default/data").gets(ghost, nil)
		for !d.step.Done {
			d.gets(nil, ErrConnection)
		}
		d.key = DataKey
		for d.starts(); !d.step.Done; {
			require.Equal(t, decision.Read, d.step.Action.Kind, "%s", d.step.Action)
			d.gets(nil, ErrNotFound)
		}
		d.key = AKey
		d.state.OutwaitCalls()
		d.took(reads(t, d.state, d.starts().step, AKey, free))
		require.Equal(t, "W8 UpdateVolume pv/a", d.step.Action.Rule+" "+string(d.step.Action.Kind)+" "+d.step.Action.Target().String())
		assert.Equal(t, DataKey, obj.ReferencedClaim(d.step.Action.Complete().Volume))
	})
}

// V4: the backup is from between B1 and B3 of an earlier claim's binding, which takes another volume then. A later claim has written onto its own since: that is kept for
// the later one's name, also after a second restore, until somebody frees it.
func TestW8AVolumeThatALaterClaimHad(t *testing.T) {
	for _, way := range []string{"one restore", "two", "it was given back to a name", "somebody has freed it since"} {
		t.Run("W8 X3 "+way, func(t *testing.T) {
			retain := WithPolicy(corev1.PersistentVolumeReclaimRetain)
			chosen := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), VolumeNote(BoundBy, "yes"), retain))
			chosen.Spec.ClaimRef.ResourceVersion = "4"
			later := At("40", KnownVolume("a", RefersTo("default", "later", "uid-later"), InPhase(corev1.VolumeBound), VolumeNote(BoundBy, "yes"), retain))
			if way == "it was given back to a name" {
				later = At("40", KnownVolume("a", RefersTo("default", "later", ""), InPhase(corev1.VolumeAvailable), retain))
			}
			back, now, other := At("6", KnownClaim()), At("60", KnownClaim(BoundTo("b"))), At("61", KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound)))
			d := newTalk(t, decision.Options{}, AKey, later)
			if uid := later.Spec.ClaimRef.UID; uid != "" {
				d.state.Observe(At("41", KnownClaim(BoundTo("a"), Named("later"), OfUID(uid))))
			}
			restored := func() {
				for _, key := range d.state.ObserveRestore() {
					step := reads(t, d.state, d.state.Start(key), key, chosen, back)
					for !step.Done {
						step = d.state.Proceed(key, engine.Reply{Err: ErrConnection})
					}
				}
			}
			restored()
			if way == "two" {
				d.state.Observe(At("50", KnownVolume("a", RefersTo("default", "later", ""), InPhase(corev1.VolumeAvailable), retain)))
				restored()
			}
			if way == "somebody has freed it since" {
				d.state.Observe(At("50", KnownVolume("a", InPhase(corev1.VolumeAvailable), retain)))
				chosen = At("51", chosen.DeepCopy())
				d.state.Observe(chosen)
			}
			d.state.Observe(now)
			d.state.Observe(other)
			d.state.OutwaitCalls()
			d.took(reads(t, d.state, d.starts().step, AKey, chosen, now, other))
			require.Equal(t, "V4 UpdateVolume pv/a", d.step.Action.Rule+" "+string(d.step.Action.Kind)+" "+d.step.Action.Target().String())
			kept := d.step.Action.Complete().Volume.Spec.ClaimRef
			if way == "somebody has freed it since" {
				assert.Nil(t, kept)
				return
			}
			require.NotNil(t, kept)
			assert.Equal(t, "default/later", kept.Namespace+"/"+kept.Name)
			assert.Empty(t, kept.UID)
		})
	}
}

// V2, W8: a volume that a later claim had is not taken from the claim of the backup, which names another volume and has not got it, by a write that takes it from nobody.
func TestW8AVolumeIsNotTakenFromAClaimThatHasNoOther(t *testing.T) {
	retain := WithPolicy(corev1.PersistentVolumeReclaimRetain)
	chosen := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), VolumeNote(BoundBy, "yes"), VolumeFinalizers(reclaim.AnnouncementFinalizer), BeingDeleted, retain))
	back, now := At("6", KnownClaim()), At("60", KnownClaim(BoundTo("b"), ClaimPhase(corev1.ClaimLost)))
	other := At("61", KnownVolume("b", RefersTo("default", "other", "uid-other"), InPhase(corev1.VolumeBound)))
	d := newTalk(t, decision.Options{}, AKey, At("40", KnownVolume("a", RefersTo("default", "later", "uid-later"), InPhase(corev1.VolumeBound), retain)), At("41", KnownClaim(BoundTo("a"), Named("later"), OfUID("uid-later"))))
	for _, key := range d.state.ObserveRestore() {
		for step := reads(t, d.state, d.state.Start(key), key, chosen, back); !step.Done; {
			step = d.state.Proceed(key, engine.Reply{Err: ErrConnection})
		}
	}
	d.state.Observe(now)
	d.state.Observe(other)
	d.state.OutwaitCalls()
	d.took(reads(t, d.state, d.starts().step, AKey, chosen, now, other))
	require.Equal(t, "F3 UpdateVolume pv/a", d.step.Action.Rule+" "+string(d.step.Action.Kind)+" "+d.step.Action.Target().String())
	assert.Equal(t, chosen.Spec.ClaimRef, d.step.Action.Complete().Volume.Spec.ClaimRef)
}

// R8, W8: a volume went when its storage was deleted, and a restore brings it back as it was before. It is free by what it says, and has no storage: that
// is noted on it again. What a person makes under its name is another one.
func TestW8AVolumeComesBackWithoutItsStorage(t *testing.T) {
	a := obj.VolumeKey("a")
	gone := At("50", KnownVolume("a", BoundToClaim, DeletedPolicy, InPhase(corev1.VolumeReleased), OnHostPath, func(v *corev1.PersistentVolume) {
		v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		v.Finalizers = []string{reclaim.AnnouncementFinalizer}
		reclaim.Announce(v, reclaim.Announcement{By: "me", Token: 7, Seconds: 60})
	}))
	retained := At("50", gone.DeepCopy())
	WithPolicy(corev1.PersistentVolumeReclaimRetain)(retained)
	reclaim.Announce(retained, reclaim.Announcement{By: "me", Token: 7, Seconds: 60, Done: true})
	for name, test := range map[string]struct {
		last, back *corev1.PersistentVolume
		noted      bool
	}{
		"it is back, and Available":    {gone, At("20", KnownVolume("a", DeletedPolicy, InPhase(corev1.VolumeAvailable), OnHostPath)), true},
		"it was retained meanwhile":    {retained, At("20", KnownVolume("a", DeletedPolicy, InPhase(corev1.VolumeAvailable), OnHostPath)), true},
		"it was changed since":         {gone, At("60", KnownVolume("a", DeletedPolicy, RefersTo("default", "data", ""), InPhase(corev1.VolumeAvailable), OnHostPath)), true},
		"a person makes another one":   {gone, At("60", KnownVolume("a", DeletedPolicy, OnHostPath, func(v *corev1.PersistentVolume) { v.UID = "uid-again" })), false},
		"the same, the version is old": {gone, At("20", KnownVolume("a", DeletedPolicy, OnHostPath, func(v *corev1.PersistentVolume) { v.UID = "uid-again" })), false},
	} {
		t.Run("W8 "+name, func(t *testing.T) {
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(test.last)
			state.ObserveDeleted(test.last)
			state.Observe(KnownClaim())
			state.ObserveRestore()
			state.OutwaitCalls()
			state.Observe(test.back)
			step := reads(t, state, state.Start(a), a, test.back)
			if !test.noted {
				require.True(t, step.Done || !step.Action.Announces() && step.Action.Rule != "W8", "%s", step.Action)
				return
			}
			require.Equal(t, "W8 UpdateVolume pv/a", step.Action.Rule+" "+string(step.Action.Kind)+" "+step.Action.Target().String())
			written := step.Complete().Action.Volume
			announcement, announced := reclaim.AnnouncementOf(written)
			assert.True(t, announced && announcement.Done, "%s", written.Annotations)
			step = state.Proceed(a, engine.Reply{Object: At("70", written)})
			require.Equal(t, "R8 UpdateVolumeStatus", step.Action.Rule+" "+string(step.Action.Kind))
			failed := step.Complete().Action.Volume
			assert.Equal(t, corev1.VolumeFailed, failed.Status.Phase, "which tells it")
			assert.Contains(t, failed.Status.Message, "the storage of volume \"a\" is deleted")
			require.True(t, state.Proceed(a, engine.Reply{Object: At("80", failed)}).Done)
			step = reads(t, state, state.Start(DataKey), DataKey, KnownClaim(), state.Known(a))
			assert.True(t, step.Done, "nobody gets it: %s", step.Action)
		})
	}
}

// P2, W8, X2: what was announced for a later claim of a name is not given back to the one before, which the restore brings back: it is about other storage.
func TestW8AnAnnouncementIsNoOtherClaims(t *testing.T) {
	later := At("50", ProvisioningClaim(OfUID("uid-6"), ClaimBeingDeleted, ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"x","token":7,"seconds":60}`)))
	back := At("20", ProvisioningClaim())
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(ClassOf("fast", Own))
	state.Observe(later)
	state.ObserveRestore()
	state.OutwaitCalls()
	step := reads(t, state, state.Start(DataKey), DataKey, back)
	require.Equal(t, "P2 RunProvisioner", step.Action.Rule+" "+string(step.Action.Kind), "%s", step.Action)
	assert.NotContains(t, state.Known(DataKey).GetAnnotations(), reclaim.AnnouncementAnnotation)
}

// P2, W8: what was announced for a claim that was Bound to another volume since had ended once its finalizer was gone. It is not given back, and the claim provisioned for again.
func TestP2W8WhatHadEndedIsNotAnnouncedAgain(t *testing.T) {
	announced := ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"x","token":7,"seconds":60}`)
	for name, test := range map[string]struct {
		former   *corev1.PersistentVolumeClaim
		slip     VolumeEdit // in the claimRef of its volume
		expected string
	}{
		"its finalizer was gone":               {KnownClaim(BoundTo("a"), announced), nil, "P2 RunProvisioner"},
		"its finalizer was there":              {ProvisioningClaim(BoundTo("a"), announced), nil, "W8 UpdateClaim"},
		"it was of no account":                 {ProvisioningClaim(BoundTo("pvc-uid-1"), announced), nil, "P2 RunProvisioner"},
		"it was, and a slip has made it Lost":  {ProvisioningClaim(BoundTo("pvc-uid-1"), announced), RefersTo("default", "slip", "uid-1"), "P2 RunProvisioner"},
		"it was, and the UID of none has":      {ProvisioningClaim(BoundTo("pvc-uid-1"), announced), RefersTo("default", "data", "uid-none"), "P2 RunProvisioner"},
		"it was, and that with the name has":   {ProvisioningClaim(BoundTo("pvc-uid-1"), announced), RefersTo("shop", "cart", "uid-none"), "P2 RunProvisioner"},
		"it was, and that of another's has":    {ProvisioningClaim(BoundTo("pvc-uid-1"), announced), RefersTo("default", "data", "uid-3"), "P2 RunProvisioner"},
		"it was, and the whole of another's":   {ProvisioningClaim(BoundTo("pvc-uid-1"), announced), RefersTo("default", "else", "uid-3"), "P2 RunProvisioner"},
		"the UID of none has, and it had none": {ProvisioningClaim(Naming("pvc-uid-1"), Lost, announced), RefersTo("shop", "cart", "uid-none"), "W8 UpdateClaim"},
	} {
		t.Run(name, func(t *testing.T) {
			back := At("20", ProvisioningClaim())
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(ClassOf("fast", Own))
			state.Observe(KnownClaim(Named("else"), OfUID("uid-3"), BoundTo("b")))
			if test.slip == nil {
				state.Observe(At("50", test.former))
			} else {
				own, lost := MadeByOwn(func(v *corev1.PersistentVolume) { v.Name = "pvc-uid-1" }, BoundToClaim), test.former.DeepCopy()
				if state.Observe(test.former); test.former.Status.Phase == corev1.ClaimBound {
					state.Observe(At("50", own))
				}
				state.Observe(At("51", MadeByOwn(func(v *corev1.PersistentVolume) { v.Name = "pvc-uid-1" }, test.slip)))
				lost.Status.Phase = corev1.ClaimLost
				state.Observe(At("52", lost))
			}
			state.ObserveRestore()
			state.OutwaitCalls()
			step := reads(t, state, state.Start(DataKey), DataKey, back)
			assert.Equal(t, test.expected, step.Action.Rule+" "+string(step.Action.Kind), "%s", step.Action)
		})
	}
}

// P2, W8, X8: a claim was Bound to a volume that a controller had chosen, and a restore takes that, and shows what was announced of what its provisioner had made before. That volume
// did not stand for it, and the deleter is called; for one that a person had reserved for the claim it is not.
func TestP2W8WhatWasChosenForAClaimStandsForNothingElse(t *testing.T) {
	edit := func(edit VolumeEdit) VolumeEdit {
		if edit == nil {
			return func(*corev1.PersistentVolume) {}
		}
		return edit
	}
	for name, test := range map[string]struct {
		had     VolumeEdit
		then    VolumeEdit
		late    bool // the volume is shown after the claim
		goes    bool // and it goes before the restore
		deletes bool
	}{
		"a controller had chosen it":                         {had: VolumeNote(BoundBy, "yes"), deletes: true},
		"a controller had chosen it, and it went":            {had: VolumeNote(BoundBy, "yes"), goes: true, deletes: true},
		"a person had reserved it":                           {},
		"a person had reserved it, and it went":              {goes: true},
		"and a controller has written its claimRef since":    {then: VolumeNote(BoundBy, "yes")},
		"and then it went":                                   {then: VolumeNote(BoundBy, "yes"), goes: true},
		"and so it has, to one that was shown after it":      {then: VolumeNote(BoundBy, "yes"), late: true},
		"and another UID was written into it, of no claim":   {then: RefersTo("default", "data", "uid-none")},
		"and another claim was written into it, which is no": {then: RefersTo("shop", "cart", "uid-none")},
	} {
		t.Run(name, func(t *testing.T) {
			back := At("20", ProvisioningClaim(ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"x","token":7,"seconds":60}`)))
			shown := []obj.Object{ClassOf("fast", Own), At("50", KnownVolume("a", OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound), edit(test.had))), At("51", KnownClaim(BoundTo("a")))}
			if test.late {
				shown[1], shown[2] = shown[2], shown[1]
			}
			d := newTalk(t, Hooked(), DataKey, shown...)
			if test.then != nil {
				d.state.Observe(At("52", KnownVolume("a", OfClass("fast"), BoundToClaim, InPhase(corev1.VolumeBound), edit(test.had), test.then)))
			}
			if test.goes {
				d.state.ObserveDeleted(d.state.Known(AKey))
				d.state.ObserveRestore()
			} else {
				d.state.ObserveRestore()
				d.state.ObserveDeleted(d.state.Known(AKey))
			}
			d.state.OutwaitCalls()
			for hours := range 4 { // the announcement is another's
				d.state.SetTime(time.Unix(1_800_000_000, 0).Add(time.Duration(hours) * 2 * time.Hour))
				for d.starts(); !d.step.Done && d.step.Action.Kind != decision.RunDeleter; {
					switch {
					case d.step.Action.Writes():
						d.stored()
					case d.step.Action.Key == DataKey:
						if d.version == 100 {
							d.gets(back, nil)
						} else { // something was written to it
							d.again()
						}
					default:
						d.gets(nil, ErrNotFound)
					}
				}
				if !d.step.Done {
					break
				}
				for step := d.state.Start(AKey); !step.Done; {
					step = d.state.Proceed(AKey, engine.Reply{Err: NotFoundError(step.Action.Target())})
				}
			}
			assert.Equal(t, test.deletes, d.step.Action.Kind == decision.RunDeleter, "%s %v", d.step.Action, d.published)
		})
	}
}

// B1, W8, X2: a claim went by a restore, and its volume is kept for its name. A person puts a manifest of the volume in its place, with the claim's UID, or with that of an earlier
// claim, which is gone: nobody has deleted the one that had it, and the volume is retained.
func TestB1W8AManifestIsPutOverWhatWasGivenBack(t *testing.T) {
	for name, later := range map[string]*corev1.PersistentVolumeClaim{"with the UID of the claim": KnownClaim(BoundTo("a")), "with that of an earlier one": KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("a"))} {
		t.Run(name, func(t *testing.T) {
			had := KnownVolume("a", RefersTo(later.Namespace, later.Name, later.UID), InPhase(corev1.VolumeBound), DeletedPolicy, OnHostPath)
			d := newTalk(t, Hooked(), AKey, At("50", had), At("51", later))
			d.state.ObserveRestore()
			d.state.OutwaitCalls()
			d.took(reads(t, d.state, d.starts().step, AKey, At("10", KnownVolume("a", InPhase(corev1.VolumeAvailable), DeletedPolicy, OnHostPath))))
			d.says("W8 UpdateVolume pv/a").stored()
			d.state.Observe(At("120", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), DeletedPolicy, OnHostPath, VolumeNote(BoundBy, "yes"))))
			d.retainsInVain()
		})
	}
}

// R8, W8: the server went back to between the announcement of a deleter and the note that the storage is gone. That is noted again.
func TestR8W8WhatIsNotedOnTheSameAnnouncementIsNotedAgain(t *testing.T) {
	announced := func(done string) VolumeEdit {
		return VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"controller-1","token":5,"seconds":60`+done+`}`)
	}
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(At("50", MadeByOwn(announced(`,"done":true`), WithPolicy(corev1.PersistentVolumeReclaimRetain))))
	state.ObserveRestore()
	state.OutwaitCalls()
	step := reads(t, state, state.Start(AKey), AKey, At("10", MadeByOwn(announced(""))))
	require.Equal(t, "W8 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind), "%s", step.Action)
	again, _ := reclaim.AnnouncementOf(step.Action.Complete().Volume)
	assert.True(t, again.Done)
}

// P2, W8, X2: a claim was Bound to what was provisioned for it, and a restore takes that back. Then its tenant deletes it: what was written stays, and is told.
func TestP2W8WhatWasUsedBeforeTheServerWentBackIsNotDeleted(t *testing.T) {
	back := ProvisioningClaim()
	restored := func(t *testing.T) *talk {
		d := newTalk(t, Hooked(), DataKey, At("50", ProvisioningClaim(BoundTo("pvc-uid-1"))), ClassOf("fast", Own))
		d.state.ObserveRestore()
		d.state.OutwaitCalls()
		return d
	}
	plays := func(d *talk, claim *corev1.PersistentVolumeClaim, made error) {
		for range 3 {
			for d.starts(); !d.step.Done; {
				switch {
				case d.step.Action.Kind == decision.RunDeleter || d.step.Action.Announces():
					require.Fail(d, "it is about to be deleted", "%s", d.step.Action)
				case d.step.Action.Key == DataKey:
					d.gets(claim, nil)
				case d.step.Action.Kind == decision.RunProvisioner && made == nil:
					d.gets(MadeVolume(), nil)
				case d.step.Action.Kind == decision.RunProvisioner:
					d.gets(nil, made)
				case d.step.Action.Kind == decision.CreateVolume:
					d.gets(nil, apierrors.NewForbidden(corev1.Resource("persistentvolumes"), "pvc-uid-1", errors.New("no")))
				case d.step.Action.Writes():
					d.stored()
				default:
					d.gets(nil, ErrNotFound)
				}
			}
		}
	}
	t.Run("its tenant deletes it", func(t *testing.T) {
		d := restored(t)
		plays(d, At("20", ProvisioningClaim(ClaimBeingDeleted)), nil)
		assert.Contains(t, d.published, "Warning ProvisioningCleanupFailed")
	})
	retained := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		edits = append([]VolumeEdit{func(v *corev1.PersistentVolume) { v.Name = "pvc-uid-1" }, WithPolicy(corev1.PersistentVolumeReclaimRetain)}, edits...)
		return At("50", MadeByOwn(edits...))
	}
	for name, had := range map[string]*corev1.PersistentVolume{
		"what it had is retained":                                     retained(InPhase(corev1.VolumeReleased)),
		"it was given back to its name":                               retained(PreBound),
		"it was given to another name":                                retained(RefersTo("shop", "b", "")),
		"it was given to anybody":                                     retained(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }),
		"what was reserved for it by hand, under another name, is so": retained(func(v *corev1.PersistentVolume) { v.Name = "mine" }, InPhase(corev1.VolumeReleased)),
	} {
		t.Run("it was gone, "+name+", and its tenant deletes it again", func(t *testing.T) {
			d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), had)
			d.state.ObserveRestore()
			d.state.OutwaitCalls()
			d.state.ObserveDeleted(had)
			d.key = obj.VolumeKey(had.Name)
			for d.starts(); !d.step.Done; d.gets(nil, ErrNotFound) {
			}
			d.key = DataKey
			d.state.Observe(At("20", ProvisioningClaim(ClaimBeingDeleted)))
			plays(d, At("20", ProvisioningClaim(ClaimBeingDeleted)), nil)
			assert.Contains(t, d.published, "Warning ProvisioningCleanupFailed")
		})
		t.Run("likewise, and the volume is gone, too: "+name, func(t *testing.T) {
			d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), had).comesAndGoes(had)
			d.state.ObserveRestore()
			d.state.OutwaitCalls()
			d.state.Observe(At("20", ProvisioningClaim(ClaimBeingDeleted)))
			plays(d, At("20", ProvisioningClaim(ClaimBeingDeleted)), nil)
			assert.Contains(t, d.published, "Warning ProvisioningCleanupFailed")
		})
	}
	t.Run("it was gone, and R3 had deleted its storage: what may have been made since the backup goes", func(t *testing.T) {
		done := VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"controller-1","token":5,"done":true}`)
		had := At("50", MadeByOwn(func(v *corev1.PersistentVolume) { v.Name = "pvc-uid-1" }, BeingDeleted, done))
		d := newTalk(t, Hooked(), DataKey, ClassOf("fast", Own), had).comesAndGoes(had)
		d.state.ObserveRestore()
		d.state.OutwaitCalls()
		claim := At("20", ProvisioningClaim(ClaimBeingDeleted))
		d.state.Observe(claim)
		for d.starts(); !d.step.Action.Writes() && !d.step.Done; {
			if d.step.Action.Key == DataKey {
				d.gets(claim, nil)
			} else {
				d.gets(nil, ErrNotFound)
			}
		}
		require.True(t, d.step.Action.Announces(), "%s", d.step.Action)
	})
	t.Run("its volume cannot be stored", func(t *testing.T) { plays(restored(t), At("20", back), nil) })
	t.Run("its provisioner fails, and it is gone", func(t *testing.T) {
		d := restored(t)
		plays(d, At("20", back), ErrBroken)
		d.goesUndeleted(At("20", back))
	})
}

// P3, W8, X3: an external provisioner made a volume for a claim, which was given to another. A restore brings the claim back, and not the volume: nobody asks for it again.
func TestP3W8WhatWasGivenToAnotherIsNotAskedForAgain(t *testing.T) {
	given := At("50", KnownVolume("pvc-uid-1", RefersTo("shop", "b", "uid-b"), InPhase(corev1.VolumeBound)))
	d := newTalk(t, Hooked(), DataKey, ClassOf("fast", "ext.example.com"), given)
	d.state.ObserveRestore()
	d.state.OutwaitCalls()
	d.state.ObserveDeleted(given)
	d.state.Observe(At("20", KnownClaim(RequestingClass(new("fast")))))
	step := reads(t, d.state, d.state.Start(DataKey), DataKey, At("20", KnownClaim(RequestingClass(new("fast")))))
	require.True(t, step.Done, "%s", step.Action)
	d.took(step)
	assert.Equal(t, []string{"Warning ProvisioningFailed"}, d.published)
}

// TestW8AnOldReplyInPlaceOfTheSecond: a volume is read twice after a restore, and the second reply is older than the first. It is no word of the backup.
func TestW8AnOldReplyInPlaceOfTheSecond(t *testing.T) {
	retain := WithPolicy(corev1.PersistentVolumeReclaimRetain)
	known := At("30", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), retain))
	backup := At("20", KnownVolume("a", InPhase(corev1.VolumeAvailable), retain))
	old := At("10", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeReleased), retain))
	d := newTalk(t, decision.Options{}, AKey, known)
	d.state.ObserveRestore()
	d.starts().says("W8 Read pv/a").gets(backup, nil).says("W8 Read pv/a").gets(old, nil).says("W8 Read pv/a").gets(backup, nil)
	d.took(reads(t, d.state, d.step, AKey, backup))
	require.Equal(t, "W8 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
	assert.Equal(t, DataKey, obj.ReferencedClaim(d.step.Action.Complete().Volume))
}

// TestW8WhoHadItSinceIsToldAfterASecondNotice: the sync of a claim notices the restore, and reads a retained volume for it; then an informer tells of it too,
// before the volume's own sync.
func TestW8WhoHadItSinceIsToldAfterASecondNotice(t *testing.T) {
	retain := WithPolicy(corev1.PersistentVolumeReclaimRetain)
	d := newTalk(t, decision.Options{}, DataKey, At("30", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound), retain)), KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("a")))
	backup := At("20", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), retain))
	d.state.ObserveRestore()
	leaving := At("21", KnownClaim(BoundTo("a"), ClaimBeingDeleted, ClaimFinalizers(ClaimProtection)))
	d.state.Observe(leaving)
	for d.starts(); !d.step.Done && d.step.Action.Kind == decision.Read; {
		switch d.step.Action.Key {
		case AKey:
			d.gets(backup, nil)
		case DataKey:
			d.gets(leaving, nil)
		default:
			d.gets(nil, nil)
		}
	}
	require.Equal(t, backup, d.state.Known(AKey))
	d.state.ObserveRestore()
	step := reads(t, d.state, d.state.Start(AKey), AKey, backup, leaving)
	assert.True(t, slices.ContainsFunc(step.Publish, func(e decision.Event) bool {
		return strings.Contains(e.Message, "was given to claim default/other before")
	}), "%v", step.Publish)
}

// TestW8AnotherOfTheSameVersion: after a restore the server gives versions again, and a claim that is made again has that of the former one, whose end no cache shows.
func TestW8AnotherOfTheSameVersion(t *testing.T) {
	for rule, noticed := range map[string]bool{"W8": true, "B6": false} {
		known, other := At("30", KnownClaim()), At("30", KnownClaim(OfUID("uid-9")))
		d := newTalk(t, decision.Options{}, DataKey, known)
		if noticed {
			d.state.ObserveRestore()
		} else {
			d.state.Recheck(At("29", KnownClaim()))
		}
		for d.starts(); d.state.Known(DataKey) != other; d.gets(other, nil) {
			d.says(rule + " Read pvc/default/data")
		}
		assert.Equal(t, noticed, !errors.Is(d.step.Err, engine.ErrWentBack))
	}
}

// TestW8WhatADeleterHasDeletedStaysDeleted: a deleter has succeeded, and what follows it fails, for the server is away. It is back with a backup, in which a claim
// has the volume.
func TestW8WhatADeleterHasDeletedStaysDeleted(t *testing.T) {
	volume := func(version string, at corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", BoundToClaim, DeletedPolicy, InPhase(at), OnHostPath))
	}
	d := newTalk(t, decision.Options{Hooks: hooks.Names{SourceDeleters: sets.New("hostPath")}}, AKey, volume("20", corev1.VolumeReleased))
	d.starts().announces().says("R3 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").again()
	d.says("R3 RunDeleter pv/a").gets(nil, nil)
	for !d.step.Done {
		d.gets(nil, ErrConnection)
	}
	d.state.ObserveRestore()
	d.state.OutwaitCalls()
	backup, claim := volume("10", corev1.VolumeBound), At("11", KnownClaim(BoundTo("a")))
	d.state.Observe(claim)
	d.took(reads(t, d.state, d.starts().step, AKey, backup, claim)).says("W8 UpdateVolume pv/a").stored()
	d.took(reads(t, d.state, d.step, AKey, d.state.Known(AKey), claim))
	require.Equal(t, decision.UpdateVolume, d.step.Action.Kind, "%s", d.step.Action)
	announcement, _ := reclaim.AnnouncementOf(d.step.Action.Volume)
	assert.True(t, announcement.Done, "%s", d.step.Action)
}
