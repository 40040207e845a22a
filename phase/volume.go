package phase

import corev1 "k8s.io/api/core/v1"

// VolumeStanding is the situation of a volume, given the claim that exists under
// the name its claimRef has.
type VolumeStanding string

// The standings of a volume, rules V1 to V3.
const (
	// Free: no claimRef, or one without a UID: nobody holds the volume (V1).
	Free VolumeStanding = "Free"
	// Binding: its claim exists and names no volume yet: the claim's side is
	// still to be written (V2).
	Binding VolumeStanding = "Binding"
	// InUse: its claim exists and names it (V2).
	InUse VolumeStanding = "InUse"
	// Misplaced: its claim exists and names another volume; this one is to be
	// unbound, if the claim has that other one (V2, V4).
	Misplaced VolumeStanding = "Misplaced"
	// Surplus: its claim exists and names another volume, and this one was
	// provisioned for that claim and is to be deleted when done with: it is
	// released and reclaimed, if the claim has that other one (V2).
	Surplus VolumeStanding = "Surplus"
	// Orphaned: its claim is gone, or another of that name took its place; the
	// volume is released and reclaimed (V3).
	Orphaned VolumeStanding = "Orphaned"
)

// VolumeStandingOf returns the standing of the volume. The claim is the one that
// exists under the namespace and name of the volume's claimRef, nil if there is
// none; it does not matter for a volume without a claimRef.
//
// Misplaced and Surplus say what the claim names, not that it has it. If the volume
// that it names does not exist, or LinkOf says that it is not Held by the claim, this
// one may be all that is left of the claim's data: it is to be left as it is.
//
// Nil means that the claim is known not to exist: a volume that is wrongly called
// Orphaned loses its data. A claim that is merely missing from a cache must be
// read live first.
func VolumeStandingOf(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) VolumeStanding {
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil || ref.UID == "":
		return Free
	case claim == nil || LinkOf(volume, claim) != Held:
		return Orphaned
	case claim.Spec.VolumeName == "":
		return Binding
	case claim.Spec.VolumeName == volume.Name:
		return InUse
	case provisioned(volume) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return Surplus
	}
	return Misplaced
}

// OfVolume returns the phase that the volume should have in the given standing;
// that may be the one it has. Misplaced has its phase only once it is unbound.
func OfVolume(volume *corev1.PersistentVolume, standing VolumeStanding) corev1.PersistentVolumePhase {
	switch standing {
	case Free, Misplaced:
		return corev1.VolumeAvailable
	case InUse:
		return corev1.VolumeBound
	case Surplus, Orphaned:
		return released(volume.Status.Phase)
	}
	return volume.Status.Phase
}

// released keeps Failed, which says that reclaiming was tried.
func released(current corev1.PersistentVolumePhase) corev1.PersistentVolumePhase {
	if current == corev1.VolumeFailed {
		return current
	}
	return corev1.VolumeReleased
}
