package bindingtest

import (
	"path"
	"reflect"
	"strings"

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

// validateSource wants exactly one source. Of more, the API faults all but the one it looks at first.
func validateSource(volume *corev1.PersistentVolumeSpec) field.ErrorList {
	var errs field.ErrorList
	sources := sourcesOf(volume)
	if len(sources) == 0 {
		errs = append(errs, field.Required(spec(), "a volume source"))
	} else {
		for _, name := range sources[1:] {
			errs = append(errs, field.Forbidden(spec(name), "more than one volume source"))
		}
	}
	if volume.Local != nil && volume.NodeAffinity == nil {
		errs = append(errs, field.Required(spec("nodeAffinity"), "a local volume is on some node"))
	}
	if volume.HostPath != nil && path.Clean(volume.HostPath.Path) == "/" && volume.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		errs = append(errs, field.Forbidden(spec("persistentVolumeReclaimPolicy"), "the root of a node is not recycled"))
	}
	return errs
}

// sourcesOf are the fields of the spec that have a source, in the order in which the API looks at them.
func sourcesOf(volume *corev1.PersistentVolumeSpec) []string {
	var names []string
	if volume.HostPath != nil {
		names = append(names, "hostPath")
	}
	all := reflect.ValueOf(volume.PersistentVolumeSource)
	for i := range all.NumField() {
		name, _, _ := strings.Cut(all.Type().Field(i).Tag.Get("json"), ",")
		if !all.Field(i).IsNil() && name != "hostPath" {
			names = append(names, name)
		}
	}
	return names
}
