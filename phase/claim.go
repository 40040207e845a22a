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
	if claim.Status.Phase != corev1.ClaimBound {
		return ""
	}
	return claim.Spec.VolumeName
}

// OfClaim returns the phase that the claim should have in the given state, which may be
// the one it has. Bound is the phase at the end of the binding that the state calls for,
// not before it.
//
// ClaimUnbound and ClaimRequestsVolume are Pending for as long as nothing fits. What
// follows from more than the state is left to the caller: a claim that a volume fits
// becomes Bound (C1, C7), and one for which a volume is being made keeps its phase (C4).
//
// In three cases the claim keeps its phase. One that was bound once and requests a volume
// is Lost, most often, and stays so until it is bound again (C7). One that a controller
// bound to a volume that is taken has lost its bind-completed annotation: that is an
// error, not a wait (C9). The binding of one that is being deleted is neither finished
// nor rolled back (C12).
func OfClaim(claim *corev1.PersistentVolumeClaim, state ClaimBindingState) corev1.PersistentVolumeClaimPhase {
	switch {
	case state == ClaimUnbound, state == ClaimAwaitsVolume,
		state == ClaimRequestsVolume && !BindCompleted(claim),
		state == ClaimVolumeTaken && !BoundByController(claim):
		return corev1.ClaimPending
	case state == ClaimBound, state == ClaimBinding && claim.DeletionTimestamp == nil:
		return corev1.ClaimBound
	case state == ClaimLost, state == ClaimMisbound:
		return corev1.ClaimLost
	}
	return claim.Status.Phase
}
