package storageclass

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// AllowsNode reports whether volumes of the class may be made for a node with
// these labels (rule S5): the class has no allowedTopologies, or the labels meet
// every expression of one of them. As in Kubernetes, a topology that is empty or
// malformed allows no node.
func AllowsNode(class *storagev1.StorageClass, nodeLabels map[string]string) bool {
	return len(class.AllowedTopologies) == 0 ||
		slices.ContainsFunc(class.AllowedTopologies, func(allowed corev1.TopologySelectorTerm) bool {
			return allows(allowed, nodeLabels)
		})
}

// allows looks for the label first: only what has it is worth the cost of being
// found well-formed.
func allows(allowed corev1.TopologySelectorTerm, nodeLabels map[string]string) bool {
	for _, asked := range allowed.MatchLabelExpressions {
		value, ok := nodeLabels[asked.Key]
		if !ok || !slices.Contains(asked.Values, value) {
			return false
		}
	}
	return len(allowed.MatchLabelExpressions) > 0 && wellFormed(allowed)
}

func wellFormed(allowed corev1.TopologySelectorTerm) bool {
	for _, asked := range allowed.MatchLabelExpressions {
		if _, err := labels.NewRequirement(asked.Key, selection.In, asked.Values); err != nil {
			return false
		}
	}
	return true
}
