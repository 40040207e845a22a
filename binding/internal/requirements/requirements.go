// Package requirements compares labels with what a selector requires of them, in time that does not grow with the selector.
//
// Anybody who may create a claim can give it a selector of a megabyte (X9). A selector is read once, in time linear in its
// size, and then compared with any number of objects.
package requirements

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Set is all that a selector requires of the labels of an object. The zero value requires nothing.
type Set struct {
	rules   map[string]rule // by key
	present int             // how many of the keys must be there
	fewest  string          // the key with the fewest values of which one must be there
}

// rule is what is required of the label of one key.
type rule struct {
	present, absent bool     // the label must be there, or must not
	some            bool     // the value must be one of in
	in, notIn       []string // in order
	above, below    *int64   // the value must be a number between them
}

// OfSelector reads a label selector, which may be nil. It fails where metav1.LabelSelectorAsSelector does, and as it does.
func OfSelector(selector *metav1.LabelSelector) (*Set, error) {
	if selector == nil {
		return &Set{}, nil
	}
	s := &Set{rules: make(map[string]rule, len(selector.MatchLabels))}
	for key, value := range selector.MatchLabels {
		if err := check(key, selection.Equals, []string{value}); err != nil {
			return nil, err
		}
		s.rules[key] = rule{present: true, some: true, in: []string{value}}
	}
	for i := range selector.MatchExpressions {
		e := &selector.MatchExpressions[i]
		if err := s.add(e.Key, operators[string(e.Operator)], string(e.Operator), e.Values); err != nil {
			return nil, err
		}
	}
	return s.done(), nil
}

// OfTerm reads what a node selector term requires of the labels of a node. It fails for one that is malformed, in its fields
// too; these are not compared.
func OfTerm(term *corev1.NodeSelectorTerm) (*Set, error) {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return nil, errors.New("an empty term selects nothing")
	}
	for i := range term.MatchFields {
		e := &term.MatchFields[i]
		if len(e.Values) != 1 || e.Operator != corev1.NodeSelectorOpIn && e.Operator != corev1.NodeSelectorOpNotIn {
			return nil, errors.New("a field is compared by In or NotIn with one value")
		}
	}
	s := &Set{rules: map[string]rule{}}
	for i := range term.MatchExpressions {
		e := &term.MatchExpressions[i]
		if err := s.add(e.Key, nodeOperators[e.Operator], string(e.Operator), e.Values); err != nil {
			return nil, err
		}
	}
	return s.done(), nil
}

// In returns the labels of which one must be there, if there are at most limit of them: of several keys those of the one with
// the fewest, and then the first.
func (s *Set) In(limit int) (key string, values []string) {
	if values = s.rules[s.fewest].in; len(values) > limit {
		return "", nil
	}
	return s.fewest, values
}

// Matches reports whether the labels are as required. It looks at as many as there are labels or keys in the selector,
// whichever are fewer.
func (s *Set) Matches(actual map[string]string) bool {
	if len(s.rules) <= len(actual) {
		for key, r := range s.rules {
			value, found := actual[key]
			if !r.accepts(value, found) {
				return false
			}
		}
		return true
	}
	if s.present > len(actual) {
		return false
	}
	present := 0
	for key, value := range actual {
		r, ruled := s.rules[key]
		if !ruled {
			continue
		}
		if !r.accepts(value, true) {
			return false
		}
		if r.present {
			present++
		}
	}
	return present == s.present
}

func (r *rule) accepts(value string, found bool) bool {
	switch {
	case !found:
		return !r.present
	case r.absent || r.some && !has(r.in, value) || has(r.notIn, value):
		return false
	case r.above == nil && r.below == nil:
		return true
	}
	number, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (r.above == nil || number > *r.above) && (r.below == nil || number < *r.below)
}

func has(ordered []string, value string) bool {
	_, found := slices.BinarySearch(ordered, value)
	return found
}

// add adds one requirement to what is required of its key.
func (s *Set) add(key string, operator selection.Operator, name string, values []string) error {
	if operator == "" {
		return errors.New(strconv.Quote(name) + " is not a valid label selector operator")
	}
	if err := check(key, operator, values); err != nil {
		return err
	}
	r := s.rules[key]
	r.present = r.present || operator != selection.NotIn && operator != selection.DoesNotExist
	switch operator {
	case selection.In:
		in := ordered(values)
		if r.some {
			in = slices.DeleteFunc(in, func(value string) bool { return !has(r.in, value) })
		}
		r.some, r.in = true, in
	case selection.NotIn:
		r.notIn = append(r.notIn, values...) // put in order by done
	case selection.DoesNotExist:
		r.absent = true
	case selection.GreaterThan:
		r.above = new(max(number(values), valueOr(r.above, math.MinInt64)))
	case selection.LessThan:
		r.below = new(min(number(values), valueOr(r.below, math.MaxInt64)))
	}
	s.rules[key] = r
	return nil
}

func (s *Set) done() *Set {
	found := false
	for key, r := range s.rules {
		if r.present {
			s.present++
		}
		if order := cmp.Or(cmp.Compare(len(r.in), len(s.rules[s.fewest].in)), cmp.Compare(key, s.fewest)); r.some && (!found || order < 0) {
			s.fewest, found = key, true
		}
		if len(r.notIn) > 0 {
			r.notIn = ordered(r.notIn)
			s.rules[key] = r
		}
	}
	return s
}

func ordered(values []string) []string {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

func number(values []string) int64 {
	parsed, _ := strconv.ParseInt(values[0], 10, 64) // check has
	return parsed
}

func valueOr(value *int64, otherwise int64) int64 {
	if value == nil {
		return otherwise
	}
	return *value
}

func check(key string, operator selection.Operator, values []string) error {
	_, err := labels.NewRequirement(key, operator, values)
	return err
}

var operators = map[string]selection.Operator{
	string(metav1.LabelSelectorOpIn):           selection.In,
	string(metav1.LabelSelectorOpNotIn):        selection.NotIn,
	string(metav1.LabelSelectorOpExists):       selection.Exists,
	string(metav1.LabelSelectorOpDoesNotExist): selection.DoesNotExist,
}

var nodeOperators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn:           selection.In,
	corev1.NodeSelectorOpNotIn:        selection.NotIn,
	corev1.NodeSelectorOpExists:       selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt:           selection.GreaterThan,
	corev1.NodeSelectorOpLt:           selection.LessThan,
}
