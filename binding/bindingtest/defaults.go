package bindingtest

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// SetDefaults fills in what was left out of an object as an API server does, on create, on every update and whenever it
// reads from its storage (A6). Server.Create and Server.Update do it; Server.Load does not: what a cluster hands out
// has all this already, what was written by hand need not.
//
// It replaces fields of the object, and writes to nothing that they point to.
func SetDefaults(object obj.Object) {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		setDefault(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		setDefaultPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		setDefault(&o.Status.Phase, corev1.VolumePending)
	case *corev1.PersistentVolumeClaim:
		setDefaultPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		setDefault(&o.Status.Phase, corev1.ClaimPending)
	case *storagev1.StorageClass:
		setDefaultPointer(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		setDefaultPointer(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	case *corev1.Pod:
		if o.Spec.TerminationGracePeriodSeconds == nil {
			o.Spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
		}
	}
}

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setDefaultPointer[T ~string](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
