package bindingtest

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/obj"
)

// checkImmutable refuses changes of what an update may not change (A3, A4).
func checkImmutable(object, old obj.Object) field.ErrorList {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		return checkVolumeChange(o, old.(*corev1.PersistentVolume))
	case *corev1.PersistentVolumeClaim:
		return checkClaimChange(o, old.(*corev1.PersistentVolumeClaim))
	case *storagev1.StorageClass:
		return checkClassChange(o, old.(*storagev1.StorageClass))
	case *storagev1.VolumeAttachment:
		return unchanged(field.NewPath("spec"), o.Spec, old.(*storagev1.VolumeAttachment).Spec)
	}
	return nil
}

// checkVolumeChange holds a volume to A4.
func checkVolumeChange(volume, old *corev1.PersistentVolume) field.ErrorList {
	var errs field.ErrorList
	source, oldSource := volume.Spec.PersistentVolumeSource.DeepCopy(), old.Spec.PersistentVolumeSource
	if source.CSI != nil && oldSource.CSI != nil && oldSource.CSI.ControllerExpandSecretRef == nil {
		source.CSI.ControllerExpandSecretRef = nil // may be set once
	}
	errs = append(errs, unchanged(spec("persistentvolumesource"), *source, oldSource)...)
	errs = append(errs, unchanged(spec("volumeMode"), volume.Spec.VolumeMode, old.Spec.VolumeMode)...)
	if old.Spec.NodeAffinity != nil {
		errs = append(errs, unchanged(spec("nodeAffinity"), volume.Spec.NodeAffinity, old.Spec.NodeAffinity)...)
	}
	if old.Spec.VolumeAttributesClassName != nil && volume.Spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(spec("volumeAttributesClassName"), "cannot be removed"))
	}
	return errs
}

func checkClassChange(class, old *storagev1.StorageClass) field.ErrorList {
	errs := unchanged(field.NewPath("parameters"), class.Parameters, old.Parameters)
	errs = append(errs, unchanged(field.NewPath("provisioner"), class.Provisioner, old.Provisioner)...)
	errs = append(errs, unchanged(field.NewPath("reclaimPolicy"), class.ReclaimPolicy, old.ReclaimPolicy)...)
	return append(errs, unchanged(field.NewPath("volumeBindingMode"), class.VolumeBindingMode, old.VolumeBindingMode)...)
}

func unchanged(path *field.Path, value, old any) field.ErrorList {
	if equality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "cannot be changed")}
}
