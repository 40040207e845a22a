package binding

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selector says which volumes a claim will have, by their labels (M8).
type selector interface {
	Matches(labels.Labels) bool
}

// selectorOf reads the claim's selector: nil if it has none, an error if it is malformed. The usual one,
// a list of labels, is not compiled, for that allocates.
func selectorOf(claim *corev1.PersistentVolumeClaim) (selector, error) {
	asked := claim.Spec.Selector
	if asked == nil {
		return nil, nil
	}
	if len(asked.MatchExpressions) == 0 && plainLabels(asked.MatchLabels) {
		return allOf(asked.MatchLabels), nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(asked)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

// allOf selects what has all these labels.
type allOf map[string]string

func (asked allOf) Matches(has labels.Labels) bool {
	for key, value := range asked {
		if got, ok := has.Lookup(key); !ok || got != value {
			return false
		}
	}
	return true
}

// plainLabels reports whether labels are valid by a rule that is narrower than the API's and quick to
// check. Nearly all are plain.
func plainLabels(labels map[string]string) bool {
	for key, value := range labels {
		if prefix, name, ok := strings.Cut(key, "/"); ok && (!plainDomain(prefix) || !plainName(name)) || !ok && !plainName(key) {
			return false
		}
		if value != "" && !plainName(value) {
			return false
		}
	}
	return true
}

// plainName is a part of a label: letters and digits, with dashes, dots and underscores between them.
func plainName(text string) bool {
	if len(text) == 0 || len(text) > 63 || !letterOrDigit(text[0]) || !letterOrDigit(text[len(text)-1]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !letterOrDigit(c) && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// plainDomain is a DNS name of lower case letters and digits.
func plainDomain(text string) bool {
	for i := range len(text) {
		c := text[i]
		lower := letterOrDigit(c) && (c < 'A' || c > 'Z')
		// A dot or dash must not stand first, last, or beside another.
		between := (c == '.' || c == '-') && i > 0 && i < len(text)-1 && letterOrDigit(text[i+1])
		if !lower && !between {
			return false
		}
	}
	return len(text) > 0 && len(text) <= 253
}

func letterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
