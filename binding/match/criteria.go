package match

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// Criteria is a validated claim with its Terms, to be compared with any number of volumes. NewCriteria returns one. An index
// uses the fields to leave out volumes that cannot fit. Node and Owners are those of the Terms.
type Criteria struct {
	Claim   *corev1.PersistentVolumeClaim
	Request resource.Quantity
	Modes   accessmode.Set
	Group
	WaitsForFirstConsumer bool
	Node                  *corev1.Node
	Owners                func(volume string) []obj.Key

	selector labelSelector // nil selects everything
	named    bool          // the claim names the volume (C7)
}

// NewCriteria reads a claim and its terms. An error is an *obj.InvalidError about the claim or its class.
func NewCriteria(claim *corev1.PersistentVolumeClaim, terms Terms) (Criteria, error) {
	c := Criteria{
		Claim:   claim,
		Request: claim.Spec.Resources.Requests[corev1.ResourceStorage],
		Group:   Group{VolumeModeOf(claim.Spec.VolumeMode), storageclass.OfClaim(claim), textOf(claim.Spec.VolumeAttributesClassName)},
		Node:    terms.Node,
		Owners:  terms.Owners,
		named:   terms.named,
	}
	if c.Request.Sign() < 0 {
		return Criteria{}, invalidClaim(claim, "spec.resources.requests.storage", c.Request.String()+" is negative")
	}
	if !knownMode(c.VolumeMode) {
		return Criteria{}, invalidClaim(claim, "spec.volumeMode", "unknown: "+string(c.VolumeMode))
	}
	var err error
	if c.Modes, err = accessmode.Of(claim.Spec.AccessModes...); err != nil {
		return Criteria{}, invalidClaim(claim, "spec.accessModes", err.Error())
	}
	if c.selector, err = selectorOf(claim); err != nil {
		return Criteria{}, invalidClaim(claim, "spec.selector", err.Error())
	}
	if c.WaitsForFirstConsumer, err = storageclass.WaitsForFirstConsumer(terms.Class); err != nil {
		return Criteria{}, err
	}
	return c, nil
}

func invalidClaim(claim *corev1.PersistentVolumeClaim, field, problem string) error {
	return &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: field, Problem: problem}
}

// Fits reports whether the volume fits. It does not allocate, unless it has to parse a node affinity.
func (c *Criteria) Fits(volume *corev1.PersistentVolume) bool {
	return c.firstFailing(c.candidate(volume), 0) == len(fitRules)
}

// Mismatches returns every reason why the volume does not fit.
func (c *Criteria) Mismatches(volume *corev1.PersistentVolume) Mismatches {
	var found Mismatches
	v := c.candidate(volume)
	for i := c.firstFailing(v, 0); i < len(fitRules); i = c.firstFailing(v, i+1) {
		requested, actual := fitRules[i].values(*c, v)
		found = append(found, Mismatch{Reason: fitRules[i].reason, Requested: requested, Actual: actual})
	}
	return found
}

// Verdict returns the verdict on one volume. Chosen is left false: it depends on the other volumes.
func (c *Criteria) Verdict(volume *corev1.PersistentVolume) Verdict {
	return Verdict{Volume: volume, ClaimRef: phase.ClaimRefStateOf(volume, c.Claim), Mismatches: c.Mismatches(volume)}
}

// Selects reports whether the claim's selector matches the volume. It is rule M8.
func (c *Criteria) Selects(volume *corev1.PersistentVolume) bool {
	return c.selector == nil || c.selector.Matches(labels.Set(volume.Labels))
}

// Usable reports whether the volume is usable on the node, if one is given. It is rule M10.
func (c *Criteria) Usable(volume *corev1.PersistentVolume) bool {
	return c.Node == nil || UsableOn(c.Node, volume)
}

// firstFailing returns the index of the first failing rule at or after from; len(fitRules) if none fails.
func (c *Criteria) firstFailing(v candidate, from int) int {
	situation := c.situation(v)
	for i := from; i < len(fitRules); i++ {
		if fitRules[i].applies&situation != 0 && fitRules[i].fails(*c, v) {
			return i
		}
	}
	return len(fitRules)
}

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
	return metav1.LabelSelectorAsSelector(selector)
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
