package bindingtest

import (
	"path"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateVolume(volume *corev1.PersistentVolumeSpec) field.ErrorList {
	errs := validateModes(volume.AccessModes)
	errs = append(errs, validateCapacity(volume.Capacity)...)
	if volume.PersistentVolumeReclaimPolicy != "" {
		errs = append(errs, oneOf(spec("persistentVolumeReclaimPolicy"), volume.PersistentVolumeReclaimPolicy,
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	}
	errs = append(errs, validateVolumeMode(volume.VolumeMode)...)
	errs = append(errs, validateSource(volume)...)
	errs = append(errs, validateNodeAffinity(volume.NodeAffinity)...)
	if volume.StorageClassName != "" {
		errs = append(errs, validateName(spec("storageClassName"), volume.StorageClassName)...)
	}
	if name := volume.VolumeAttributesClassName; name != nil {
		errs = append(errs, validateName(spec("volumeAttributesClassName"), *name)...)
		if volume.CSI == nil {
			errs = append(errs, field.Required(spec("csi"), "only a CSI volume has an attributes class"))
		}
	}
	return errs
}

func validateCapacity(capacity corev1.ResourceList) field.ErrorList {
	at := spec("capacity")
	storage, ok := capacity[corev1.ResourceStorage]
	switch {
	case len(capacity) == 0:
		return field.ErrorList{field.Required(at, "")}
	case !ok || len(capacity) > 1:
		return field.ErrorList{field.NotSupported(at, capacity, []corev1.ResourceName{corev1.ResourceStorage})}
	}
	return validatePositive(at.Key(string(corev1.ResourceStorage)), storage)
}

// validateSource wants exactly one source.
func validateSource(volume *corev1.PersistentVolumeSpec) field.ErrorList {
	sources := 0
	all := reflect.ValueOf(volume.PersistentVolumeSource)
	for i := range all.NumField() {
		if !all.Field(i).IsNil() {
			sources++
		}
	}
	var errs field.ErrorList
	switch {
	case sources == 0:
		errs = append(errs, field.Required(spec(), "a volume source"))
	case sources > 1:
		errs = append(errs, field.Forbidden(spec(), "more than one volume source"))
	}
	if volume.Local != nil && volume.NodeAffinity == nil {
		errs = append(errs, field.Required(spec("nodeAffinity"), "a local volume is on some node"))
	}
	if volume.HostPath != nil && path.Clean(volume.HostPath.Path) == "/" && volume.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(spec("persistentVolumeReclaimPolicy"), "the root of a node is not recycled"))
	}
	return errs
}
