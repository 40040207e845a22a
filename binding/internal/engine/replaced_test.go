package engine_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// V1, X3: a volume that is made in place of another is listed for before it is given away or made Available, however its
// controller was told that the other is gone.
func TestV1AVolumeInPlaceOfAnother(t *testing.T) {
	a := obj.VolumeKey("a")
	first := At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
	second := At("20", KnownVolume("a", InPhase(corev1.VolumePending)))
	second.UID = "uid-of-second"
	for name, told := range map[string]func(d *talk){
		"its deletion is seen":      func(d *talk) { d.state.ObserveDeleted(first); d.state.Observe(second) },
		"its deletion comes late":   func(d *talk) { d.state.Observe(second); d.state.ObserveDeleted(first) },
		"its deletion is not shown": func(d *talk) { d.state.Observe(second) },
	} {
		t.Run(name+": it is made Available", func(t *testing.T) {
			d := newTalk(t, decision.Options{}, a, first)
			told(d)
			d.starts().says("V1 Read pvc").gets(nil, nil).says("V1 UpdateVolumeStatus pv/a").stored().ends()
		})
		t.Run(name+": a claim takes it", func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, first)
			told(d)
			d.state.Observe(KnownClaim())
			d.starts().says("V1 Read pvc").gets(nil, nil).says("B1 UpdateVolume pv/a")
		})
	}
	for name, reply := range map[string]struct {
		claim obj.Object
		err   error
	}{
		"in an older version":            {claim: At("29", KnownClaim(Named("owner")))},
		"in none as of an older version": {err: AbsentAsOf(obj.ClaimKey("default", "owner"), "29")},
	} {
		t.Run("V1 its owner is in the list, and read "+name, func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, KnownVolume("a", InPhase(corev1.VolumeBound)), KnownClaim(Naming("a")))
			d.starts().says("V1 Read pvc")
			d.took(d.state.Proceed(d.key, engine.Reply{Claims: []*corev1.PersistentVolumeClaim{At("30", KnownClaim(Named("owner"), BoundTo("a")))}}))
			d.says("V1 Read pvc/default/owner").gets(reply.claim, reply.err).ends()
			assert.Positive(t, d.step.After, "W6")
			assert.Equal(t, []string{"Warning VolumeMismatch"}, d.published)
		})
	}
	t.Run("a Lost claim that never had it is bound to it, and there is a conflict", func(t *testing.T) {
		d := newTalk(t, decision.Options{}, DataKey, first, KnownClaim(Naming("a"), OfUID("uid-8"), ClaimPhase(corev1.ClaimLost)))
		d.state.Observe(second)
		claim := d.state.Known(DataKey)
		d.starts().says("V1 Read pvc").gets(nil, nil).says("B1 Read pvc/default/data").gets(claim, nil).says("B1 UpdateVolume pv/a")
		d.gets(nil, apierrors.NewConflict(corev1.Resource("persistentvolumes"), "a", errors.New("changed"))).says("B6 Read pv/a").gets(At("21", second.DeepCopy()), nil)
		d.says("V1 Read pvc")
	})
	t.Run("nobody had its name before", func(t *testing.T) {
		newTalk(t, decision.Options{}, a, second).starts().says("V1 UpdateVolumeStatus pv/a")
		newTalk(t, decision.Options{}, DataKey, second, KnownClaim()).starts().says("B1 UpdateVolume pv/a")
	})
	t.Run("it was made Available", func(t *testing.T) {
		available := At("21", second.DeepCopy())
		available.Status.Phase = corev1.VolumeAvailable
		newTalk(t, decision.Options{}, DataKey, first, available, KnownClaim()).starts().says("B1 UpdateVolume pv/a")
	})
}

// B2, X3: another controller has bound the volume meanwhile, and released it, for the claim is gone. Who has a late cache of claims does not make it
// Bound again; nor who read the claim before the volume.
func TestB2AVolumeThatAnotherHasReleasedIsNotMadeBoundByALateCache(t *testing.T) {
	requests := At("5", KnownClaim(Naming("a")))
	free := At("10", KnownVolume("a", InPhase(corev1.VolumePending)))
	released := At("40", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased)))
	next := At("30", KnownClaim(OfUID("uid-9")))
	t.Run("its first write gets a conflict", func(t *testing.T) {
		d := newTalk(t, decision.Options{}, DataKey, requests, free)
		d.starts().says("B1 Read pvc/default/data").gets(requests, nil).says("B1 UpdateVolume pv/a")
		d.gets(nil, apierrors.NewConflict(corev1.Resource("persistentvolumes"), "a", errors.New("changed"))).says("B6 Read pv/a").gets(released, nil)
		d.says("B2 Read pvc/default/data").gets(next, nil)
		assert.NotEqual(t, obj.VolumeKey("a"), d.step.Action.Target(), "%s", d.step.Action)
	})
	for name, phase := range map[string]corev1.PersistentVolumePhase{"another has gone on": corev1.VolumeBound, "it may have been sent by a proxy": corev1.VolumeAvailable} {
		t.Run("its first write gets a conflict, and its claim goes: "+name, func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, requests, free)
			d.starts().says("B1 Read pvc/default/data").gets(requests, nil).says("B1 UpdateVolume pv/a")
			shows := At("40", KnownVolume("a", InPhase(phase), WithPolicy(corev1.PersistentVolumeReclaimDelete)))
			shows.Spec.ClaimRef = d.step.Action.Complete().Volume.Spec.ClaimRef.DeepCopy()
			d.gets(nil, apierrors.NewConflict(corev1.Resource("persistentvolumes"), "a", errors.New("changed"))).says("B6 Read pv/a").gets(shows, nil)
			d.gets(nil, apierrors.NewConflict(corev1.Resource("persistentvolumes"), "a", errors.New("changed")))
			d.state.ObserveDeleted(requests)
			for !d.step.Done {
				d.took(d.state.Proceed(d.key, engine.Reply{Err: ErrConnection}))
			}
			step := reads(t, d.state, d.state.Start(obj.VolumeKey("a")), obj.VolumeKey("a"), shows)
			assert.Equal(t, "B1 UpdateVolume pv/a", step.Action.Rule+" "+string(step.Action.Kind)+" "+step.Action.Target().String(), "it is retained")
		})
	}
	t.Run("the claim was read before the volume", func(t *testing.T) {
		lost := At("50", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)))
		d := newTalk(t, decision.Options{}, DataKey, lost, At("20", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))))
		d.state.Recheck(At("49", lost.DeepCopy()))
		d.starts().says("B6 Read pvc/default/data").gets(lost, nil).says("C11 Read pv/a").gets(released, nil).says("B2 Read pvc/default/data")
	})
}

