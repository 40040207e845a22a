package match

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// labelSelector selects volumes by their labels.
type labelSelector interface {
	Matches(labels.Labels) bool
}

// selectorOf reads the claim's selector. It returns nil if there is none, and an error if it is malformed. The usual one,
// a list of labels, is not compiled, for that allocates.
func selectorOf(claim *corev1.PersistentVolumeClaim) (labelSelector, error) {
	selector := claim.Spec.Selector
	if selector == nil {
		return nil, nil
	}
	if len(selector.MatchExpressions) == 0 && plainLabels(selector.MatchLabels) {
		return allOf(selector.MatchLabels), nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

// allOf selects what has all these labels.
type allOf map[string]string

func (required allOf) Matches(actual labels.Labels) bool {
	for key, value := range required {
		if found, ok := actual.Lookup(key); !ok || found != value {
			return false
		}
	}
	return true
}

// plainLabels reports whether labels are valid by a rule that is narrower than the API's and quick to check. Nearly all
// are plain.
func plainLabels(labels map[string]string) bool {
	for key, value := range labels {
		domain, name, hasDomain := strings.Cut(key, "/")
		if !hasDomain {
			name = key
		}
		if hasDomain && !plain(domain, true) || !plain(name, false) || value != "" && !plain(value, false) {
			return false
		}
	}
	return true
}

// plain reports whether text is letters and digits, with single dashes, dots and underscores between them. A domain has
// neither capital letters nor underscores.
func plain(text string, domain bool) bool {
	ended := false // with a letter or digit, so far
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', 'A' <= c && c <= 'Z' && !domain:
			ended = true
		case ended && (c == '-' || c == '.' || c == '_' && !domain):
			ended = false
		default:
			return false
		}
	}
	return ended && len(text) <= 63
}
