package binding

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onShelf looks in as few of the shelf's racks as have every volume that could do.
func (s *search) onShelf(f *shelf) {
	if s.Selector == nil || s.selected {
		s.onNode(f)
		return
	}
	sought, count := f.narrowest(s.Claim.Spec.Selector)
	if sought.key == "" || s.Node != nil && f.countOn(s.Node) < count {
		s.recheck = true
		s.onNode(f)
		return
	}
	s.recheck = s.recheck || s.Node != nil || !sought.alone
	f.having(sought, s.in)
}

// onNode looks in the racks that have what is usable on the node; without a node, in all.
func (s *search) onNode(f *shelf) {
	s.in(&f.anywhere)
	if s.Node == nil {
		s.in(&f.placed)
		return
	}
	f.surelyOn(s.Node, s.in)
	s.recheck = true
	f.perhapsOn(s.Node, s.in)
}

// surelyOn visits the racks of the placed volumes that are usable on the node by one of its labels alone; nil where
// there are none.
func (s *shelf) surelyOn(node *corev1.Node, visit func(*rack[stock])) {
	s.eachPlace(node, func(place label) { visit(s.sure[place]) })
}

// perhapsOn visits the racks of the other placed volumes that may be usable on the node.
func (s *shelf) perhapsOn(node *corev1.Node, visit func(*rack[stock])) {
	if len(s.perhaps) > 0 {
		s.eachPlace(node, func(place label) { visit(s.perhaps[place]) })
	}
	visit(&s.odd)
}

// eachPlace visits the node's labels of which there may be volumes.
func (s *shelf) eachPlace(node *corev1.Node, visit func(label)) {
	if len(s.placeKeys) > len(node.Labels) {
		for key, value := range node.Labels {
			visit(label{key, value})
		}
		return
	}
	for key := range s.placeKeys {
		if value, ok := node.Labels[key]; ok {
			visit(label{key, value})
		}
	}
}

// countOn is how many volumes there are to look at for a node.
func (s *shelf) countOn(node *corev1.Node) int {
	count := s.anywhere.len()
	add := func(k *rack[stock]) { count += k.len() }
	s.surelyOn(node, add)
	s.perhapsOn(node, add)
	return count
}

// sought is the part of a selector by which volumes are looked up: a label with one value, or with one
// of several. Without a key, the selector has no such part.
type sought struct {
	key    string
	value  string
	values []string // in place of value, if not nil
	alone  bool     // the selector has no other part
}

// narrowest is the part of the selector that the fewest volumes have, and how many those are.
func (s *shelf) narrowest(selector *metav1.LabelSelector) (best sought, fewest int) {
	fewest = math.MaxInt
	consider := func(part sought) {
		count := 0
		s.having(part, func(k *rack[stock]) { count += k.len() })
		if count < fewest {
			best, fewest = part, count
		}
	}
	for key, value := range selector.MatchLabels {
		consider(sought{key: key, value: value})
	}
	for i := range selector.MatchExpressions {
		if part := &selector.MatchExpressions[i]; part.Operator == metav1.LabelSelectorOpIn {
			consider(sought{key: part.Key, values: part.Values})
		}
	}
	best.alone = len(selector.MatchLabels)+len(selector.MatchExpressions) == 1
	return best, fewest
}

// having visits the racks of volumes that have what is sought, each once; nil for a label that no volume
// has.
func (s *shelf) having(sought sought, visit func(*rack[stock])) {
	if sought.values == nil {
		visit(s.labelled[label{sought.key, sought.value}])
		return
	}
	for i, value := range sought.values {
		if !slices.Contains(sought.values[:i], value) {
			visit(s.labelled[label{sought.key, value}])
		}
	}
}