// V1, M2: what was made for a claim was given to another one, and its claimRef is removed. The list has both, the one that it was made for first. The one that is
// Bound to it has it.
func TestV1WhoIsBoundComesBeforeWhoItWasMadeFor(t *testing.T) {
	free := KnownVolume(OwnKey.Name, InPhase(corev1.VolumeBound), VolumeNote(ProvisionedBy, Own))
	waits, bound := KnownClaim(RequestingClass(new("fast"))), KnownClaim(Named("other"), OfUID("uid-2"), BoundTo(OwnKey.Name))
	d := newTalk(t, decision.Options{}, OwnKey, waits, free)
	d.starts().says("V1 Read pvc")
	d.took(d.state.Proceed(d.key, engine.Reply{Claims: []*corev1.PersistentVolumeClaim{waits, bound}}))
	d.says("V1 Read pvc/default/data").gets(waits, nil).says("V1 Read pvc/default/other").gets(bound, nil)
	assert.False(t, d.step.Action.Writes(), "%s", d.step.Action)
	assert.Contains(t, d.step.Next, obj.KeyOf(bound))

	for name, slip := range map[string]VolumeEdit{
		"C11 also after a slip in its UID":                             RefersTo("default", "other", "uid-slip"),
		"C11 also after the claim it was made for was written into it": BoundToClaim,
	} {
		t.Run(name, func(t *testing.T) {
			has := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
				return At(version, KnownVolume(OwnKey.Name, append(edits, InPhase(corev1.VolumeBound), VolumeNote(ProvisionedBy, Own))...))
			}
			d := newTalk(t, decision.Options{}, obj.KeyOf(bound), waits, bound, has("10", RefersToOther), has("20", slip), has("30"))
			d.took(reads(t, d.state, d.starts().step, d.key, waits, bound, has("30")))
			require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
			assert.Equal(t, bound.UID, d.step.Action.Complete().Volume.Spec.ClaimRef.UID)
		})
	}
}

// C11, V1: a claimRef that had another claim's UID is removed. That claim may be Bound by now, which a late cache does not show: the volume is
// not given back to the one that had it before.
func TestC11AClaimRefThatWasAnothersIsRemoved(t *testing.T) {
	at := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		return At(version, KnownVolume("a", append(edits, InPhase(corev1.VolumeBound))...))
	}
	bound, other := At("5", KnownClaim(BoundTo("a"))), At("30", KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("a")))
	for name, claim := range map[string]*corev1.PersistentVolumeClaim{
		"and the former claim is there":          bound,
		"and the former claim has no annotation": At("5", KnownClaim(BoundTo("a"), WithoutNote(Completed))),
		"and the former claim is being deleted":  At("5", KnownClaim(BoundTo("a"), ClaimBeingDeleted, ClaimFinalizers(reclaim.ClaimProtection))),
	} {
		t.Run("C11 V1 "+name, func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, claim, at("10", BoundToClaim), at("20", RefersToOther), at("40"))
			d.starts().says("V1 Read pvc")
			d.took(d.state.Proceed(d.key, engine.Reply{Claims: []*corev1.PersistentVolumeClaim{claim, other}}))
			d.says("V1 Read pvc/default/data").gets(claim, nil).says("V1 Read pvc/default/other").gets(other, nil)
			assert.NotEqual(t, "B1", d.step.Action.Rule, "%s", d.step.Action)
		})
	}
	t.Run("C11 V1 and the volume is made again, of which the former claim is known to have had one", func(t *testing.T) {
		lost, again := At("35", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), At("40", KnownVolume("a", InPhase(corev1.VolumePending)))
		again.UID = "uid-again"
		d := newTalk(t, decision.Options{}, DataKey, bound, At("6", KnownClaim(Named("other"), OfUID("uid-2"), Naming("a"))), at("10", BoundToClaim), at("20", RefersToOther), lost, again)
		d.starts().says("V1 Read pvc")
		d.took(d.state.Proceed(d.key, engine.Reply{Claims: []*corev1.PersistentVolumeClaim{lost, other}}))
		d.says("V1 Read pvc/default/data").gets(lost, nil).says("V1 Read pvc/default/other").gets(other, nil)
		assert.NotEqual(t, "B1", d.step.Action.Rule, "%s", d.step.Action)
	})
	t.Run("C11 it has its claimRef again where nobody else is Bound to it", func(t *testing.T) {
		d := newTalk(t, decision.Options{}, DataKey, bound, at("10", BoundToClaim), at("20", RefersToOther), at("40"))
		d.starts().says("V1 Read pvc").gets(nil, nil).says("B1 Read pvc/default/data").gets(bound, nil).says("B1 UpdateVolume pv/a")
	})
	for name, shown := range map[string][]obj.Object{
		"of its own claimRef":        {at("10", BoundToClaim), at("40")},
		"of its own that came back":  {at("10", RefersToOther), at("20", BoundToClaim), at("40")},
		"of nothing but no claimRef": {at("40")},
		"of another volume's of it":  {func() obj.Object { v := at("10", RefersToOther); v.UID = "uid-before"; return v }(), at("40")},
	} {
		t.Run("C11 none is listed where it is known "+name, func(t *testing.T) {
			d := newTalk(t, decision.Options{}, DataKey, append([]obj.Object{bound}, shown...)...)
			d.starts().says("B1 Read pvc/default/data").gets(bound, nil).says("B1 UpdateVolume pv/a")
		})
	}
}

