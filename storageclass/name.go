package storageclass

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// OfClaim returns the name of the claim's class, "" if it has none. The beta
// annotation wins over the field, even when it is empty (M6). A text that is longer
// than any name is cut, see [obj.Name], and no volume has that class.
func OfClaim(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return obj.Name(name)
	}
	if claim.Spec.StorageClassName != nil {
		return obj.Name(*claim.Spec.StorageClassName)
	}
	return ""
}

// Unset reports whether the claim states no class, neither by annotation nor by
// field, so that the default class may be assigned to it. A claim that states ""
// is not unset: it requests a volume without a class (C2).
func Unset(claim *corev1.PersistentVolumeClaim) bool {
	_, annotated := claim.Annotations[corev1.BetaStorageClassAnnotation]
	return !annotated && claim.Spec.StorageClassName == nil
}

// OfVolume returns the name of the volume's class, "" if it has none. The beta
// annotation wins over the field, even when it is empty (M6).
func OfVolume(volume *corev1.PersistentVolume) string {
	if name, ok := volume.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return volume.Spec.StorageClassName
}

// SelectedNode returns the name of the node that the scheduler has selected for the
// claim, "" if none. Whoever may edit the claim can write it too, so that a text that
// is longer than any name is cut, see [obj.Name].
func SelectedNode(claim *corev1.PersistentVolumeClaim) string {
	return obj.Name(claim.Annotations[SelectedNodeAnnotation])
}

// Annotations of classes, claims and volumes that say which class and which
// provisioner serves them.
const (
	// IsDefaultAnnotation on a class, with the value "true", makes it the one
	// that claims without a class get.
	IsDefaultAnnotation = "storageclass.kubernetes.io/is-default-class"
	// BetaIsDefaultAnnotation is the older spelling of IsDefaultAnnotation.
	BetaIsDefaultAnnotation = "storageclass.beta.kubernetes.io/is-default-class"

	// ProvisionerAnnotation on a claim names the provisioner that is to make a
	// volume for it. An external one acts once its name is here (P3).
	ProvisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// BetaProvisionerAnnotation is the older spelling of ProvisionerAnnotation.
	// Both are written, for old provisioners read only this one.
	BetaProvisionerAnnotation = "volume.beta.kubernetes.io/storage-provisioner"

	// SelectedNodeAnnotation on a claim of a WaitForFirstConsumer class is the
	// scheduler's request to provision a volume that the named node can use.
	SelectedNodeAnnotation = "volume.kubernetes.io/selected-node"

	// MigratedToAnnotation on a claim or volume names the CSI driver that serves
	// it in place of its in-tree provisioner (G2).
	MigratedToAnnotation = "pv.kubernetes.io/migrated-to"
)
