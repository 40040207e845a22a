package binding

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// maxPlaces is how many values a node affinity may list for the volume to be looked up by each.
const maxPlaces = 16

// places are labels of one key, of which a node must have one for a volume to be usable on it.
type places struct {
	labels  []label // none: whatever the node's labels, the volume must be checked
	suffice bool    // one of them is enough; else the volume must be checked on a node that has one
}

// placesOf are the places of a volume: what its terms ask for of one key by In, of several keys the one that leaves the
// fewest nodes. They suffice if no term asks for more, as with nearly every local or zonal volume; a region beside the
// zone is more.
func placesOf(required *corev1.NodeSelector) places {
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return places{}
	}
	var best []label
	for _, asked := range required.NodeSelectorTerms[0].MatchExpressions {
		found := labelsOf(required, asked.Key)
		if len(found) > 0 && (best == nil || compareNarrowness(found, best) < 0) {
			best = found
		}
	}
	return places{labels: best, suffice: len(best) > 0 && !slices.ContainsFunc(required.NodeSelectorTerms, asksMore)}
}

// labelsOf are the values of the key that the terms ask for, if each asks for some and they are not too many.
func labelsOf(required *corev1.NodeSelector, key string) (all []label) {
	for _, term := range required.NodeSelectorTerms {
		at := slices.IndexFunc(term.MatchExpressions, func(asked corev1.NodeSelectorRequirement) bool {
			return asked.Key == key && asked.Operator == corev1.NodeSelectorOpIn
		})
		if at < 0 || len(term.MatchExpressions[at].Values) > maxPlaces {
			return nil
		}
		for _, value := range term.MatchExpressions[at].Values {
			if place := (label{key, value}); !slices.Contains(all, place) {
				all = append(all, place)
			}
		}
	}
	if len(all) > maxPlaces {
		return nil
	}
	return all
}

// compareNarrowness puts labels first that fewer nodes have: a host; then a label that is not known here, which may be a
// driver's own name of a node; then a zone, a region, and what nodes are made of.
func compareNarrowness(a, b []label) int {
	width := func(key string) int {
		switch key {
		case corev1.LabelHostname:
			return 0
		case corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone:
			return 2
		case corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion:
			return 3
		case corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelInstanceTypeStable:
			return 4
		}
		return 1
	}
	return cmp.Or(cmp.Compare(width(a[0].key), width(b[0].key)), cmp.Compare(len(a), len(b)), cmp.Compare(a[0].key, b[0].key))
}

// asksMore reports whether a term that asks for a label to have one of some values may accept less than that: it
// asks for something else too, or it is malformed and accepts nothing.
func asksMore(term corev1.NodeSelectorTerm) bool {
	if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
		return true
	}
	asked := &term.MatchExpressions[0]
	_, err := labels.NewRequirement(asked.Key, selection.In, asked.Values)
	return err != nil
}
