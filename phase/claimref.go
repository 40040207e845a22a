package phase

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimRefState is what a volume's claimRef says about one claim.
type ClaimRefState string

// The five states of a claimRef, rules L1 to L5.
const (
	// ClaimRefNone means that there is no claimRef: the volume is free. Of one that has this claim's UID, and lost namespace or
	// name, it means that it is to be written again.
	ClaimRefNone ClaimRefState = "None"
	// ClaimRefPreBound means that it names this claim, without a UID. Somebody
	// reserved the volume for any claim of that name.
	ClaimRefPreBound ClaimRefState = "PreBound"
	// ClaimRefBound means that it names this claim and its UID. The volume is bound,
	// or being bound, to exactly this claim.
	ClaimRefBound ClaimRefState = "Bound"
	// ClaimRefStale means that it names this claim, with another UID. The claim that
	// the volume served was deleted, and this is a new one of the same name.
	ClaimRefStale ClaimRefState = "Stale"
	// ClaimRefOther means that it names another claim.
	ClaimRefOther ClaimRefState = "Other"
)

// ClaimRefStateOf returns what the volume's claimRef says about the claim. It reads no
// phase and no annotation, and does not allocate.
func ClaimRefStateOf(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) ClaimRefState {
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil:
		return ClaimRefNone
	case ref.Namespace != claim.Namespace || ref.Name != claim.Name:
		if ref.UID != "" && ref.UID == claim.UID && (ref.Namespace == "" || ref.Name == "") {
			return ClaimRefNone
		}
		return ClaimRefOther
	case ref.UID == "":
		return ClaimRefPreBound
	case ref.UID == claim.UID:
		return ClaimRefBound
	}
	return ClaimRefStale
}

// Annotations that record how a binding came about. Of the first two only the
// presence counts, whatever the value.
const (
	// BoundByControllerAnnotation on a claim or a volume says that a controller set
	// its volumeName or claimRef and may undo it. Without it a person set that, or an
	// external provisioner, and it is not undone.
	BoundByControllerAnnotation = "pv.kubernetes.io/bound-by-controller"

	// BindCompletedAnnotation on a claim says that it was fully bound once.
	BindCompletedAnnotation = "pv.kubernetes.io/bind-completed"

	// ProvisionedByAnnotation on a volume names the provisioner that made it.
	ProvisionedByAnnotation = "pv.kubernetes.io/provisioned-by"

	// AnnouncementAnnotation on a volume says that its storage is about to be destroyed, or may have been. Package reclaim
	// reads what it says.
	AnnouncementAnnotation = "pvbind.github.io/reclaiming"
)

// BoundByController reports whether a controller set the claim's volumeName or the
// volume's claimRef, and may undo it.
func BoundByController(object metav1.Object) bool {
	_, ok := object.GetAnnotations()[BoundByControllerAnnotation]
	return ok
}

// BindCompleted reports whether the claim was fully bound once, as its annotation says.
// It stays so when the volume is lost. Whoever may edit the claim can write the
// annotation: it proves no right to a volume, see [Owned].
func BindCompleted(claim *corev1.PersistentVolumeClaim) bool {
	_, ok := claim.Annotations[BindCompletedAnnotation]
	return ok
}
