package phase

import corev1 "k8s.io/api/core/v1"

// VolumeBindingState is how far a volume is bound, given the claim that exists under
// the name in its claimRef.
type VolumeBindingState string

// The states of a volume, rules V1 to V3.
const (
	// VolumeFree means that it has no claimRef, or one without a UID: it is bound to
	// no claim (V1).
	VolumeFree VolumeBindingState = "Free"
	// VolumeBinding means that its claim exists and names no volume yet: the claim's
	// side is still to be written (V2).
	VolumeBinding VolumeBindingState = "Binding"
	// VolumeInUse means that its claim exists and names it (V2).
	VolumeInUse VolumeBindingState = "InUse"
	// VolumeMisbound means that its claim exists and names another volume. This one is
	// to be unbound, if the claim has that other one (V2, V4).
	VolumeMisbound VolumeBindingState = "Misbound"
	// VolumeUnneeded means that its claim exists and names another volume, and this one
	// may have been provisioned for it and has policy Delete. It is to be released and
	// reclaimed, if the claim has that other one (V2).
	VolumeUnneeded VolumeBindingState = "Unneeded"
	// VolumeOrphaned means that its claim is gone, or another of that name took its
	// place. The volume is to be released and reclaimed (V3).
	VolumeOrphaned VolumeBindingState = "Orphaned"
)

// VolumeBindingStateOf returns the state of the volume. The claim is the one that
// exists under the namespace and name in the volume's claimRef, nil if there is
// none. It does not matter for a volume without a claimRef.
//
// VolumeMisbound and VolumeUnneeded say what the claim names, not that it has it. If
// the volume that it names does not exist, or that one's claimRef is not
// ClaimRefBound for the claim, this one may be all that is left of the claim's data:
// it is to be left as it is.
//
// Nil means that the claim is known not to exist: a volume that is wrongly called
// VolumeOrphaned loses its data. A claim that is merely missing from a cache must be
// read live first.
func VolumeBindingStateOf(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) VolumeBindingState {
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil || ref.UID == "":
		return VolumeFree
	case claim == nil || ClaimRefStateOf(volume, claim) != ClaimRefBound:
		return VolumeOrphaned
	case claim.Spec.VolumeName == "":
		return VolumeBinding
	case claim.Spec.VolumeName == volume.Name:
		return VolumeInUse
	case mayBeMadeFor(volume, claim) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return VolumeUnneeded
	}
	return VolumeMisbound
}

// mayBeMadeFor reports whether a volume may have been provisioned for the claim, which has another one. A volume that was made for a claim has its
// claimRef from the first, and is Pending until the claim has it: one that is Available was free, and one that is Bound had another claim, unless its name
// says that it was made for this one. It was given to the claim by a person, and may have data, as one that is older than the claim (V2).
func mayBeMadeFor(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	isNamedForIt := volume.Name == "pvc-"+string(claim.UID) // as provisioners name them; whoever stored it may have a clock that is behind
	switch volume.Status.Phase {
	case corev1.VolumeAvailable:
		return false
	case corev1.VolumeBound:
		return provisioned(volume) && isNamedForIt
	}
	return provisioned(volume) && isNamedForIt || ProvisionedSince(volume, claim)
}

// ProvisionedSince reports whether a volume was provisioned, for whatever claim, and not
// before this claim was there, by their creationTimestamps, in seconds.
func ProvisionedSince(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	isOlder := !volume.CreationTimestamp.IsZero() && volume.CreationTimestamp.Before(&claim.CreationTimestamp)
	return provisioned(volume) && !isOlder
}

func provisioned(volume *corev1.PersistentVolume) bool {
	_, provisioned := volume.Annotations[ProvisionedByAnnotation]
	return provisioned
}

// OfVolume returns the phase that the volume should have in the given state, which may
// be the one it has. Misbound has its phase only once the volume is unbound.
func OfVolume(volume *corev1.PersistentVolume, state VolumeBindingState) corev1.PersistentVolumePhase {
	switch state {
	case VolumeFree, VolumeMisbound:
		return corev1.VolumeAvailable
	case VolumeInUse:
		return corev1.VolumeBound
	case VolumeUnneeded, VolumeOrphaned:
		if volume.Status.Phase != corev1.VolumeFailed { // which says that reclaiming was tried
			return corev1.VolumeReleased
		}
	}
	return volume.Status.Phase
}
