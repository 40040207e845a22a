package bindingtest

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding"
)

// applyDefaults fills in what was left out, on create and on every update (A6).
func applyDefaults(object binding.Object) {
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
			o.Spec.TerminationGracePeriodSeconds = ref(int64(corev1.DefaultTerminationGracePeriodSeconds))
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
