package match

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/requirements"
)

// UsableOn reports whether the volume's node affinity accepts the node (M10). A malformed term
// accepts nothing; what the other terms accept still counts.
func UsableOn(node *corev1.Node, volume *corev1.PersistentVolume) bool {
	affinity := AffinityOf(volume)
	return affinity.Accepts(node)
}

// Affinity is the node affinity of a volume, read once, to be compared with any number of nodes. AffinityOf and AffinityTo
// return one.
type Affinity struct {
	required *corev1.NodeSelector // nil: every node will do
	// compiled is that of a large node affinity; nil for the usual one, which is compared as it is.
	compiled *compiledAffinity
}

// AffinityOf reads the node affinity of a volume, in time linear in its size.
func AffinityOf(volume *corev1.PersistentVolume) Affinity {
	return AffinityTo(RequiredAffinity(volume))
}

// AffinityTo reads what is required of a node, in time linear in its size; nil requires nothing.
func AffinityTo(required *corev1.NodeSelector) Affinity {
	a := Affinity{required: required}
	if a.required != nil && large(a.required) {
		a.compiled = compileAffinity(a.required)
	}
	return a
}

// Accepts reports whether the volume is usable on the node, as UsableOn does.
func (a *Affinity) Accepts(node *corev1.Node) bool {
	switch {
	case a.required == nil:
		return true
	case a.compiled != nil:
		return a.compiled.accepts(node.Labels)
	case excluded(node, a.required):
		return false
	}
	accepts, err := matchLabels(node, a.required)
	return accepts && err == nil
}

// malformed returns what is wrong with terms of an affinity that does not accept the node; nil if nothing is.
func (a *Affinity) malformed(node *corev1.Node) error {
	if a.compiled != nil {
		return a.compiled.err
	}
	_, err := matchLabels(node, a.required)
	return err
}

// maxUncompiled is how many terms, expressions and values a node affinity may have to be compared as it is.
const maxUncompiled = 256

// LargeAffinity reports whether the volume's node affinity is so large that AffinityOf should be called once.
func LargeAffinity(volume *corev1.PersistentVolume) bool {
	required := RequiredAffinity(volume)
	return required != nil && large(required)
}

func large(required *corev1.NodeSelector) bool {
	parts := len(required.NodeSelectorTerms)
	for i := 0; i < len(required.NodeSelectorTerms) && parts <= maxUncompiled; i++ {
		expressions := required.NodeSelectorTerms[i].MatchExpressions
		parts += len(expressions)
		for j := 0; j < len(expressions) && parts <= maxUncompiled; j++ {
			parts += len(expressions[j].Values)
		}
	}
	return parts > maxUncompiled
}

// compiledAffinity has the terms of a node affinity by a label that they require. A node is compared with those of its own
// labels, and with the few that require none.
type compiledAffinity struct {
	byKey  map[string]map[string][]*requirements.Set
	others []*requirements.Set
	err    error // about the first malformed term
}

// maxTermLabels is how many values of a label a term may accept to be found by each.
const maxTermLabels = 4

func compileAffinity(required *corev1.NodeSelector) *compiledAffinity {
	c := &compiledAffinity{byKey: map[string]map[string][]*requirements.Set{}}
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			continue // it accepts no node
		}
		set, err := requirements.OfTerm(term)
		if err != nil {
			c.err = cmp.Or(c.err, err)
			continue
		}
		key, values := set.In(maxTermLabels)
		if key == "" {
			c.others = append(c.others, set)
			continue
		}
		if c.byKey[key] == nil {
			c.byKey[key] = map[string][]*requirements.Set{}
		}
		for _, value := range values {
			c.byKey[key][value] = append(c.byKey[key][value], set)
		}
	}
	return c
}

func (c *compiledAffinity) accepts(labels map[string]string) bool {
	matches := func(set *requirements.Set) bool { return set.Matches(labels) }
	if slices.ContainsFunc(c.others, matches) {
		return true
	}
	if len(c.byKey) < len(labels) {
		for key, byValue := range c.byKey {
			if value, found := labels[key]; found && slices.ContainsFunc(byValue[value], matches) {
				return true
			}
		}
		return false
	}
	for key, value := range labels {
		if slices.ContainsFunc(c.byKey[key][value], matches) {
			return true
		}
	}
	return false
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

// AffinityText writes the node affinity of a volume for people: "zone In [a b] or host Exists". A long one is cut.
func AffinityText(required *corev1.NodeSelector) string {
	return oneline.Join(required.NodeSelectorTerms, " or ", func(term corev1.NodeSelectorTerm) string {
		expressions := term.MatchExpressions[:min(len(term.MatchExpressions), maxParts)]
		return oneline.Join(slices.Concat(expressions, term.MatchFields[:min(len(term.MatchFields), maxParts)]), " and ", requirementText)
	})
}

func requirementText(required corev1.NodeSelectorRequirement) string {
	text := required.Key + " " + string(required.Operator)
	if len(required.Values) > 0 {
		text += " [" + oneline.Join(required.Values, " ", func(value string) string { return value }) + "]"
	}
	return text
}
