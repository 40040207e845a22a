package phase

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// byClaim holds a volume's states by what its claim looks like.
type byClaim struct {
	absent, namesNone, namesThis, namesAnother VolumeBindingState
}

func all(state VolumeBindingState) byClaim {
	return byClaim{state, state, state, state}
}

// volumeTable has the state for each shape of claimRef, of a volume that a
// person made.
var volumeTable = map[string]byClaim{
	"L1 no claimRef":                   all(VolumeFree),
	"L2 this claim without UID":        all(VolumeFree),
	"L3 this claim with its UID":       {VolumeOrphaned, VolumeBinding, VolumeInUse, VolumeMisbound},
	"L4 this claim with another UID":   all(VolumeOrphaned),
	"L5 another name without UID":      all(VolumeFree),
	"L5 another name with UID":         all(VolumeOrphaned),
	"L5 another name with this UID":    all(VolumeOrphaned),
	"L5 another namespace without UID": all(VolumeFree),
	"L5 another namespace with UID":    all(VolumeOrphaned),
	"L1 no namespace, this UID":        all(VolumeOrphaned),
	"L1 no name, this UID":             all(VolumeOrphaned),
	"L5 no namespace, another UID":     all(VolumeOrphaned),
	"L5 empty claimRef":                all(VolumeFree),
}

func (b byClaim) of(claim *corev1.PersistentVolumeClaim) VolumeBindingState {
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

func TestVolumeBindingStateOf(t *testing.T) {
	for _, shape := range refs {
		t.Run("V1 V2 V3 "+shape.name, func(t *testing.T) {
			want, ok := volumeTable[shape.name]
			assert.True(t, ok, "a row for every shape")
			for _, claim := range append(claims(), nil) {
				assert.Equal(t, want.of(claim), VolumeBindingStateOf(newVolume(shape.ref), claim), "claim %v", claim)
			}
		})
	}
}

// A volume that was provisioned and is to be deleted differs in one cell only.
func TestUnneededTakesThePlaceOfMisbound(t *testing.T) {
	for _, volume := range volumes() {
		_, provisioned := volume.Annotations["pv.kubernetes.io/provisioned-by"]
		unneeded := provisioned && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
			volume.Status.Phase != corev1.VolumeAvailable && volume.Status.Phase != corev1.VolumeBound
		for _, name := range []string{"", thisName, otherName} {
			claim := newClaim(name)
			want := VolumeBindingStateOf(newVolume(volume.Spec.ClaimRef), claim)
			if want == VolumeMisbound && unneeded {
				want = VolumeUnneeded
			}
			assert.Equal(t, want, VolumeBindingStateOf(volume, claim), "V2 policy %q, annotations %v",
				volume.Spec.PersistentVolumeReclaimPolicy, volume.Annotations)
		}
	}
}

// Who was reserved before the claim came was not made for it.
func TestUnneededIsNotOlderThanItsClaim(t *testing.T) {
	for _, row := range []struct {
		name          string
		volume, claim int64 // when it was created; 0 if unknown
		chosen, named bool
		want          VolumeBindingState
		at            corev1.PersistentVolumePhase
	}{
		{"made after the claim", 20, 10, false, false, VolumeUnneeded, ""},
		{"made in the same second", 10, 10, false, false, VolumeUnneeded, ""},
		{"older than the claim", 10, 20, false, false, VolumeMisbound, ""},
		{"older than the claim, and chosen by a controller", 10, 20, true, false, VolumeMisbound, ""},
		{"older than the claim by the clock of another server, and named for it", 10, 20, false, true, VolumeUnneeded, ""},
		{"made at an unknown time", 0, 20, false, false, VolumeUnneeded, ""},
		{"claim made at an unknown time", 10, 0, false, false, VolumeUnneeded, ""},
		{"Released for it", 20, 10, false, false, VolumeUnneeded, corev1.VolumeReleased},
		{"Bound, so that another claim had it", 20, 10, false, false, VolumeMisbound, corev1.VolumeBound},
		{"Bound, and named for it", 20, 10, false, true, VolumeUnneeded, corev1.VolumeBound},
		{"Available, so that it was nobody's", 20, 10, false, true, VolumeMisbound, corev1.VolumeAvailable},
	} {
		t.Run("V2 "+row.name, func(t *testing.T) {
			claim := newClaim(otherName)
			volume := newVolume(&corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID})
			volume.Annotations = map[string]string{ProvisionedByAnnotation: "x.example.com"}
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			volume.Status.Phase = row.at
			if row.chosen {
				volume.Annotations[BoundByControllerAnnotation] = "yes"
			}
			if row.named {
				volume.Name = "pvc-" + string(claim.UID)
			}
			if row.volume > 0 {
				volume.CreationTimestamp = metav1.Unix(row.volume, 0)
			}
			if row.claim > 0 {
				claim.CreationTimestamp = metav1.Unix(row.claim, 0)
			}
			assert.Equal(t, row.want, VolumeBindingStateOf(volume, claim))
		})
	}
}

// Columns in the order of volumePhases: the phase it has.
var volumePhaseTable = map[VolumeBindingState][6]corev1.PersistentVolumePhase{
	VolumeFree:     {"Available", "Available", "Available", "Available", "Available", "Available"},
	VolumeBinding:  {"", "Pending", "Available", "Bound", "Released", "Failed"},
	VolumeInUse:    {"Bound", "Bound", "Bound", "Bound", "Bound", "Bound"},
	VolumeMisbound: {"Available", "Available", "Available", "Available", "Available", "Available"},
	VolumeUnneeded: {"Released", "Released", "Released", "Released", "Released", "Failed"},
	VolumeOrphaned: {"Released", "Released", "Released", "Released", "Released", "Failed"},
	"Unheard":      {"", "Pending", "Available", "Bound", "Released", "Failed"},
}

func TestOfVolume(t *testing.T) {
	for state, row := range volumePhaseTable {
		for i, current := range volumePhases {
			t.Run("V1 V2 V3 "+string(state)+" from "+string(current), func(t *testing.T) {
				volume := newVolume(nil)
				volume.Status.Phase = current
				assert.Equal(t, row[i], OfVolume(volume, state))
			})
		}
	}
}

func TestEveryVolumeHasAPhaseThatStays(t *testing.T) {
	for _, volume := range volumes() {
		for _, name := range []string{"", thisName, otherName} {
			claim := newClaim(name)
			before := volume.DeepCopy()
			state := VolumeBindingStateOf(volume, claim)
			assert.Contains(t, volumePhaseTable, state)

			once := volume.DeepCopy()
			once.Status.Phase = OfVolume(volume, state)
			assert.Equal(t, state, VolumeBindingStateOf(once, claim), "X8 a phase does not change the state")
			assert.Equal(t, once.Status.Phase, OfVolume(once, state), "X8 a second look changes nothing")
			assert.Equal(t, before, volume, "X6")
		}
	}
}
