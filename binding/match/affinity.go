package match

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
)

// UsableOn reports whether the volume's node affinity accepts the node (M10). A malformed term
// accepts nothing; what the other terms accept still counts.
func UsableOn(node *corev1.Node, volume *corev1.PersistentVolume) bool {
	required := RequiredAffinity(volume)
	if required == nil {
		return true
	}
	if excluded(node, required) {
		return false
	}
	accepts, err := matchLabels(node, required)
	return accepts && err == nil
}

// RequiredAffinity returns what the volume requires of its node; nil if it requires nothing.
func RequiredAffinity(volume *corev1.PersistentVolume) *corev1.NodeSelector {
	if volume.Spec.NodeAffinity == nil {
		return nil
	}
	return volume.Spec.NodeAffinity.Required
}

// matchLabels compares a node affinity with the node's labels only. Upstream's scheduler, controller and kubelet do not
// look at matchFields in the node affinity of a volume; one that says no here would be alone with it.
func matchLabels(node *corev1.Node, required *corev1.NodeSelector) (bool, error) {
	labelled := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: node.Labels}}
	return schedulingcorev1.MatchNodeSelectorTerms(&labelled, required)
}

// excluded reports, without the cost of parsing, that no term can accept the node, for each requires
// a label value that the node does not have. Nearly every local or zonal volume of other nodes is excluded so.
func excluded(node *corev1.Node, required *corev1.NodeSelector) bool {
	for i := range required.NodeSelectorTerms {
		if !requiresOtherLabel(node, &required.NodeSelectorTerms[i]) {
			return false
		}
	}
	return true
}

func requiresOtherLabel(node *corev1.Node, term *corev1.NodeSelectorTerm) bool {
	return slices.ContainsFunc(term.MatchExpressions, func(required corev1.NodeSelectorRequirement) bool {
		value, ok := node.Labels[required.Key]
		return required.Operator == corev1.NodeSelectorOpIn && (!ok || !slices.Contains(required.Values, value))
	})
}

// AffinityText writes the node affinity of a volume for people: "zone In [a b] or host Exists".
func AffinityText(required *corev1.NodeSelector) string {
	var terms []string
	for _, term := range required.NodeSelectorTerms {
		var parts []string
		for _, e := range append(slices.Clone(term.MatchExpressions), term.MatchFields...) {
			part := e.Key + " " + string(e.Operator)
			if len(e.Values) > 0 {
				part += " [" + strings.Join(e.Values, " ") + "]"
			}
			parts = append(parts, part)
		}
		terms = append(terms, strings.Join(parts, " and "))
	}
	return strings.Join(terms, " or ")
}
