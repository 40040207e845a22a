package bindingtest_test

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

type (
	pv  = *corev1.PersistentVolume
	pvc = *corev1.PersistentVolumeClaim
	sc  = *storagev1.StorageClass
)

var keyA = obj.VolumeKey("a")