// M2: a volume is made again whose claim is Lost since it went, or before. That claim owns it, whatever others ask for, and however often
// it is made.
func TestM2ALostClaimOwnsWhatIsMadeAgain(t *testing.T) {
	lost := At("30", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)))
	other := KnownClaim(Named("other"), OfUID("uid-2"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
	names := KnownClaim(Named("names"), OfUID("uid-3"), Naming("a"))
	slip := At("15", KnownVolume("a", RefersTo("shop", "data", "uid-1"), InPhase(corev1.VolumeBound)))
	madeAgain := func(state *engine.State, version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		volume := At(version, KnownVolume("a", append(edits, InPhase(corev1.VolumePending))...))
		volume.UID = types.UID("uid-of-" + version)
		assert.Contains(t, state.Observe(volume), DataKey)
		return volume
	}
	reads := func(state *engine.State, of *corev1.PersistentVolumeClaim) engine.Step {
		step := state.Start(DataKey)
		for !step.Done && step.Action.Kind == decision.Read {
			reply := engine.Reply{Object: of}
			if step.Action.Key == obj.ClaimsKey() {
				reply = engine.Reply{Claims: []*corev1.PersistentVolumeClaim{of}}
			}
			step = state.Proceed(DataKey, reply)
		}
		return step
	}
	for name, goes := range map[string]func(*engine.State, *corev1.PersistentVolume){
		"it is Lost since": func(state *engine.State, volume *corev1.PersistentVolume) {
			state.ObserveDeleted(volume)
			state.Observe(lost)
		},
		"it is Lost before": func(state *engine.State, volume *corev1.PersistentVolume) {
			state.Observe(lost)
			state.ObserveDeleted(volume)
		},
		"it is Lost by a slip": func(state *engine.State, volume *corev1.PersistentVolume) {
			state.Observe(slip)
			state.Observe(lost)
			state.ObserveDeleted(volume)
		},
		"it is Lost by another claim, which did not get it": func(state *engine.State, volume *corev1.PersistentVolume) {
			edited := At("15", KnownVolume("a", RefersTo("shop", "gone", "uid-gone"), InPhase(corev1.VolumeBound)))
			state.Observe(edited)
			state.Observe(lost)
			state.Observe(KnownClaim(Named("gone"), OfUID("uid-gone"), func(c *corev1.PersistentVolumeClaim) { c.Namespace, c.Status.Phase = "shop", corev1.ClaimPending }))
			retained := At("16", KnownVolume("a", RefersTo("shop", "gone", "uid-gone"), InPhase(corev1.VolumeReleased), WithPolicy(corev1.PersistentVolumeReclaimRetain)))
			state.Observe(retained)
			state.ObserveDeleted(retained)
		},
		"it is Lost by another claim, which names it and is being deleted": func(state *engine.State, volume *corev1.PersistentVolume) {
			edited := At("15", KnownVolume("a", RefersTo("shop", "goes", "uid-goes"), InPhase(corev1.VolumeBound)))
			state.Observe(edited)
			state.Observe(lost)
			state.Observe(KnownClaim(Named("goes"), OfUID("uid-goes"), Naming("a"), ClaimBeingDeleted, func(c *corev1.PersistentVolumeClaim) { c.Namespace = "shop" }))
			state.ObserveDeleted(edited)
		},
		"it is Lost by another claim, which names it and goes, behind a slip": func(state *engine.State, volume *corev1.PersistentVolume) {
			goes := KnownClaim(Named("goes"), OfUID("uid-goes"), Naming("a"), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "shop" })
			edited := At("15", KnownVolume("a", RefersTo("shop", "gose", "uid-goes"), InPhase(corev1.VolumeBound)))
			for _, object := range []obj.Object{goes, edited, lost} {
				state.Observe(object)
			}
			state.ObserveDeleted(goes)
			state.ObserveDeleted(edited)
		},
		"it is Lost since, and many others go": func(state *engine.State, volume *corev1.PersistentVolume) {
			state.ObserveDeleted(volume)
			state.Observe(lost)
			manyOthersGo(state)
			state.Observe(At("31", lost.DeepCopy()))
		},
		"its status could not be written, and many others go meanwhile": func(state *engine.State, volume *corev1.PersistentVolume) {
			state.ObserveDeleted(volume)
			manyOthersGo(state)
			state.Observe(lost)
		},
		"a person has taken it away under an announcement": func(state *engine.State, volume *corev1.PersistentVolume) {
			leaving := At("20", volume.DeepCopy())
			BeingDeleted(leaving)
			leaving.Annotations = map[string]string{reclaim.AnnouncementAnnotation: `{"by":"another","token":5}`}
			leaving.Finalizers = []string{reclaim.AnnouncementFinalizer}
			state.Observe(leaving)
			state.ObserveDeleted(leaving)
			state.Observe(lost)
		},
	} {
		gone := func() *engine.State {
			state := engine.New(Unprotected(decision.Options{}), 10)
			volume := At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
			for _, object := range []obj.Object{volume, KnownClaim(BoundTo("a")), other, names} {
				state.Observe(object)
			}
			goes(state, volume)
			return state
		}
		t.Run("M2 "+name, func(t *testing.T) {
			state := gone()
			for _, again := range []string{"40", "41"} {
				volume := madeAgain(state, again)
				for _, key := range []obj.Key{obj.KeyOf(other), obj.KeyOf(names)} {
					for step := state.Start(key); !step.Done; step = state.Proceed(key, engine.Reply{Object: step.Action.Claim}) {
						assert.Equal(t, decision.UpdateClaimStatus, step.Action.Kind, "%s gets nothing: %s", key, step.Action)
					}
				}
				state.ObserveDeleted(volume)
			}
			madeAgain(state, "42")
			assert.Equal(t, "B1", reads(state, state.Known(DataKey).(*corev1.PersistentVolumeClaim)).Action.Rule)
		})
		t.Run("C11 C12 its last act is to have the claimRef written: "+name, func(t *testing.T) {
			state := gone()
			madeAgain(state, "40")
			leaving := At("50", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), ClaimBeingDeleted))
			state.Observe(leaving)
			assert.Equal(t, "B1", reads(state, leaving).Action.Rule)
		})
		t.Run("C7 it does not fit, and is the claim's all the same, which both are told: "+name, func(t *testing.T) {
			state := gone()
			madeAgain(state, "40", Sized("1Mi"))
			step := reads(state, state.Known(DataKey).(*corev1.PersistentVolumeClaim))
			var told []string
			for _, event := range step.Action.Events {
				told = append(told, string(event.Reason)+" "+event.On.String())
			}
			assert.Equal(t, []string{"VolumeMismatch pvc/default/data", "VolumeMismatch pv/a"}, told)
			assert.Equal(t, types.UID("uid-1"), step.Action.Complete().Volume.Spec.ClaimRef.UID, "its claim may be gone at any time")
		})
	}
}

