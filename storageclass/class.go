package storageclass

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/pvbind/pvbind/binding/obj"
)

// IsDefault reports whether the class is marked as a default class.
func IsDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[IsDefaultAnnotation] == "true" ||
		class.Annotations[BetaIsDefaultAnnotation] == "true"
}

// Default returns the class that claims without a class get: of those marked as
// default the newest, and of several created in the same second the first by
// name. It returns nil if none is marked (C2).
func Default(classes []*storagev1.StorageClass) *storagev1.StorageClass {
	var best *storagev1.StorageClass
	for _, class := range classes {
		if IsDefault(class) && (best == nil || preferred(class, best)) {
			best = class
		}
	}
	return best
}

func preferred(class, other *storagev1.StorageClass) bool {
	created, otherCreated := class.CreationTimestamp.Time, other.CreationTimestamp.Time
	if created.Equal(otherCreated) {
		return class.Name < other.Name
	}
	return created.After(otherCreated)
}

// WaitsForFirstConsumer reports whether claims of the class are bound only once a
// pod that uses them is scheduled. A class that does not exist, nil, binds
// immediately. It fails with an *obj.InvalidError if the class has no
// volumeBindingMode, or one that the Kubernetes API does not define (M11).
func WaitsForFirstConsumer(class *storagev1.StorageClass) (bool, error) {
	if class == nil {
		return false, nil
	}
	switch mode := class.VolumeBindingMode; {
	case mode != nil && *mode == storagev1.VolumeBindingImmediate:
		return false, nil
	case mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer:
		return true, nil
	}
	return false, &obj.InvalidError{
		Object:  "storageclass/" + class.Name,
		Field:   "volumeBindingMode",
		Problem: "neither Immediate nor WaitForFirstConsumer",
	}
}

// Provisions reports whether volumes can be made for claims of the class: it
// exists and names a provisioner other than [NoProvisioner] (P1, S5).
func Provisions(class *storagev1.StorageClass) bool {
	return class != nil && class.Provisioner != "" && class.Provisioner != NoProvisioner
}

// AllowsNode reports whether volumes of the class may be made for a node with
// these labels: the class has no allowedTopologies, or the labels meet every
// expression of one of them. As in Kubernetes, a topology that is empty or
// malformed allows no node (S5).
func AllowsNode(class *storagev1.StorageClass, nodeLabels map[string]string) bool {
	return len(class.AllowedTopologies) == 0 ||
		slices.ContainsFunc(class.AllowedTopologies, func(allowed corev1.TopologySelectorTerm) bool {
			return allows(allowed, nodeLabels)
		})
}

// allows compares the labels first, for validation costs more.
func allows(allowed corev1.TopologySelectorTerm, nodeLabels map[string]string) bool {
	for _, expression := range allowed.MatchLabelExpressions {
		value, ok := nodeLabels[expression.Key]
		if !ok || !slices.Contains(expression.Values, value) {
			return false
		}
	}
	return len(allowed.MatchLabelExpressions) > 0 && wellFormed(allowed)
}

func wellFormed(allowed corev1.TopologySelectorTerm) bool {
	for _, expression := range allowed.MatchLabelExpressions {
		if _, err := labels.NewRequirement(expression.Key, selection.In, expression.Values); err != nil {
			return false
		}
	}
	return true
}
