package match

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
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
	// Provisions says that the claim's class provisions volumes. Then none that exists is a near miss (E2).
	Provisions bool
	Node       *corev1.Node
	Owners     func(volume string) []obj.Key
	// WellFormed says that the volumes are known to be well-formed, and need not be checked for it.
	WellFormed bool
	// Affinity returns what was read of a volume's node affinity, or nil to read it; it may be nil itself.
	Affinity func(volume string) *Affinity

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

		Provisions: storageclass.Provisions(terms.Class),
	}
	if c.Request.Sign() < 0 {
		return Criteria{}, invalidClaim(claim, "spec.resources.requests.storage", quantities.Text(c.Request)+" is negative")
	}
	if !knownMode(c.VolumeMode) {
		return Criteria{}, invalidClaim(claim, "spec.volumeMode", "unknown: "+string(c.VolumeMode))
	}
	var err error
	if c.Modes, err = terms.Parsed.modesOf(claim); err != nil {
		return Criteria{}, invalidClaim(claim, "spec.accessModes", err.Error())
	}
	if c.selector, err = terms.Parsed.selectorOf(claim); err != nil {
		return Criteria{}, invalidClaim(claim, "spec.selector", err.Error())
	}
	if c.WaitsForFirstConsumer, err = storageclass.WaitsForFirstConsumer(terms.Class); err != nil {
		return Criteria{}, err
	}
	return c, nil
}

const maxProblem = 1000 // bytes

func invalidClaim(claim *corev1.PersistentVolumeClaim, field, problem string) error {
	return &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: field, Problem: oneline.Text(problem, maxProblem)}
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
	return c.selector == nil || c.selector.Matches(volume.Labels)
}

// Usable reports whether the volume is usable on the node, if one is given. It is rule M10.
func (c *Criteria) Usable(volume *corev1.PersistentVolume) bool {
	if c.Node == nil {
		return true
	}
	if c.Affinity != nil {
		if affinity := c.Affinity(volume.Name); affinity != nil {
			return affinity.Accepts(c.Node)
		}
	}
	return UsableOn(c.Node, volume)
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