// R8, X10: what is made again under a Lost claim carries an announcement, and waits for a person. Both are told so, once, whatever else comes of the claim.
func TestX10WhatIsMadeAgainWithAnAnnouncementIsTold(t *testing.T) {
	announced := VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"me","token":5}`)
	provisioning := ClaimFinalizers(decision.ProvisioningFinalizer)
	for name, edits := range map[string][]ClaimEdit{
		"nothing else": nil,
		"C12 it is being deleted, and kept by others": {ClaimBeingDeleted, ClaimFinalizers("example.com/kept")},
		"P2 its tenant keeps it":                      {ClaimBeingDeleted, provisioning},
		"P2 its tenant announces something on it":     {provisioning, ClaimNote(reclaim.AnnouncementAnnotation, `{"by":"another","token":5,"seconds":3600}`)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTalk(t, decision.Options{Identity: "me"}, DataKey, At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), KnownClaim(BoundTo("a")))
			d.state.ObserveDeleted(d.state.Known(obj.VolumeKey("a")))
			d.state.Observe(At("30", KnownClaim(append(edits, BoundTo("a"), ClaimPhase(corev1.ClaimLost))...)))
			again := At("40", KnownVolume("a", InPhase(corev1.VolumePending), announced))
			again.UID = "uid-again"
			d.state.Observe(again)
			for range 2 {
				for d.starts(); !d.step.Done; {
					d.again()
				}
				d.ends()
			}
			var told []string
			for _, event := range d.published {
				if event != "Warning ProvisioningCleanupFailed" {
					told = append(told, event)
				}
			}
			assert.Equal(t, []string{"Warning VolumeFailedDelete", "Warning FailedBinding"}, told, "X8: once")
		})
	}
}

// M2: a controller that starts sees a Lost claim, and its volume under an announcement, whose finalizers somebody takes off then.
func TestM2ALostClaimOwnsWhatIsTakenAwayUnderAnAnnouncement(t *testing.T) {
	state, other := engine.New(Unprotected(decision.Options{}), 10), KnownClaim(Named("other"), OfUID("uid-2"))
	leaving := At("20", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), BeingDeleted, VolumeFinalizers(reclaim.AnnouncementFinalizer), VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"another","token":5}`)))
	again := At("40", KnownVolume("a", InPhase(corev1.VolumePending)))
	again.UID = "uid-again"
	for _, object := range []obj.Object{leaving, At("15", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), other} {
		state.Observe(object)
	}
	state.ObserveDeleted(leaving)
	state.Observe(again)
	for step := state.Start(obj.KeyOf(other)); !step.Done; step = state.Proceed(obj.KeyOf(other), engine.Reply{Object: step.Action.Claim}) {
		require.Equal(t, decision.UpdateClaimStatus, step.Action.Kind, "it gets nothing: %s", step.Action)
	}
}

// M2, C6: who takes bind-completed off a claim has Pending written over Bound and Lost. It owns what is made again none the less.
func TestM2WhoTakesBindCompletedOffOwnsWhatIsMadeAgain(t *testing.T) {
	for _, size := range []string{"1Gi", "1Mi"} {
		for _, when := range []string{"once it is Lost", "while it is Bound", "and a slip in claimRef", "and a slip in its UID", "and claimRef without UID", "and it is made again twice", "and etcd is restored"} {
			t.Run("M2 C6 "+size+", "+when, func(t *testing.T) {
				cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
				require.NoError(t, cluster.Settle(t.Context()))
				slips := map[string]func(*corev1.ObjectReference){
					"and a slip in claimRef":   func(ref *corev1.ObjectReference) { ref.Name = "dtaa" },
					"and a slip in its UID":    func(ref *corev1.ObjectReference) { ref.UID += "x" },
					"and claimRef without UID": func(ref *corev1.ObjectReference) { ref.UID = "" },
				}
				if slip := slips[when]; slip != nil {
					volume := cluster.Volume("pv")
					slip(volume.Spec.ClaimRef)
					_, err := cluster.Update(t.Context(), volume)
					require.NoError(t, err)
					require.NoError(t, cluster.Settle(t.Context()))
				} else {
					vanish(t, cluster, obj.VolumeKey("pv"))
				}
				if when == "once it is Lost" {
					require.NoError(t, cluster.Settle(t.Context()))
				}
				claim := cluster.Claim("default", "data")
				delete(claim.Annotations, Completed)
				delete(claim.Annotations, BoundBy)
				_, err := cluster.Update(t.Context(), claim)
				require.NoError(t, err)
				require.NoError(t, cluster.Settle(t.Context()))
				if cluster.Volume("pv") != nil {
					vanish(t, cluster, obj.VolumeKey("pv"))
					require.NoError(t, cluster.Settle(t.Context()))
				}
				require.NotEqual(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase, "C6, C10")
				if when == "and etcd is restored" {
					snapshot := cluster.Snapshot()
					touched := cluster.Claim("default", "data")
					touched.Labels = map[string]string{"touched": "since"}
					_, err := cluster.Update(t.Context(), touched)
					require.NoError(t, err)
					require.NoError(t, cluster.Settle(t.Context()))
					cluster.Restore(snapshot)
					require.NoError(t, cluster.Settle(t.Context()))
				}
				if when == "and it is made again twice" {
					_, err := cluster.Create(t.Context(), bindingtest.Volume("pv", size))
					require.NoError(t, err)
					vanish(t, cluster, obj.VolumeKey("pv"))
				}
				for _, object := range []obj.Object{bindingtest.Claim("another", "names", "1Mi", Naming("pv")), bindingtest.Volume("pv", size)} {
					_, err := cluster.Create(t.Context(), object)
					require.NoError(t, err)
				}
				require.NoError(t, cluster.Settle(t.Context()))
				assert.NotEqual(t, corev1.ClaimBound, cluster.Claim("another", "names").Status.Phase)
				assertBound(t, cluster)
			})
		}
	}
}

// V1, M2: the owner of what is made again gets it before a list of all claims is had: it may be deleted meanwhile.
func TestM2AnOwnerNeedsNoListOfAllClaims(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
	require.NoError(t, cluster.Settle(t.Context()))
	vanish(t, cluster, obj.VolumeKey("pv"))
	require.NoError(t, cluster.Settle(t.Context()))
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb == bindingtest.VerbList {
			return errors.New("no list")
		}
		return do()
	})
	_, err := cluster.Create(t.Context(), bindingtest.Volume("pv", "1Gi"))
	require.NoError(t, err)
	require.NoError(t, cluster.Settle(t.Context()))
	assertBound(t, cluster)
}

// F2, C11: the end of a volume is seen after it was read, and before its claim is let go. One without claimRef may be in its place: it is read again.
func TestF2AnOwnerIsNotLetGoByAReadFromBeforeTheEndOfItsVolume(t *testing.T) {
	claim, volume := KnownClaim(BoundTo("a"), ClaimBeingDeleted, ClaimFinalizers(ClaimProtection)), KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))
	d := &talk{T: t, state: engine.New(decision.Options{}, 10), key: DataKey, version: 100}
	d.state.Observe(claim)
	d.state.Observe(volume)
	d.starts().says("F2 Read pv/a").again().says("F2 Read pods/default")
	d.state.ObserveDeleted(volume)
	d.gets(nil, nil).says("F2 Read pv/a")
}

