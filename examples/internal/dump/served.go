package dump

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding"
)

// Served fills in what an API server fills in whenever it reads an object from its storage (A6). A dump
// has all that already; objects written by hand need not.
func Served(object binding.Object) binding.Object {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		fill(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		fillPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		fill(&o.Status.Phase, corev1.VolumePending)
	case *corev1.PersistentVolumeClaim:
		fillPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		fill(&o.Status.Phase, corev1.ClaimPending)
	case *storagev1.StorageClass:
		fillPointer(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		fillPointer(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	}
	return object
}

func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func fillPointer[T ~string](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
