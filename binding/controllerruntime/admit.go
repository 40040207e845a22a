package controllerruntime

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admit fills in what every server has filled in and a fake client has not (A1, A6), as far as decisions depend on it. It
// reports whether anything was missing.
func admit(object client.Object) bool {
	missing := false
	if object.GetUID() == "" {
		object.SetUID(uuid.NewUUID())
		missing = true
	}
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		if object.Spec.PersistentVolumeReclaimPolicy == "" {
			object.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			missing = true
		}
	case *storagev1.StorageClass:
		missing = setDefault(&object.VolumeBindingMode, storagev1.VolumeBindingImmediate) || missing
		missing = setDefault(&object.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete) || missing
	}
	return missing
}

func setDefault[T any](field **T, value T) bool {
	if *field != nil {
		return false
	}
	*field = &value
	return true
}
