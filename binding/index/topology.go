package index

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// topology is by which node labels a volume with a node affinity can be found.
type topology struct {
	// labels are of one key, and a node must have one of them for the volume to be usable on it. Without labels, the volume
	// must be checked on every node.
	labels []label
	// exact says that one of the labels is enough. Else the volume must be checked on a node that has one.
	exact bool
}

// maxTopologyLabels is how many values a node affinity may list for the volume to be found by each.
const maxTopologyLabels = 16

// topologyOf returns the labels that all terms require of one key by In, of several keys those of the one that the fewest
// nodes have. They are exact if no term requires more, as with nearly every local or zonal volume. A region beside the zone
// is more.
func topologyOf(required *corev1.NodeSelector) topology {
	if len(required.NodeSelectorTerms) == 0 {
		return topology{}
	}
	var best []label
	for _, requested := range required.NodeSelectorTerms[0].MatchExpressions {
		found := labelsOf(required, requested.Key)
		if len(found) > 0 && (best == nil || compareTopology(found, best) < 0) {
			best = found
		}
	}
	return topology{labels: best, exact: len(best) > 0 && !slices.ContainsFunc(required.NodeSelectorTerms, requiresMore)}
}

// labelsOf returns the values of the key that the terms require, if each requires some and they are not too many.
func labelsOf(required *corev1.NodeSelector, key string) (all []label) {
	for _, term := range required.NodeSelectorTerms {
		at := slices.IndexFunc(term.MatchExpressions, func(requested corev1.NodeSelectorRequirement) bool {
			return requested.Key == key && requested.Operator == corev1.NodeSelectorOpIn
		})
		if at < 0 {
			return nil
		}
		for _, value := range term.MatchExpressions[at].Values {
			if l := (label{key, value}); !slices.Contains(all, l) {
				all = append(all, l)
			}
			if len(all) > maxTopologyLabels {
				return nil
			}
		}
	}
	return all
}

// compareTopology puts labels first that fewer nodes have: a host; then a label that is not known here, which may be a
// driver's own name of a node; then a zone, a region, and what nodes are made of.
func compareTopology(a, b []label) int {
	return cmp.Or(cmp.Compare(widths[a[0].key], widths[b[0].key]), cmp.Compare(len(a), len(b)), cmp.Compare(a[0].key, b[0].key))
}

var widths = map[string]int{
	corev1.LabelHostname:                -1,
	corev1.LabelTopologyZone:            1,
	corev1.LabelFailureDomainBetaZone:   1,
	corev1.LabelTopologyRegion:          2,
	corev1.LabelFailureDomainBetaRegion: 2,
	corev1.LabelOSStable:                3,
	corev1.LabelArchStable:              3,
	corev1.LabelInstanceTypeStable:      3,
}

// requiresMore reports whether a term that requires one of some values of a label may accept less than that: it requires
// something else too, or it is malformed and accepts nothing.
func requiresMore(term corev1.NodeSelectorTerm) bool {
	if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 0 {
		return true
	}
	requested := &term.MatchExpressions[0]
	_, err := labels.NewRequirement(requested.Key, selection.In, requested.Values)
	return err != nil
}
