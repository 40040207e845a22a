package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// maxPlaces is how many values a node affinity may list for the volume to be looked up by each.
const maxPlaces = 16

// placesOf are the labels of which a node must have one to be accepted, if the node affinity has the
// shape of nearly every local or zonal volume: one term, that asks for one label to have one of some
// values. What has another shape has no places and must be checked.
func placesOf(required *corev1.NodeSelector) []label {
	if required == nil || len(required.NodeSelectorTerms) != 1 {
		return nil
	}
	term := &required.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
		return nil
	}
	asked := &term.MatchExpressions[0]
	if asked.Operator != corev1.NodeSelectorOpIn || len(asked.Values) > maxPlaces {
		return nil
	}
	// A malformed term accepts nothing, not even what its good values say.
	if _, err := labels.NewRequirement(asked.Key, selection.In, asked.Values); err != nil {
		return nil
	}
	var places []label
	for _, value := range asked.Values {
		if place := (label{asked.Key, value}); !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}
