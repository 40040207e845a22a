package storageclass

import corev1 "k8s.io/api/core/v1"

// OfClaim returns the name of the claim's class, "" if it has none (rule M6).
// The beta annotation wins over the field, even when it is empty.
func OfClaim(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// Unset reports whether the claim says nothing of a class, neither by annotation
// nor by field, so that the default class may be assigned to it (rule C2). A
// claim that says "" is not unset: it asks for a volume without a class.
func Unset(claim *corev1.PersistentVolumeClaim) bool {
	_, annotated := claim.Annotations[corev1.BetaStorageClassAnnotation]
	return !annotated && claim.Spec.StorageClassName == nil
}

// OfVolume returns the name of the volume's class, "" if it has none (rule M6).
// The beta annotation wins over the field, even when it is empty.
func OfVolume(volume *corev1.PersistentVolume) string {
	if name, ok := volume.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return volume.Spec.StorageClassName
}
