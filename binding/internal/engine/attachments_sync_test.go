package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestR3WhatIsAttachedAsASyncReadsIt(t *testing.T) {
	toList := func(t *testing.T) *talk {
		return newTalk(t, Hooked(), AKey, MadeByOwn()).starts().announces().says("R3 Read volumeattachments")
	}
	noSuchPath := apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{Resource: "volumeattachments"}, "", "404 page not found", 0, true)
	for _, failure := range []error{apierrors.NewNotFound(schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}, ""), noSuchPath, ErrConnection, ErrForbidden} {
		t.Run("R3 a list that fails proves nothing: "+failure.Error(), func(t *testing.T) {
			d := toList(t).gets(nil, failure)
			require.True(t, d.step.Done)
			require.ErrorIs(t, d.step.Err, failure)
			assert.Positive(t, d.step.After, "W6")
		})
	}
	listing := func(d *talk, attachments ...*storagev1.VolumeAttachment) *talk {
		return d.took(d.state.Proceed(d.key, engine.Reply{Attachments: attachments}))
	}
	t.Run("R3 the list is newer than the cache: attached", func(t *testing.T) {
		d := listing(toList(t), AttachedTo("n")).ends()
		assert.Positive(t, d.step.After, "W6")
		assert.Equal(t, []string{"Normal VolumeDelete"}, d.published)
	})
	t.Run("R3 either may be newer: attached while the list was on its way", func(t *testing.T) {
		d := toList(t)
		assert.Equal(t, []obj.Key{AKey}, d.state.Observe(AttachedTo("n")), "W5")
		listing(d).ends()
		assert.Equal(t, []string{"Normal VolumeDelete"}, d.published)
	})
	t.Run("R3 either may be newer: attached after the list", func(t *testing.T) {
		d := listing(toList(t)).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a")
		d.state.Observe(AttachedTo("n"))
		d.again().ends()
		assert.Equal(t, []string{"Normal VolumeDelete"}, d.published)
	})
	t.Run("R4 so may that of pods: one that comes after the list", func(t *testing.T) {
		rules := decision.Options{Hooks: hooks.Names{Recyclers: sets.New("hostPath")}}
		scrubbed := KnownVolume("a", BoundToClaim, WithPolicy(corev1.PersistentVolumeReclaimRecycle), InPhase(corev1.VolumeReleased), OnHostPath)
		d := newTalk(t, rules, AKey, scrubbed, PodUsing("another", PodPhase(corev1.PodSucceeded))).starts().announces().says("R4 Read pods/default").gets(nil, nil)
		d.says("R4 Read volumeattachments").gets(nil, nil).says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R4 Read pv/a")
		d.state.Observe(PodUsing("web"))
		d.again().ends()
		assert.Equal(t, []string{"Normal VolumeFailedRecycle"}, d.published)
	})
	t.Run("F2 and for a claim that is being deleted: one that comes while the list was on its way", func(t *testing.T) {
		state := engine.New(decision.Options{}, 10)
		state.Observe(KnownClaim(ClaimBeingDeleted, ClaimFinalizers(ClaimProtection)))
		require.Equal(t, obj.PodsKey("default"), state.Start(DataKey).Action.Key)
		state.Observe(PodUsing("web", Scheduled))
		assert.True(t, state.Proceed(DataKey, engine.Reply{}).Done)
	})
	t.Run("R3 B6 the proof ends with a write", func(t *testing.T) {
		failed := func(v *corev1.PersistentVolume) {
			v.Status.Phase, v.Status.Message = corev1.VolumeFailed, "something else"
		}
		d := listing(toList(t))
		d.says("V3 Read pvc/default/data").gets(nil, ErrNotFound).says("R3 Read pv/a").gets(d.announced(At("60", MadeByOwn(failed))), nil)
		d.says("R3 Read volumeattachments") // for it was read for another version of the volume
	})
	t.Run("X5 an older version, and one that is gone, change nothing", func(t *testing.T) {
		state := newTalk(t, Hooked(), AKey, MadeByOwn(), AttachedTo("n")).state
		assert.Empty(t, state.Observe(At("4", AttachedTo("n", OfVolume("b")))))
		assert.Equal(t, []obj.Key{AKey}, state.ObserveDeleted(AttachedTo("n")), "W5")
		assert.Empty(t, state.Observe(At("9", AttachedTo("n"))), "it is buried")
		assert.Equal(t, "R8 UpdateVolume", decides(t, state, AKey), "none is known")
	})
}

