package match

import (
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/requirements"
)

// Parsed is what can be large in a claim and decides what fits it, parsed once: the selector and the access modes. In
// Terms it spares every later match of the claim from the cost, which is linear in the claim's size (X9).
type Parsed struct {
	source corev1.PersistentVolumeClaimSpec // for what it was parsed from

	modes       accessmode.Set
	selector    labelSelector
	modesErr    error
	selectorErr error
	id          string
}

// Parse parses a claim, for Terms. It returns nil if that would spare nothing.
func Parse(claim *corev1.PersistentVolumeClaim) *Parsed {
	spec := &claim.Spec
	if len(spec.AccessModes) <= maxModes && partsOf(spec.Selector) == 0 {
		return nil
	}
	p := &Parsed{source: corev1.PersistentVolumeClaimSpec{Selector: spec.Selector, AccessModes: spec.AccessModes}}
	p.modes, p.modesErr = accessmode.Of(spec.AccessModes...)
	p.selector, p.selectorErr = selectorOf(spec.Selector)
	p.id = selectorID(spec.Selector)
	return p
}

// of reports whether it was parsed from this very selector and these very modes.
func (p *Parsed) of(spec *corev1.PersistentVolumeClaimSpec) bool {
	if p == nil || p.source.Selector != spec.Selector || len(p.source.AccessModes) != len(spec.AccessModes) {
		return false
	}
	return len(spec.AccessModes) == 0 || &p.source.AccessModes[0] == &spec.AccessModes[0]
}

func (p *Parsed) modesOf(claim *corev1.PersistentVolumeClaim) (accessmode.Set, error) {
	if p.of(&claim.Spec) {
		return p.modes, p.modesErr
	}
	return accessmode.Of(claim.Spec.AccessModes...)
}

func (p *Parsed) selectorOf(claim *corev1.PersistentVolumeClaim) (labelSelector, error) {
	if p.of(&claim.Spec) {
		return p.selector, p.selectorErr
	}
	return selectorOf(claim.Spec.Selector)
}

// SelectorID returns the same text for claims with the same selector, and no longer one for a large selector. It is what
// Parse has of the claim, if parsed is not nil.
func SelectorID(claim *corev1.PersistentVolumeClaim, parsed *Parsed) string {
	if parsed.of(&claim.Spec) {
		return parsed.id
	}
	return selectorID(claim.Spec.Selector)
}

func selectorID(selector *metav1.LabelSelector) string {
	text := metav1.FormatLabelSelector(selector)
	if len(text) <= maxID {
		return text
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
}

const (
	maxID    = 256 // bytes
	maxModes = 8   // in a claim; there are four different ones
)

// labelSelector selects volumes by their labels.
type labelSelector interface {
	Matches(labels map[string]string) bool
}

// maxPlain is how many labels a selector may have to be compared as it is.
const maxPlain = 16

// selectorOf reads a selector. It returns nil if there is none, and an error if it is malformed. The usual one, a list of
// labels, is not compiled, for that allocates.
func selectorOf(selector *metav1.LabelSelector) (labelSelector, error) {
	if selector == nil {
		return nil, nil
	}
	if len(selector.MatchExpressions) == 0 && len(selector.MatchLabels) <= maxPlain && plainLabels(selector.MatchLabels) {
		return allOf(selector.MatchLabels), nil
	}
	compiled, err := requirements.OfSelector(selector)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

// partsOf counts the labels and expressions of a selector.
func partsOf(selector *metav1.LabelSelector) int {
	if selector == nil {
		return 0
	}
	return len(selector.MatchLabels) + len(selector.MatchExpressions)
}

// maxParts is how many labels, expressions or values are written out.
const maxParts = 256

// selectorText writes a selector for people, or how large it is.
func selectorText(selector *metav1.LabelSelector) string {
	parts, labels, expressions := partsOf(selector), 0, 0
	if selector != nil {
		labels, expressions = len(selector.MatchLabels), len(selector.MatchExpressions)
		for i := 0; i < expressions && parts <= maxParts; i++ {
			parts += len(selector.MatchExpressions[i].Values)
		}
	}
	if parts > maxParts {
		return fmt.Sprintf("a selector of %d labels and %d expressions", labels, expressions)
	}
	return metav1.FormatLabelSelector(selector)
}

// labelsText writes labels for people, or how many there are.
func labelsText(actual map[string]string) string {
	if len(actual) > maxParts {
		return fmt.Sprintf("%d labels", len(actual))
	}
	return oneline.OrNone(labels.Set(actual).String())
}

// allOf selects what has all these labels.
type allOf map[string]string

func (required allOf) Matches(actual map[string]string) bool {
	for key, value := range required {
		if found, ok := actual[key]; !ok || found != value {
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