// F2, C11: a cache of volumes shows only after their owner was to be let go what is made again, or that a claimRef is removed. The claim may be Lost by then, or Bound.
func TestF2AnOwnerIsNotLetGoByALateCache(t *testing.T) {
	retained := func() *corev1.PersistentVolume {
		return bindingtest.Volume("pv", "1Gi", WithPolicy(corev1.PersistentVolumeReclaimRetain))
	}
	makeAgain := func(t *testing.T, cluster *Driven) {
		_, err := cluster.Create(t.Context(), retained())
		require.NoError(t, err)
	}
	change := func(t *testing.T, cluster *Driven, edit VolumeEdit) {
		volume := cluster.Volume("pv")
		edit(volume)
		_, err := cluster.Update(t.Context(), volume)
		require.NoError(t, err)
	}
	for name, edit := range map[string]func(t *testing.T, cluster *Driven){
		"made again once its claim is Lost": func(t *testing.T, cluster *Driven) {
			vanish(t, cluster, obj.VolumeKey("pv"))
			require.NoError(t, cluster.Settle(t.Context()))
			cluster.Hold(obj.KindVolume)
			makeAgain(t, cluster)
		},
		"made again": func(t *testing.T, cluster *Driven) {
			cluster.Hold(obj.KindVolume)
			vanish(t, cluster, obj.VolumeKey("pv"))
			makeAgain(t, cluster)
		},
		"its claimRef is removed": func(t *testing.T, cluster *Driven) {
			cluster.Hold(obj.KindVolume)
			change(t, cluster, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
		},
		"a slip in its claimRef is removed": func(t *testing.T, cluster *Driven) {
			change(t, cluster, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID += "x" })
			require.NoError(t, cluster.Settle(t.Context()))
			cluster.Hold(obj.KindVolume)
			change(t, cluster, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
		},
	} {
		t.Run("F2 C11 "+name, func(t *testing.T) {
			cluster := NewDriven(retained(), bindingtest.Claim("default", "data", "1Gi"))
			require.NoError(t, cluster.Settle(t.Context()))
			edit(t, cluster)
			require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
			require.NoError(t, cluster.Settle(t.Context()))
			require.Nil(t, cluster.Claim("default", "data"), "it is let go")
			cluster.Driver.Release(obj.KindVolume)
			_, err := cluster.Create(t.Context(), bindingtest.Claim("another", "names", "1Mi", Naming("pv")))
			require.NoError(t, err)
			require.NoError(t, cluster.Settle(t.Context()))
			assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
			assert.NotEqual(t, corev1.ClaimBound, cluster.Claim("another", "names").Status.Phase)
		})
	}
}

// manyOthersGo has so many other volumes go that those before are forgotten: see tombstones.
func manyOthersGo(state *engine.State) {
	for n := range 8200 {
		name := fmt.Sprint("other-", n)
		state.ObserveDeleted(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
}

// M2, V1: of two claims that were Bound to a volume without claimRef both are its owners when it is made again, and a name decides nothing.
func TestM2SeveralLostClaimsOwnWhatIsMadeAgain(t *testing.T) {
	a, another := obj.VolumeKey("a"), obj.ClaimKey("default", "another")
	state := engine.New(Unprotected(decision.Options{}), 10)
	volume := At("10", KnownVolume("a", InPhase(corev1.VolumeBound)))
	state.Observe(volume)
	for _, edits := range [][]ClaimEdit{{BoundTo("a")}, {BoundTo("a"), Named("another")}} {
		state.Observe(KnownClaim(edits...))
	}
	state.ObserveDeleted(volume)
	for _, edits := range [][]ClaimEdit{{BoundTo("a")}, {BoundTo("a"), Named("another")}} {
		state.Observe(At("30", KnownClaim(append(edits, ClaimPhase(corev1.ClaimLost))...)))
	}
	again := At("40", KnownVolume("a", InPhase(corev1.VolumePending)))
	again.UID = "uid-again"
	state.Observe(again)
	for _, key := range []obj.Key{a, DataKey, another} {
		step := state.Start(key)
		require.True(t, step.Done, "%s: %s", key, step.Action)
		require.Len(t, step.Publish, 1)
		assert.Contains(t, step.Publish[0].Message, "default/", "%s is told whose it may be", key)
	}
}

// W8, M2: a volume was made again, and given back to the name of the Lost claim that had it before the restore. That claim owns it still when
// it is made again once more.
func TestM2W8ALostClaimOwnsWhatWasGivenBack(t *testing.T) {
	state := engine.New(Unprotected(decision.Options{}), 10)
	made := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		volume := At(version, KnownVolume("a", edits...))
		volume.UID = types.UID("uid-of-" + version)
		state.Observe(volume)
		return volume
	}
	first := made("30", BoundToClaim, InPhase(corev1.VolumeBound))
	state.Observe(At("31", KnownClaim(BoundTo("a"))))
	state.ObserveRestore()
	state.ObserveDeleted(first)
	lost := KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))
	state.Observe(At("32", lost))
	given := made("20", PreBound, InPhase(corev1.VolumePending))
	state.Observe(At("33", lost.DeepCopy()))
	state.ObserveDeleted(given)
	made("40", InPhase(corev1.VolumePending))
	state.Observe(At("41", KnownClaim(Named("other"), OfUID("uid-3"), Naming("a"), ClaimPhase(corev1.ClaimPending))))
	state.OutwaitCalls()
	step := state.Start(obj.ClaimKey("default", "other"))
	for !step.Done && step.Action.Kind == decision.Read {
		step = state.Proceed(obj.ClaimKey("default", "other"), engine.Reply{Object: state.Known(step.Action.Key)})
	}
	assert.NotEqual(t, "B1", step.Action.Rule, "%s", step.Action)
}

