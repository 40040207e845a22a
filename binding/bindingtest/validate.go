package bindingtest

import (
	"path"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// sourcesOf returns the fields of the spec that have a source, in the order in which the API looks at them.
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

func validateNodeAffinity(affinity *corev1.VolumeNodeAffinity) field.ErrorList {
	if affinity == nil {
		return nil
	}
	at := spec("nodeAffinity", "required")
	if affinity.Required == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(affinity.Required.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(at.Child("nodeSelectorTerms"), "at least one")}
	}
	var errs field.ErrorList
	for i, term := range affinity.Required.NodeSelectorTerms {
		at := at.Child("nodeSelectorTerms").Index(i)
		for j, requirement := range term.MatchExpressions {
			at := at.Child("matchExpressions").Index(j)
			errs = append(errs, metavalidation.ValidateLabelName(requirement.Key, at.Child("key"))...)
			errs = append(errs, validateOperator(at, requirement)...)
		}
		for j, requirement := range term.MatchFields {
			at := at.Child("matchFields").Index(j)
			errs = append(errs, oneOf(at.Child("key"), requirement.Key, "metadata.name")...)
			errs = append(errs, validateOperator(at, requirement)...)
		}
	}
	return errs
}

func validateOperator(at *field.Path, requirement corev1.NodeSelectorRequirement) field.ErrorList {
	values := len(requirement.Values)
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if values == 0 {
			return field.ErrorList{field.Required(at.Child("values"), "at least one for "+string(requirement.Operator))}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if values > 0 {
			return field.ErrorList{field.Forbidden(at.Child("values"), "none for "+string(requirement.Operator))}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if values != 1 {
			return field.ErrorList{field.Required(at.Child("values"), "exactly one for "+string(requirement.Operator))}
		}
	default:
		return field.ErrorList{field.Invalid(at.Child("operator"), requirement.Operator, "not a selector operator")}
	}
	var errs field.ErrorList
	for i, value := range requirement.Values {
		for _, problem := range utilvalidation.IsValidLabelValue(value) {
			errs = append(errs, field.Invalid(at.Child("values").Index(i), value, problem))
		}
	}
	return errs
}

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
