package preview

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding"
)

// served is the object as an API server hands it out, which fills in what was left out (A6). What comes from a cluster
// is that already; what was written by hand need not be, and could not be written back.
func served(object binding.Object) binding.Object {
	object = object.DeepCopyObject().(binding.Object)
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		fill(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		fill(&o.Status.Phase, corev1.VolumePending)
		point(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	case *corev1.PersistentVolumeClaim:
		fill(&o.Status.Phase, corev1.ClaimPending)
		point(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	case *storagev1.StorageClass:
		point(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		point(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	}
	return object
}

func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func point[T ~string](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
