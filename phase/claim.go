package phase

import corev1 "k8s.io/api/core/v1"

// ClaimBindingState is how far a claim is bound, given the volume it names.
type ClaimBindingState string

// The states of a claim. Those up to ClaimVolumeTaken are of claims that are still to
// be bound, the others of claims that were.
const (
	// ClaimUnbound means that it names no volume: one is to be found or made (C1 to C5).
	ClaimUnbound ClaimBindingState = "Unbound"
	// ClaimAwaitsVolume means that it names a volume that does not exist, perhaps not
	// yet (C6).
	ClaimAwaitsVolume ClaimBindingState = "AwaitsVolume"
	// ClaimRequestsVolume means that it names a volume that is free, and is not Bound:
	// it is bound if the volume fits. That it was bound once gives it no right to a free
	// volume (C7).
	ClaimRequestsVolume ClaimBindingState = "RequestsVolume"
	// ClaimBinding means that it names a volume that is pre-bound or bound to it: the
	// binding is to be finished (C8).
	ClaimBinding ClaimBindingState = "Binding"
	// ClaimVolumeTaken means that it names a volume of another claim (C9).
	ClaimVolumeTaken ClaimBindingState = "VolumeTaken"

	// ClaimLost means that it was bound, and names no volume or one that does not exist
	// (C10).
	ClaimLost ClaimBindingState = "Lost"
	// ClaimMisbound means that it was bound, and the volume it names is not bound to it:
	// that is another claim's, or merely pre-bound (C10, C11).
	ClaimMisbound ClaimBindingState = "Misbound"
	// ClaimBound means that it was bound, and the volume it names is bound to it; or that
	// its status is Bound, and that volume has no claimRef and is to be bound again (C11).
	ClaimBound ClaimBindingState = "Bound"
)

// ClaimBindingStateOf returns the state of the claim. The volume is the one that
// spec.volumeName names, nil if it names none or that one does not exist. Nil makes a
// claim that was bound ClaimLost: a volume that is merely missing from a cache must be
// read live first.
func ClaimBindingStateOf(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) ClaimBindingState {
	completed := BindCompleted(claim)
	switch {
	case completed && (claim.Spec.VolumeName == "" || volume == nil):
		return ClaimLost
	case claim.Spec.VolumeName == "":
		return ClaimUnbound
	case volume == nil:
		return ClaimAwaitsVolume
	}
	ref := ClaimRefStateOf(volume, claim)
	switch {
	case ref == ClaimRefNone && Owned(claim) == "":
		return ClaimRequestsVolume
	case ref == ClaimRefNone, completed && ref == ClaimRefBound:
		return ClaimBound
	case completed:
		return ClaimMisbound
	case ref == ClaimRefPreBound, ref == ClaimRefBound:
		return ClaimBinding
	}
	return ClaimVolumeTaken
}

// Owned returns the name of the volume that belongs to the claim even while the volume
// has no claimRef: the one that spec.volumeName names, if status.phase is Bound. It
// returns "" if there is none.
//
// Nothing else proves ownership. The tenant may write spec and annotations,
// bind-completed too, but no status.
func Owned(claim *corev1.PersistentVolumeClaim) string {
	return namedIn(corev1.ClaimBound, claim)
}

// Lost returns the name of the volume that a Lost claim names, which was its own; "" if it is not Lost, or names none.
func Lost(claim *corev1.PersistentVolumeClaim) string {
	return namedIn(corev1.ClaimLost, claim)
}

// Claims reports whether the claim has the UID in the volume's claimRef, whatever else of that claimRef and of the claim's status, and names the volume, or
// none as far as is known, as in a cache that is late: the volume is the claim's, or was. No tenant can write a claimRef, nor choose a UID.
func Claims(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	ref := volume.Spec.ClaimRef
	return ref != nil && ref.UID != "" && ref.UID == claim.UID && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name)
}

func namedIn(phase corev1.PersistentVolumeClaimPhase, claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase != phase {
		return ""
	}
	return claim.Spec.VolumeName
}
