package history_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/judge"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

func named(name string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = name, types.UID("uid-of-"+name) }
}

// The judge notices what it is there for, and nothing else.
func TestTheJudgeOfData(t *testing.T) {
	mine, theirs, pending := KnownClaim(BoundTo("a"), named("mine")), KnownClaim(BoundTo("a"), named("theirs")), KnownClaim(named("pending"))
	claims := []*corev1.PersistentVolumeClaim{mine, theirs, pending}
	a, b := KnownVolume("a"), KnownVolume("b")
	t.Run("X2 a claim that was bound to it names it", func(t *testing.T) {
		assert.Contains(t, judge.WrongOfReclaim(a, claims, nil), "X2: the storage of a is destroyed, and mine is Bound and names it")
		lost := KnownClaim(BoundTo("a"), Lost)
		assert.Contains(t, judge.WrongOfReclaim(KnownVolume("a", RefersTo("defualt", "data", lost.UID)), []*corev1.PersistentVolumeClaim{pending, lost}, nil), "data is Lost and names it")
		assert.Empty(t, judge.WrongOfReclaim(KnownVolume("a", RefersToOther), []*corev1.PersistentVolumeClaim{pending, lost}, nil), "a tenant may make it so")
		assert.Empty(t, judge.WrongOfReclaim(b, claims, nil))
	})
	t.Run("X2 it is attached", func(t *testing.T) {
		attachments := []*storagev1.VolumeAttachment{AttachedTo("n")}
		assert.Contains(t, judge.WrongOfReclaim(a, nil, attachments), "attaches it")
		assert.Empty(t, judge.WrongOfReclaim(b, nil, attachments))
	})
	t.Run("X3 the data of another", func(t *testing.T) {
		assert.Empty(t, judge.WrongHeir(mine, judge.Data{}, claims), "there is none")
		assert.Empty(t, judge.WrongHeir(mine, judge.Data{Of: mine.UID}, claims), "it is its own")
		assert.Contains(t, judge.WrongHeir(mine, judge.Data{Of: "uid-of-gone"}, claims), "X3")
		assert.Contains(t, judge.WrongHeir(mine, judge.Data{Of: "uid-of-gone", For: obj.KeyOf(theirs)}, claims), "X3", "somebody has given it to another one")
		assert.Empty(t, judge.WrongHeir(mine, judge.Data{Of: "uid-of-gone", For: obj.KeyOf(mine)}, claims), "somebody has given it to it")
		assert.Empty(t, judge.WrongHeir(mine, judge.Data{Of: "uid-of-gone", Freed: true}, claims), "somebody has freed it")
		assert.Contains(t, judge.WrongHeir(mine, judge.Data{Of: theirs.UID, Freed: true}, claims), "X3", "M2")
	})
	t.Run("X2 nobody had what a person reserved", func(t *testing.T) {
		reserved, removed := InPhase(corev1.VolumeAvailable), WithPolicy(corev1.PersistentVolumeReclaimDelete)
		released := KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), removed)
		assert.Contains(t, judge.WrongOfVolume(KnownVolume("a", BoundToClaim, reserved, removed), released, nil), "X2")
		assert.Empty(t, judge.WrongOfVolume(KnownVolume("a", BoundToClaim, reserved), released, nil), "it is retained")
		assert.Empty(t, judge.WrongOfVolume(KnownVolume("a", BoundToClaim, reserved, removed, VolumeNote(BoundBy, "yes")), released, nil), "a controller has chosen it")
		assert.Empty(t, judge.WrongOfVolume(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), removed), released, nil), "it was Bound")
	})
	t.Run("X2 a slip hides who has it", func(t *testing.T) {
		lost := KnownClaim(BoundTo("a"), Lost)
		slip := func(p corev1.PersistentVolumePhase) *corev1.PersistentVolume {
			return KnownVolume("a", RefersTo("defualt", "data", lost.UID), InPhase(p))
		}
		assert.Contains(t, judge.WrongOfVolume(slip(corev1.VolumeBound), slip(corev1.VolumeReleased), []*corev1.PersistentVolumeClaim{lost}), "X2")
		assert.Empty(t, judge.WrongOfVolume(slip(corev1.VolumeBound), slip(corev1.VolumeReleased), []*corev1.PersistentVolumeClaim{pending}))
	})
	t.Run("X3 who may edit volumes gives data away", func(t *testing.T) {
		bound, free, given := KnownVolume("a", BoundToClaim), KnownVolume("a"), KnownVolume("a", RefersTo("default", "other", ""))
		data := judge.Data{Of: "uid"}
		assert.Equal(t, judge.Data{Of: "uid", Freed: true}, data.Edited(bound, free))
		assert.Equal(t, judge.Data{Of: "uid", For: obj.ClaimKey("default", "other")}, data.Edited(bound, given))
		assert.Equal(t, judge.Data{Of: "uid", Freed: true, For: obj.ClaimKey("default", "other")}, data.Edited(bound, given).Edited(given, free))
		assert.Equal(t, data, data.Edited(bound, bound))
		assert.Equal(t, judge.Data{}, data.Edited(nil, bound))
	})
	t.Run("X3 whose pods write", func(t *testing.T) {
		owner := KnownClaim(BoundTo("a"))
		assert.True(t, judge.Has(owner, KnownVolume("a", BoundToClaim)))
		assert.True(t, judge.Has(owner, KnownVolume("a")))
		assert.False(t, judge.Has(owner, KnownVolume("a", RefersTo("default", "other", "uid"))))
		assert.False(t, judge.Has(pending, KnownVolume("a")))
		assert.False(t, judge.Has(owner, nil))
	})
}

func TestTheJudgeOfWhatIsStuck(t *testing.T) {
	untold := func(objects ...obj.Object) []string {
		return judge.Untold(decision.Options{}, objects, func(decision.Event) bool { return false })
	}
	waits := KnownClaim(RequestingClass(new("")), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending })
	assert.Equal(t, []string{"X10: pvc/default/data is stuck, and nobody is told: it is Pending"}, untold(waits))
	assert.Empty(t, judge.Untold(decision.Options{}, []obj.Object{waits}, judge.EveryEvent), "C5")
	awaits := waits.DeepCopy()
	awaits.Spec.VolumeName = "not-there"
	assert.Empty(t, untold(awaits), "C6 its owner named the volume")
	assert.Empty(t, untold(KnownClaim(BoundTo("a"))), "it is Bound")
	assert.Len(t, untold(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeFailed))), 1, "without a message")
	assert.Empty(t, untold(KnownVolume("a", InPhase(corev1.VolumeAvailable))))

	released := KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), WithPolicy(corev1.PersistentVolumeReclaimDelete))
	assert.Empty(t, untold(released, KnownClaim(ClaimBeingDeleted)), "given to a claim that is being deleted, which tells it")
}
