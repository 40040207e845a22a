package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// boundStatus is the claim with the status that binding to the volume gives it (B4), or nil if it has
// that already. Capacity and attributes class are taken over on the transition alone: afterwards they
// belong to whoever resizes or modifies the volume.
func boundStatus(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	from, modes := claim.Status.Phase, volume.Spec.AccessModes
	if from == corev1.ClaimBound && slices.Equal(claim.Status.AccessModes, modes) {
		return nil
	}
	bound := claim.DeepCopy()
	bound.Status.Phase = corev1.ClaimBound
	bound.Status.AccessModes = slices.Clone(modes)
	if from != corev1.ClaimBound {
		bound.Status.Capacity = boundCapacity(claim, volume)
		bound.Status.CurrentVolumeAttributesClassName = boundAttributesClass(volume)
	}
	return bound
}

// boundCapacity is the capacity of a claim that becomes Bound: the size before an unfinished resize if
// the volume records one that parses, else the volume's.
func boundCapacity(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) corev1.ResourceList {
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	if recorded, ok := volume.Annotations[preResizeCapacity]; ok {
		if before, err := quantities.Parse(recorded); err == nil {
			size = before
		}
		capacity := claim.Status.Capacity.DeepCopy()
		if capacity == nil {
			capacity = corev1.ResourceList{}
		}
		capacity[corev1.ResourceStorage] = size
		return capacity
	}
	if has, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok && quantities.Compare(has, size) == 0 {
		return claim.Status.Capacity.DeepCopy()
	}
	return volume.Spec.Capacity.DeepCopy()
}

// boundAttributesClass is the volume's attributes class; the empty name is none.
func boundAttributesClass(volume *corev1.PersistentVolume) *string {
	if name := volume.Spec.VolumeAttributesClassName; name != nil && *name != "" {
		return new(*name)
	}
	return nil
}

// unboundStatus is the claim in a phase that goes with no volume, Pending or Lost, or nil if it is so
// already. Both clear what only a volume can give (C10).
func unboundStatus(claim *corev1.PersistentVolumeClaim, to corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	has := claim.Status
	if has.Phase == to && len(has.AccessModes) == 0 && len(has.Capacity) == 0 && has.CurrentVolumeAttributesClassName == nil {
		return nil
	}
	unbound := claim.DeepCopy()
	unbound.Status.Phase = to
	unbound.Status.AccessModes = nil
	unbound.Status.Capacity = nil
	unbound.Status.CurrentVolumeAttributesClassName = nil
	return unbound
}
