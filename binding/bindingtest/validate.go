package bindingtest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/obj"
)

// Validate says everything that is wrong with an object, by field; empty if the API would take it.
// It checks what binding and reclaiming depend on: the inside of a volume's source, of a pod's
// containers and of a node are passed over. Server.Create and Server.Update refuse what it faults.
//
// Defaults are not required: a nil volumeMode or an empty reclaim policy is valid.
func Validate(object obj.Object) field.ErrorList {
	key, err := KeyOf(object)
	if err != nil {
		return field.ErrorList{field.TypeInvalid(field.NewPath("kind"), object.GetObjectKind().GroupVersionKind().Kind, err.Error())}
	}
	info, _ := infoOf(key.Kind)
	object = topOf(object)
	dropNamespace(object)
	errs := validation.ValidateObjectMetaAccessor(object, info.scope == namespaced, validation.NameIsDNSSubdomain, metadata())
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		return append(errs, validateVolume(&o.Spec)...)
	case *corev1.PersistentVolumeClaim:
		return append(errs, validateClaim(&o.Spec)...)
	case *storagev1.StorageClass:
		return append(errs, validateClass(o)...)
	case *corev1.Pod:
		return append(errs, validatePod(&o.Spec)...)
	case *storagev1.VolumeAttachment:
		return append(errs, validateAttachment(&o.Spec)...)
	}
	return errs
}

func validateClaim(claim *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	errs := validateModes(claim.AccessModes)
	options := metavalidation.LabelSelectorValidationOptions{}
	errs = append(errs, metavalidation.ValidateLabelSelector(claim.Selector, options, spec("selector"))...)
	errs = append(errs, validateRequest(claim)...)
	if claim.StorageClassName != nil && *claim.StorageClassName != "" {
		errs = append(errs, validateName(spec("storageClassName"), *claim.StorageClassName)...)
	}
	if claim.VolumeAttributesClassName != nil && *claim.VolumeAttributesClassName != "" {
		errs = append(errs, validateName(spec("volumeAttributesClassName"), *claim.VolumeAttributesClassName)...)
	}
	return append(errs, validateVolumeMode(claim.VolumeMode)...)
}

func validateRequest(claim *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	path := spec("resources").Key(string(corev1.ResourceStorage))
	request, ok := claim.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return field.ErrorList{field.Required(path, "")}
	}
	return validatePositive(path, request)
}

func validateClass(class *storagev1.StorageClass) field.ErrorList {
	errs := validateDriver(field.NewPath("provisioner"), class.Provisioner)
	if class.ReclaimPolicy != nil {
		errs = append(errs, oneOf(field.NewPath("reclaimPolicy"), *class.ReclaimPolicy,
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
	}
	if class.VolumeBindingMode != nil {
		errs = append(errs, oneOf(field.NewPath("volumeBindingMode"), *class.VolumeBindingMode,
			storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	}
	return errs
}

// validateDriver holds the name of a provisioner or attacher to its form.
func validateDriver(path *field.Path, name string) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, problem := range utilvalidation.IsQualifiedName(strings.ToLower(name)) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	return errs
}

func validateAttachment(attachment *storagev1.VolumeAttachmentSpec) field.ErrorList {
	errs := validateDriver(spec("attacher"), attachment.Attacher)
	switch source := attachment.Source; {
	case source.InlineVolumeSpec == nil && source.PersistentVolumeName == nil:
		errs = append(errs, field.Required(spec("source"), "an inline volume or the name of a volume"))
	case source.InlineVolumeSpec != nil && source.PersistentVolumeName != nil:
		errs = append(errs, field.Forbidden(spec("source"), "only one of an inline volume and the name of a volume"))
	case source.PersistentVolumeName != nil && *source.PersistentVolumeName == "":
		errs = append(errs, field.Required(spec("source", "persistentVolumeName"), ""))
	}
	for _, problem := range validation.NameIsDNSSubdomain(attachment.NodeName, false) {
		errs = append(errs, field.Invalid(spec("nodeName"), attachment.NodeName, problem))
	}
	return errs
}

func validatePod(pod *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	for i, volume := range pod.Volumes {
		path := spec("volumes").Index(i)
		for _, problem := range utilvalidation.IsDNS1123Label(volume.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), volume.Name, problem))
		}
		if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == "" {
			errs = append(errs, field.Required(path.Child("persistentVolumeClaim", "claimName"), ""))
		}
	}
	return errs
}
