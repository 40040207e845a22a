package phase

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// byClaim holds a volume's standings by what its claim looks like.
type byClaim struct {
	absent, namesNone, namesThis, namesAnother VolumeStanding
}

func all(standing VolumeStanding) byClaim {
	return byClaim{standing, standing, standing, standing}
}

// volumeTable says the standing for each shape of claimRef, of a volume that a
// person made.
var volumeTable = map[string]byClaim{
	"L1 no claimRef":                   all(Free),
	"L2 this claim without UID":        all(Free),
	"L3 this claim with its UID":       {Orphaned, Binding, InUse, Misplaced},
	"L4 this claim with another UID":   all(Orphaned),
	"L5 another name without UID":      all(Free),
	"L5 another name with UID":         all(Orphaned),
	"L5 another name with this UID":    all(Orphaned),
	"L5 another namespace without UID": all(Free),
	"L5 another namespace with UID":    all(Orphaned),
	"L5 no namespace":                  all(Orphaned),
	"L5 empty claimRef":                all(Free),
}

func (b byClaim) of(claim *corev1.PersistentVolumeClaim) VolumeStanding {
	switch {
	case claim == nil:
		return b.absent
	case claim.Spec.VolumeName == "":
		return b.namesNone
	case claim.Spec.VolumeName == thisName:
		return b.namesThis
	}
	return b.namesAnother
}

func TestVolumeStandingOf(t *testing.T) {
	for _, shape := range refs {
		t.Run("V1 V2 V3 "+shape.name, func(t *testing.T) {
			want, ok := volumeTable[shape.name]
			assert.True(t, ok, "a row for every shape")
			for _, claim := range append(claims(), nil) {
				assert.Equal(t, want.of(claim), VolumeStandingOf(newVolume(shape.ref), claim), "claim %v", claim)
			}
		})
	}
}

// A volume that was provisioned and is to be deleted differs in one cell only.
func TestSurplusTakesThePlaceOfMisplaced(t *testing.T) {
	for _, volume := range volumes() {
		_, provisioned := volume.Annotations["pv.kubernetes.io/provisioned-by"]
		surplus := provisioned && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		for _, name := range []string{"", thisName, otherName} {
			claim := newClaim(name)
			want := VolumeStandingOf(newVolume(volume.Spec.ClaimRef), claim)
			if want == Misplaced && surplus {
				want = Surplus
			}
			assert.Equal(t, want, VolumeStandingOf(volume, claim), "V2 policy %q, annotations %v",
				volume.Spec.PersistentVolumeReclaimPolicy, volume.Annotations)
		}
	}
}

// Columns in the order of volumePhases: the phase it has.
var volumePhaseTable = map[VolumeStanding][6]corev1.PersistentVolumePhase{
	Free:      {"Available", "Available", "Available", "Available", "Available", "Available"},
	Binding:   {"", "Pending", "Available", "Bound", "Released", "Failed"},
	InUse:     {"Bound", "Bound", "Bound", "Bound", "Bound", "Bound"},
	Misplaced: {"Available", "Available", "Available", "Available", "Available", "Available"},
	Surplus:   {"Released", "Released", "Released", "Released", "Released", "Failed"},
	Orphaned:  {"Released", "Released", "Released", "Released", "Released", "Failed"},
	"Unheard": {"", "Pending", "Available", "Bound", "Released", "Failed"},
}

func TestOfVolume(t *testing.T) {
	for standing, row := range volumePhaseTable {
		for i, current := range volumePhases {
			t.Run("V1 V2 V3 "+string(standing)+" from "+string(current), func(t *testing.T) {
				volume := newVolume(nil)
				volume.Status.Phase = current
				assert.Equal(t, row[i], OfVolume(volume, standing))
			})
		}
	}
}

func TestEveryVolumeHasAPhaseThatStays(t *testing.T) {
	for _, volume := range volumes() {
		for _, name := range []string{"", thisName, otherName} {
			claim := newClaim(name)
			before := volume.DeepCopy()
			standing := VolumeStandingOf(volume, claim)
			assert.Contains(t, volumePhaseTable, standing)

			once := volume.DeepCopy()
			once.Status.Phase = OfVolume(volume, standing)
			assert.Equal(t, standing, VolumeStandingOf(once, claim), "X8 a phase does not change the standing")
			assert.Equal(t, once.Status.Phase, OfVolume(once, standing), "X8 a second look changes nothing")
			assert.Equal(t, before, volume, "X6")
		}
	}
}
