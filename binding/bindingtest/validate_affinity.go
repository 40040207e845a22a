package bindingtest

import (
	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
