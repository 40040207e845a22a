package bindingtest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func spec(path ...string) *field.Path { return field.NewPath("spec", path...) }

func metadata(path ...string) *field.Path { return field.NewPath("metadata", path...) }

func validateModes(modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	at := spec("accessModes")
	if len(modes) == 0 {
		return field.ErrorList{field.Required(at, "at least one")}
	}
	var errs field.ErrorList
	for _, mode := range modes {
		errs = append(errs, oneOf(at, mode, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
	}
	alone := func(mode corev1.PersistentVolumeAccessMode) bool { return mode == corev1.ReadWriteOncePod }
	if slices.ContainsFunc(modes, alone) && slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool { return !alone(m) }) {
		errs = append(errs, field.Forbidden(at, "ReadWriteOncePod stands alone"))
	}
	return errs
}

func validateVolumeMode(mode *corev1.PersistentVolumeMode) field.ErrorList {
	if mode == nil {
		return nil
	}
	return oneOf(spec("volumeMode"), *mode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
}

func validatePositive(at *field.Path, quantity resource.Quantity) field.ErrorList {
	if quantity.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, quantity.String(), "must be greater than zero")}
}

func validateName(at *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(at, name, problem))
	}
	return errs
}

func oneOf[T ~string](at *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, allowed)}
}
