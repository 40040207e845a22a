package phase

import corev1 "k8s.io/api/core/v1"

// ClaimStanding is the situation of a claim, given the volume it names.
type ClaimStanding string

// The standings of a claim. Those up to Refused are of claims that are still to be
// bound, the others of claims that were.
const (
	// Unbound: names no volume; one is to be found or made (rules C1 to C5).
	Unbound ClaimStanding = "Unbound"
	// Awaiting: names a volume that does not exist, perhaps not yet (C6).
	Awaiting ClaimStanding = "Awaiting"
	// Asking: names a volume that is free, and is not Bound; it is bound if it fits
	// (C7). That it was bound once gives it no right to a free volume.
	Asking ClaimStanding = "Asking"
	// Finishing: names a volume that is reserved for or held by the claim; the
	// binding is to be finished (C8).
	Finishing ClaimStanding = "Finishing"
	// Refused: names a volume that another claim has (C9).
	Refused ClaimStanding = "Refused"

	// Lost: was bound, and names no volume or one that does not exist (C10).
	Lost ClaimStanding = "Lost"
	// Misbound: was bound, and the volume it names does not hold it: another
	// claim has the volume, or it is reserved by name alone (C10, C11).
	Misbound ClaimStanding = "Misbound"
	// Bound: was bound, and holds the volume it names; or its status is Bound, and
	// that volume is free and to be bound again (C11).
	Bound ClaimStanding = "Bound"
)

// ClaimStandingOf returns the standing of the claim. The volume is the one that
// spec.volumeName names, nil if it names none or that one does not exist. Nil
// makes a claim that was bound Lost: a volume that is merely missing from a cache
// must be read live first.
func ClaimStandingOf(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) ClaimStanding {
	completed := BindCompleted(claim)
	switch {
	case completed && (claim.Spec.VolumeName == "" || volume == nil):
		return Lost
	case claim.Spec.VolumeName == "":
		return Unbound
	case volume == nil:
		return Awaiting
	}
	link := LinkOf(volume, claim)
	switch {
	case link == Unclaimed && Owned(claim) == "":
		return Asking
	case link == Unclaimed, completed && link == Held:
		return Bound
	case completed:
		return Misbound
	case link == Reserved, link == Held:
		return Finishing
	}
	return Refused
}

// Owned returns the name of the volume that belongs to the claim even while the volume has no
// claimRef: the one that spec.volumeName names, if status.phase is Bound. It returns "" if there is none.
//
// Nothing else proves ownership. Spec and annotations are the tenant's to write, bind-completed too; status is not.
func Owned(claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase != corev1.ClaimBound {
		return ""
	}
	return claim.Spec.VolumeName
}

// OfClaim returns the phase that the claim should have in the given standing; that
// may be the one it has. Bound is the phase at the end of the binding that the
// standing calls for, not before it.
//
// Unbound and Asking are Pending for as long as nothing fits. What is more is the
// caller's to know: a claim that a volume fits becomes Bound (C1, C7), and one
// for which a volume is being made keeps its phase (C4).
func OfClaim(claim *corev1.PersistentVolumeClaim, standing ClaimStanding) corev1.PersistentVolumeClaimPhase {
	switch standing {
	case Unbound, Awaiting:
		return corev1.ClaimPending
	case Asking:
		return asking(claim)
	case Finishing:
		return finished(claim)
	case Refused:
		return refused(claim)
	case Lost, Misbound:
		return corev1.ClaimLost
	case Bound:
		return corev1.ClaimBound
	}
	return claim.Status.Phase
}

// asking leaves a claim alone that was bound once: it is Lost, most often, and stays so
// until it is bound again (C7).
func asking(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimPhase {
	if BindCompleted(claim) {
		return claim.Status.Phase
	}
	return corev1.ClaimPending
}

// finished leaves a claim that is being deleted alone: its binding is neither
// finished nor rolled back (C12).
func finished(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimPhase {
	if claim.DeletionTimestamp != nil {
		return claim.Status.Phase
	}
	return corev1.ClaimBound
}

// refused leaves a claim alone that a controller bound: somebody took its
// bind-completed annotation away, and that is an error, not a wait (C9).
func refused(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaimPhase {
	if BoundByController(claim) {
		return claim.Status.Phase
	}
	return corev1.ClaimPending
}
