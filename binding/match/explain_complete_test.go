package match_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/accessmode"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
)

// Reasons are complete, and each is true: what is changed as a reason says is no reason any more, what is not still
// is, and when all are mended the volume fits (E1). M1, M2, M9 and M11 are no fields that anybody could change.
func TestReasonsAreComplete(t *testing.T) {
	w := NewWorld(rand.NewPCG(SeedOf(t), 4))
	mended := map[match.Reason]int{}
	for range Worlds(10_000) {
		requireReasonsComplete(t, w, w.Request(), mended)
	}
	for _, reason := range []match.Reason{match.Malformed, match.TooSmall, match.AccessModes, match.VolumeMode, match.StorageClass,
		match.AttributesClass, match.Selector, match.NodeAffinity} {
		require.Greater(t, mended[reason], 10, "%s was hardly tried", reason)
	}
}

// requireReasonsComplete mends some of the reasons against each volume, on the volume or on the claim.
func requireReasonsComplete(t *testing.T, w World, request match.Request, mended map[match.Reason]int) {
	t.Helper()
	report, err := match.Explain(request)
	require.NoError(t, err)
	for _, verdict := range report.Verdicts {
		claim, volume := request.Claim.DeepCopy(), verdict.Volume.DeepCopy()
		var left match.Mismatches
		for _, mismatch := range verdict.Mismatches {
			mends := mend[mismatch.Reason]
			if mends == nil || w.Rarely(4) {
				left = append(left, mismatch)
				continue
			}
			Pick(w, mends...)(claim, volume, mismatch)
			mended[mismatch.Reason]++
		}
		got, err := match.Check(claim, volume, request.Terms)
		require.NoError(t, err)
		require.Equal(t, reasons(left), reasons(got), "%s: of %v only %v is left", volume.Name, verdict.Mismatches, left)
	}
}

// mend changes exactly the field that a reason is about, by the value that the reason tells: the volume's to what the
// claim requests, or the claim's to what the volume has.
var mend = map[match.Reason][]func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, match.Mismatch){
	match.Malformed: {func(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, _ match.Mismatch) {
		known := func(mode corev1.PersistentVolumeAccessMode) bool { _, err := accessmode.Of(mode); return err == nil }
		volume.Spec.AccessModes = slices.DeleteFunc(volume.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool { return !known(mode) })
		if capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]; !ok || capacity.Sign() < 0 {
			volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]}
		}
	}},
	match.TooSmall: {
		func(_ *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, m match.Mismatch) {
			volume.Spec.Capacity = Storage(m.Requested)
		},
		func(claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, m match.Mismatch) {
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(m.Actual)}
		},
	},
	match.AccessModes: {
		func(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, _ match.Mismatch) {
			volume.Spec.AccessModes = append(slices.Clone(volume.Spec.AccessModes), claim.Spec.AccessModes...)
		},
		func(claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, _ match.Mismatch) {
			claim.Spec.AccessModes = nil
		},
	},
	match.VolumeMode: {
		func(_ *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, m match.Mismatch) {
			volume.Spec.VolumeMode = new(corev1.PersistentVolumeMode(m.Requested))
		},
		func(claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, m match.Mismatch) {
			claim.Spec.VolumeMode = new(corev1.PersistentVolumeMode(m.Actual))
		},
	},
	match.StorageClass: {
		func(_ *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, m match.Mismatch) {
			delete(volume.Annotations, BetaClass)
			volume.Spec.StorageClassName = namedClass(m.Requested)
		},
		func(claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, m match.Mismatch) {
			delete(claim.Annotations, BetaClass)
			claim.Spec.StorageClassName = new(namedClass(m.Actual))
		},
	},
	match.AttributesClass: {
		func(_ *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, m match.Mismatch) {
			volume.Spec.VolumeAttributesClassName = new(namedClass(m.Requested))
		},
		func(claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, m match.Mismatch) {
			claim.Spec.VolumeAttributesClassName = new(namedClass(m.Actual))
		},
	},
	match.Selector: {
		func(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, _ match.Mismatch) {
			volume.Labels = map[string]string{"tier": "gold"}
			if selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector); err != nil || !selector.Matches(labels.Set(volume.Labels)) {
				volume.Labels = nil
			}
		},
		func(claim *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, _ match.Mismatch) {
			claim.Spec.Selector = nil
		},
	},
	match.NodeAffinity: {func(_ *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, _ match.Mismatch) {
		volume.Spec.NodeAffinity = nil
	}},
}

// namedClass is the name that a reason tells, which says "none" for no name.
func namedClass(told string) string {
	if told == "none" {
		return ""
	}
	return told
}
