package phase

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that record how a binding came about. Of the first two only the
// presence counts, whatever the value.
const (
	// BoundByControllerAnnotation on a claim or a volume: a controller made its
	// link to the other and may undo it. Without it the link is a person's, or
	// an external provisioner's, and is not dropped.
	BoundByControllerAnnotation = "pv.kubernetes.io/bound-by-controller"

	// BindCompletedAnnotation on a claim: it was fully bound once.
	BindCompletedAnnotation = "pv.kubernetes.io/bind-completed"

	// ProvisionedByAnnotation on a volume names the provisioner that made it.
	ProvisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
)

// BoundByController reports whether a controller made the link that the claim or
// volume has, and may undo it.
func BoundByController(object metav1.Object) bool {
	_, ok := object.GetAnnotations()[BoundByControllerAnnotation]
	return ok
}

// BindCompleted reports whether the claim was fully bound once, as its annotation says. It stays so when
// the volume is lost. Whoever may edit the claim can write the annotation: it proves no right to a volume, see Owned.
func BindCompleted(claim *corev1.PersistentVolumeClaim) bool {
	_, ok := claim.Annotations[BindCompletedAnnotation]
	return ok
}

func provisioned(volume *corev1.PersistentVolume) bool {
	_, ok := volume.Annotations[ProvisionedByAnnotation]
	return ok
}