// M2, W8: a claim that is Lost in a backup, and was healed later, owns the volume that is made again after the restore.
func TestM2W8AClaimThatIsLostInTheBackupOwnsWhatIsMadeAgain(t *testing.T) {
	a := obj.VolumeKey("a")
	lost := At("20", KnownClaim(BoundTo("a"), func(c *corev1.PersistentVolumeClaim) {
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}
	}))
	again := At("25", KnownVolume("a", InPhase(corev1.VolumePending), func(v *corev1.PersistentVolume) { v.UID = "uid-again" }))
	for name, order := range map[string][]obj.Key{
		"the volume is read first": {a, DataKey},
		"the claim is read first":  {DataKey, a},
	} {
		t.Run("M2 W8 "+name, func(t *testing.T) {
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(At("30", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))))
			state.Observe(At("31", KnownClaim(BoundTo("a"))))
			state.ObserveRestore()
			state.OutwaitCalls()
			for _, key := range order {
				require.True(t, reads(t, state, state.Start(key), key, lost).Done)
			}
			state.Observe(again)
			step := reads(t, state, state.Start(a), a, again, lost)
			assert.True(t, step.Done, "%s", step.Action)
			step = reads(t, state, state.Start(DataKey), DataKey, again, lost)
			require.Equal(t, "B1 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
			assert.Equal(t, lost.UID, step.Action.Complete().Volume.Spec.ClaimRef.UID)
		})
	}
}

// M2, W8, C6: a claim from which bind-completed was removed before the backup is read as that has it. It owns what is made again none the less.
func TestM2W8AClaimThatIsPendingInTheBackupOwnsWhatIsMadeAgain(t *testing.T) {
	a, had := obj.VolumeKey("a"), At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
	pending := func(version string) *corev1.PersistentVolumeClaim {
		return At(version, KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimPending)))
	}
	state := engine.New(Unprotected(Hooked()), 10)
	state.Observe(had)
	state.Observe(At("11", KnownClaim(BoundTo("a"))))
	state.ObserveDeleted(had)
	state.Observe(pending("30"))
	state.ObserveRestore()
	state.OutwaitCalls()
	for _, key := range []obj.Key{DataKey, a} {
		require.True(t, reads(t, state, state.Start(key), key, pending("20")).Done)
	}
	require.Equal(t, "20", state.Known(DataKey).GetResourceVersion())
	again := At("25", KnownVolume("a", InPhase(corev1.VolumePending), func(v *corev1.PersistentVolume) { v.UID = "uid-again" }))
	other := At("26", KnownClaim(Named("other"), OfUID("uid-3"), Naming("a"), ClaimPhase(corev1.ClaimPending)))
	state.Observe(again)
	state.Observe(other)

	step := reads(t, state, state.Start(obj.KeyOf(other)), obj.KeyOf(other), again, pending("20"), other)
	assert.NotEqual(t, "B1", step.Action.Rule, "%s", step.Action)
	step = reads(t, state, state.Start(DataKey), DataKey, again, pending("20"), other)
	assert.Equal(t, "B1 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
}

// M2, W8: a claim named its volume before it was Bound to it, and the backup is from in between. It owns what is made again after the restore.
func TestM2W8AClaimThatNamedItsVolumeOwnsWhatIsMadeAgain(t *testing.T) {
	a, recycle := obj.VolumeKey("a"), WithPolicy(corev1.PersistentVolumeReclaimRecycle)
	back := At("4", KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimPending)))
	again := At("25", KnownVolume("a", InPhase(corev1.VolumePending), recycle, func(v *corev1.PersistentVolume) { v.UID = "uid-again" }))
	other := At("26", KnownClaim(Named("other"), OfUID("uid-3")))
	gone := RefersTo("default", "gone", "uid-gone")
	for shows, volume := range map[string]*corev1.PersistentVolume{
		"reserved for it":            KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), recycle),
		"not reclaimed for a former": KnownVolume("a", gone, InPhase(corev1.VolumeReleased)),
		"not recycled for a former":  KnownVolume("a", gone, InPhase(corev1.VolumeFailed), recycle),
	} {
		for name, order := range map[string][]obj.Key{"the volume is read first": {a, DataKey}, "the claim is read first": {DataKey, a}} {
			for was, deleted := range map[string]bool{"": false, ", it was deleted since the backup": true} {
				t.Run("M2 W8 "+shows+", "+name+was, func(t *testing.T) {
					state, volume, bound := engine.New(Unprotected(Hooked()), 10), At("5", volume.DeepCopy()), At("21", KnownClaim(BoundTo("a")))
					state.Observe(At("20", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), recycle)))
					state.Observe(bound)
					if deleted {
						state.ObserveDeleted(bound)
					}
					state.ObserveRestore()
					for _, key := range order {
						if deleted && key == DataKey {
							state.Observe(back)
						}
						for step := reads(t, state, state.Start(key), key, volume, back); !step.Done; {
							reply := engine.Reply{Err: ErrConnection}
							if step.Action.Rule == "W8" { // it is retained
								volume = At("6", step.Action.Complete().Volume.DeepCopy())
								reply = engine.Reply{Object: volume}
							}
							step = state.Proceed(key, reply)
						}
					}
					state.Observe(again)
					state.Observe(other)
					state.OutwaitCalls()
					step := reads(t, state, state.Start(obj.KeyOf(other)), obj.KeyOf(other), again, back, other)
					assert.True(t, step.Done, "%s", step.Action)
					step = reads(t, state, state.Start(DataKey), DataKey, again, back)
					require.Equal(t, "B1 UpdateVolume", step.Action.Rule+" "+string(step.Action.Kind))
					assert.Equal(t, back.UID, step.Action.Complete().Volume.Spec.ClaimRef.UID)
				})
			}
		}
	}
}

// M2, W8: the claim was seen Bound, and its volume only as of the backup, by a watch that was late, before it is made again. It is the claim's if that had it.
func TestM2W8AClaimOwnsWhatIsMadeAgainOfWhatWasNotSeenBefore(t *testing.T) {
	back, other := At("4", KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimPending))), At("26", KnownClaim(Named("other"), OfUID("uid-3")))
	again := At("25", KnownVolume("a", InPhase(corev1.VolumePending), func(v *corev1.PersistentVolume) { v.UID = "uid-again" }))
	for was, gets := range map[corev1.PersistentVolumeClaimPhase]bool{corev1.ClaimBound: false, corev1.ClaimPending: true} {
		t.Run("M2 W8 "+string(was), func(t *testing.T) {
			state := engine.New(Unprotected(Hooked()), 10)
			state.Observe(At("21", KnownClaim(BoundTo("a"), ClaimPhase(was))))
			state.ObserveRestore()
			for step := reads(t, state, state.Start(DataKey), DataKey, back); !step.Done; {
				step = state.Proceed(DataKey, engine.Reply{Err: ErrConnection})
			}
			state.Observe(At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable))))
			state.Observe(again)
			state.Observe(other)
			state.OutwaitCalls()
			step := reads(t, state, state.Start(obj.KeyOf(other)), obj.KeyOf(other), again, back, other)
			assert.Equal(t, gets, !step.Done, "%s", step.Action)
		})
	}
}