// R4, X2: the claim of a volume is gone, and its pod runs on. A slip in the name in claimRef does not hide that, nor does another claim that was given the volume
// since, and is gone, too, nor that the volume was Available in between, nor that the one before is Pending, for its tenant has taken bind-completed off it.
func TestR4ASlipHidesWhosePodsHaveAVolumeMounted(t *testing.T) {
	for name, slip := range map[string]VolumeEdit{"its name": RefersTo("default", "dat", "uid-1"), "its namespace": RefersTo("defualt", "data", "uid-1"), "another claim": RefersTo("shop", "cart", "uid-2"),
		"another claim, once Available": RefersTo("shop", "cart", "uid-2"), "another claim, and the first is Pending": RefersTo("shop", "cart", "uid-2"),
		"another claim, and a restore": RefersTo("shop", "cart", "uid-2"), "another claim, which names it, behind a slip": RefersTo("shop", "crat", "uid-2")} {
		t.Run("R4 X2 "+name, func(t *testing.T) {
			edits := []VolumeEdit{BoundToClaim, InPhase(corev1.VolumeReleased), WithPolicy(corev1.PersistentVolumeReclaimRecycle), OnHostPath}
			d := newTalk(t, Hooked(), AKey, At("5", KnownVolume("a", edits...)), PodUsing("web-0", Scheduled))
			slipped := At("6", KnownVolume("a", append(edits, slip)...))
			created := func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.Unix(1_000_000, 0) }
			switch name {
			case "another claim, once Available":
				d.state.Observe(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), created))
				slipped.ResourceVersion = "8"
				d.state.Observe(At("6", KnownVolume("a", append(edits, RefersTo("shop", "cart", ""))...)))
				d.state.Observe(At("7", KnownVolume("a", append(edits, RefersTo("shop", "cart", ""), InPhase(corev1.VolumeAvailable))...)))
			case "another claim, and the first is Pending":
				d.state.Observe(KnownClaim(Naming("a"), created))
				d.state.Observe(PodUsing("web-0", Scheduled, func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: metav1.Unix(1_000_400, 0).Time} }))
			}
			d.state.Observe(slipped)
			if slipped.Spec.ClaimRef.UID == "uid-2" {
				next := KnownClaim(Named("cart"), OfUID("uid-2"), BoundTo("a"), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "shop" })
				if slipped.Spec.ClaimRef.Name != next.Name { // and never gets it
					next = KnownClaim(Named("cart"), OfUID("uid-2"), Naming("a"), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "shop" })
					d.state.Observe(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), created))
				}
				d.state.Observe(next)
				d.state.ObserveDeleted(next)
				if slipped.Spec.ClaimRef.Name != next.Name { // it is retained by that, and a person has it recycled all the same
					retained := At("9", slipped.DeepCopy())
					retained.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
					d.state.Observe(retained)
					d.took(reads(t, d.state, d.state.Start(AKey), AKey, retained)).ends()
					slipped = At("10", slipped.DeepCopy())
					d.state.Observe(slipped)
				}
			}
			if name == "another claim, and a restore" {
				d.state.Observe(At("9", slipped.DeepCopy()))
				d.state.ObserveRestore()
				d.state.OutwaitCalls()
			}
			d.took(reads(t, d.state, d.state.Start(AKey), AKey, slipped))
			require.True(t, d.step.Done, "%s", d.step.Action)
			assert.Contains(t, d.published, "Normal VolumeFailedRecycle")
		})
	}
}