// M2: a Lost claim owns no volume that has been another's since it was made again.
func TestM2ALostClaimOwnsNothingThatIsAnothers(t *testing.T) {
	a, other := obj.VolumeKey("a"), KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("a"))
	state := engine.New(Unprotected(decision.Options{}), 10)
	first := At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
	state.Observe(first)
	state.Observe(At("30", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))))
	state.ObserveDeleted(first)
	again := func(version string, edits ...VolumeEdit) *corev1.PersistentVolume {
		volume := At(version, KnownVolume("a", edits...))
		volume.UID = "uid-again"
		return volume
	}
	state.Observe(again("40", RefersTo("default", "other", "uid-2"), InPhase(corev1.VolumeBound)))
	state.Observe(other)
	state.Observe(again("50", InPhase(corev1.VolumeBound)))
	assert.Equal(t, []obj.Key{obj.KeyOf(other)}, state.Start(a).Next, "C11 it gets its claimRef again")
}

// M2, C11: a volume was handed over to another claim, which has it, and is made again. It is that one's, and not of the Lost one that had it before.
func TestM2WhoWasGivenAVolumeOwnsWhatIsMadeAgain(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
	require.NoError(t, cluster.Settle(t.Context()))
	other, err := cluster.Create(t.Context(), bindingtest.Claim("default", "other", "1Gi"))
	require.NoError(t, err)
	volume := cluster.Volume("pv")
	volume.Spec.ClaimRef.Name, volume.Spec.ClaimRef.UID = "other", other.GetUID()
	_, err = cluster.Update(t.Context(), volume)
	require.NoError(t, err)
	require.NoError(t, cluster.Settle(t.Context()))
	require.Equal(t, corev1.ClaimLost, cluster.Claim("default", "data").Status.Phase)
	vanish(t, cluster, obj.VolumeKey("pv"))
	require.NoError(t, cluster.Settle(t.Context()))
	_, err = cluster.Create(t.Context(), bindingtest.Volume("pv", "1Gi"))
	require.NoError(t, err)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "other").Status.Phase)
	assert.Equal(t, corev1.ClaimLost, cluster.Claim("default", "data").Status.Phase)
}

// M2, X3: a claim that its tenant has made Lost, by bind-completed, has its UID in the claimRef of a volume that is made again, and never gets that. It does not take the place of the
// one that had the volume.
func TestM2WhoIsLostByItsTenantIsNoOtherOwner(t *testing.T) {
	for _, name := range []string{"thief", "thefi"} {
		t.Run(name, func(t *testing.T) {
			was := At("5", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)))
			thief := At("6", KnownClaim(Named("thief"), OfUID("uid-thief"), BoundTo("a"), ClaimPhase(corev1.ClaimLost)))
			lost := At("30", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)))
			named := func(version string, edit VolumeEdit) *corev1.PersistentVolume {
				volume := At(version, KnownVolume("a", edit, InPhase(corev1.VolumePending)))
				volume.UID = types.UID("uid-of-" + version)
				return volume
			}
			slipped, again := named("20", RefersTo("default", name, "uid-thief")), named("40", func(*corev1.PersistentVolume) {})
			d := newTalk(t, decision.Options{}, obj.KeyOf(thief), was, KnownClaim(BoundTo("a")), thief)
			d.state.ObserveDeleted(was)
			d.state.Observe(slipped)
			d.state.Observe(lost)
			d.state.ObserveDeleted(slipped)
			d.state.Observe(again)
			d.took(reads(t, d.state, d.starts().step, d.key, again, lost, thief))
			assert.NotEqual(t, "B1", d.step.Action.Rule, "%s", d.step.Action)
			d.state.ObserveDeleted(thief)
			d.key = DataKey
			d.took(reads(t, d.state, d.starts().step, d.key, again, lost))
			require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
			assert.Equal(t, lost.UID, d.step.Action.Complete().Volume.Spec.ClaimRef.UID)
		})
	}
}

// M2, C11: a slip in the UID of a claimRef makes a claim Lost, and is mended by removing the claimRef. The claim was seen to be Bound, and gets the
// volume again, whether C7 would give it that or not.
func TestM2ASlipInTheUIDLeavesAVolumeToItsClaim(t *testing.T) {
	for name, edit := range map[string]VolumeEdit{
		"that fits":                    Sized("1Gi"),
		"that does not fit any more":   Sized("1Mi"),
		"whose claim is being deleted": Sized("1Gi"),
	} {
		t.Run("M2 a volume "+name, func(t *testing.T) {
			cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
			require.NoError(t, cluster.Settle(t.Context()))
			claim := cluster.Claim("default", "data")
			if name == "whose claim is being deleted" {
				claim.Finalizers = append(claim.Finalizers, "example.com/backup")
				_, err := cluster.Update(t.Context(), claim)
				require.NoError(t, err)
				require.NoError(t, cluster.Delete(t.Context(), DataKey, metav1.DeleteOptions{}))
			}
			slip := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID += "x" }
			for _, edit := range []VolumeEdit{edit, slip, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }} {
				volume := cluster.Volume("pv")
				edit(volume)
				_, err := cluster.Update(t.Context(), volume)
				require.NoError(t, err)
				require.NoError(t, cluster.Settle(t.Context()))
			}
			_, err := cluster.Create(t.Context(), bindingtest.Claim("another", "seeks", "1Mi"))
			require.NoError(t, err)
			require.NoError(t, cluster.Settle(t.Context()))
			assert.Empty(t, cluster.Claim("another", "seeks").Spec.VolumeName)
			assert.Equal(t, claim.UID, cluster.Volume("pv").Spec.ClaimRef.UID)
		})
	}
}

// W3, R3: a volume that is kept for the claim whose UID its claimRef has, whatever that claim's status, is looked at when the claim goes.
func TestW3TheEndOfAClaimThatAVolumeIsKeptFor(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi", func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
	}), bindingtest.Claim("default", "data", "1Gi"))
	require.NoError(t, cluster.Settle(t.Context()))
	volume, claim := cluster.Volume("pv"), cluster.Claim("default", "data")
	volume.Spec.ClaimRef.Name = "dtaa"
	claim.Annotations = nil
	for _, object := range []obj.Object{volume, claim} {
		_, err := cluster.Update(t.Context(), object)
		require.NoError(t, err)
	}
	require.NoError(t, cluster.Settle(t.Context()))
	require.Equal(t, corev1.VolumeBound, cluster.Volume("pv").Status.Phase, "R3 it is kept")
	vanish(t, cluster, DataKey)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.NotEqual(t, corev1.VolumeBound, cluster.Volume("pv").Status.Phase)
}

// A volume populator, or a person, writes a whole claimRef over that of the claim that has the volume. The claim that is given it has another volume by then.
// That is no binding of ours that was not finished: nobody else gets what is on it.
func TestV4AVolumeThatIsHandedOver(t *testing.T) {
	prime := KnownVolume("a", RefersTo("populator", "prime", "uid-prime"), InPhase(corev1.VolumeBound), VolumeNote(BoundBy, "yes"))
	whole := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.ResourceVersion = "7" } // of the claim, as B1 writes it
	handed := KnownVolume("a", BoundToClaim, whole, InPhase(corev1.VolumeBound), VolumeNote(BoundBy, "yes"))
	claim, other := KnownClaim(BoundTo("b")), KnownVolume("b", BoundToClaim, InPhase(corev1.VolumeBound))
	decides := func(t *testing.T, volumes ...*corev1.PersistentVolume) decision.Action {
		key := obj.VolumeKey(volumes[0].Name)
		d := newTalk(t, decision.Options{}, key, claim, other)
		for i, volume := range volumes {
			volumes[i] = At(strconv.Itoa(i+5), volume.DeepCopy())
			d.state.Observe(volumes[i])
		}
		d.took(reads(t, d.state, d.starts().step, key, volumes[len(volumes)-1], claim, other))
		require.True(t, d.step.Action.Writes(), "%s", d.step.Action)
		return d.step.Action.Complete()
	}
	t.Run("V4 X3 it stays reserved for the name", func(t *testing.T) {
		action := decides(t, prime, handed)
		assert.Equal(t, &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: DataKey.Namespace, Name: DataKey.Name}, action.Volume.Spec.ClaimRef)
		assert.Len(t, action.Events, 1)
	})
	t.Run("V4 X3 so it does where the UID was removed before", func(t *testing.T) {
		for _, at := range []corev1.PersistentVolumePhase{corev1.VolumeBound, corev1.VolumeReleased} {
			without := KnownVolume("a", RefersTo("populator", "prime", ""), InPhase(at), VolumeNote(BoundBy, "yes"))
			assert.Equal(t, DataKey, obj.ReferencedClaim(decides(t, prime, without, handed).Volume))
		}
	})
	t.Run("V2 B1 X2 what was made for it, and was another's since, is retained first", func(t *testing.T) {
		made := []VolumeEdit{VolumeNote(ProvisionedBy, "csi.example.com"), WithPolicy(corev1.PersistentVolumeReclaimDelete), VolumeNote(BoundBy, "yes")}
		of := func(edits ...VolumeEdit) *corev1.PersistentVolume {
			return KnownVolume(OwnKey.Name, append(edits, made...)...)
		}
		for _, at := range []corev1.PersistentVolumePhase{corev1.VolumeBound, corev1.VolumeReleased} {
			action := decides(t, of(RefersTo("shop", "data", "uid-shop"), InPhase(corev1.VolumeBound)), of(BoundToClaim, whole, InPhase(at)))
			require.Equal(t, decision.UpdateVolume, action.Kind, "%s", action)
			assert.Equal(t, corev1.PersistentVolumeReclaimRetain, action.Volume.Spec.PersistentVolumeReclaimPolicy)
			assert.Len(t, action.Events, 1)
		}
	})
	t.Run("V4 it was chosen for the claim, once it had no claimRef: it is free again", func(t *testing.T) {
		for _, at := range []corev1.PersistentVolumePhase{corev1.VolumeAvailable, corev1.VolumeBound} { // which a claim that waits for it does not wait for (W1)
			assert.Nil(t, decides(t, prime, KnownVolume("a", InPhase(at)), handed).Volume.Spec.ClaimRef)
		}
	})
}

// TestM2V4LeavesWhoHadTheVolume: a volume is handed over, with the UID, to a claim that has another one, and V4 reserves it for the name of that one. Whose data is on
// it does not change by that write.
func TestM2V4LeavesWhoHadTheVolume(t *testing.T) {
	lost, other := At("30", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("b"))
	handed := func(t *testing.T) *talk {
		d := newTalk(t, Hooked(), AKey, At("10", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), KnownVolume("b", RefersToOther, InPhase(corev1.VolumeBound)), KnownClaim(BoundTo("a")), other)
		for _, object := range []obj.Object{
			At("20", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound))), lost,
			At("40", KnownVolume("a", RefersTo("default", "other", ""), InPhase(corev1.VolumeAvailable), WithPolicy(corev1.PersistentVolumeReclaimRetain))),
		} {
			d.state.Observe(object)
		}
		return d
	}
	t.Run("B1 X2 it is made again for a claim that is gone", func(t *testing.T) {
		d := handed(t)
		again := At("50", KnownVolume("a", RefersTo("shop", "gone", "uid-gone"), InPhase(corev1.VolumePending), DeletedPolicy))
		again.UID = "uid-again"
		d.state.Observe(again)
		d.took(reads(t, d.state, d.starts().step, AKey, again, lost, other))
		require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
		assert.Equal(t, corev1.PersistentVolumeReclaimRetain, d.step.Action.Volume.Spec.PersistentVolumeReclaimPolicy)
	})
	t.Run("B1 X2 or once who has it by then is gone", func(t *testing.T) {
		d, heir := handed(t), At("200", KnownClaim(Named("other"), OfUID("uid-2"), BoundTo("a")))
		has := At("44", KnownVolume("a", RefersToOther, InPhase(corev1.VolumeBound)))
		d.state.Observe(has)
		d.state.Observe(heir)
		d.state.ObserveDeleted(has)
		d.state.ObserveDeleted(heir)
		again := At("50", KnownVolume("a", RefersTo("shop", "gone", "uid-gone"), InPhase(corev1.VolumePending), DeletedPolicy))
		again.UID = "uid-again"
		d.state.Observe(again)
		d.took(reads(t, d.state, d.starts().step, AKey, again, lost))
		require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
	})
	t.Run("M2 X3 it is made again without claimRef", func(t *testing.T) {
		d := handed(t)
		again := At("50", KnownVolume("a", InPhase(corev1.VolumePending)))
		again.UID = "uid-again"
		d.state.Observe(again)
		d.key = DataKey
		d.took(reads(t, d.state, d.starts().step, DataKey, again, lost, other))
		require.Equal(t, "B1 UpdateVolume", d.step.Action.Rule+" "+string(d.step.Action.Kind), "%s", d.step.Action)
		assert.Equal(t, lost.UID, d.step.Action.Complete().Volume.Spec.ClaimRef.UID)
	})
}
