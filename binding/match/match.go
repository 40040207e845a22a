package match

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Terms are what a match depends on beside the claim and the volumes. The zero value is a claim
// without a class object, anywhere.
type Terms struct {
	// Class is the claim's class. It is nil if the claim names none or the class does not exist: that binds like
	// Immediate (M11).
	Class *storagev1.StorageClass
	// Node is the node that the volume must be usable on (M10); nil if none is given.
	Node *corev1.Node
	// Owners returns the claims that a volume belongs to although it has no claimRef: those whose status
	// is Bound and that name it (phase.Owned), or else the one that it is being bound to at this moment.
	// If there are several, none can have it (M2). A nil function means that no such claim is known.
	Owners func(volume string) []obj.Key
	// Parsed is what Parse returned for the claim; nil: it is parsed now.
	Parsed *Parsed

	named bool // set by CheckNamed: the claim names the volume (C7)
}

// Request is a claim and the volumes to choose from. Nothing in it is modified.
type Request struct {
	Claim *corev1.PersistentVolumeClaim
	// Volumes are in any order, and none is in it twice.
	Volumes []*corev1.PersistentVolume
	Terms
}

// Match is the answer to a Request.
type Match struct {
	// Volume is the one chosen, one of Request.Volumes; nil if none is.
	Volume *corev1.PersistentVolume
	// Rejected are the volumes that are bound or pre-bound to the claim and do not fit it, in name
	// order (M12). There may be some beside a chosen volume.
	Rejected []Verdict
}

// Find chooses a volume for a claim: one that is bound or pre-bound to the claim before an unclaimed one, then
// the one that wastes least (M13). Ties are broken by name, so the order of the volumes does not matter.
// That no volume is chosen is an answer, not an error; errors are those of Check.
func Find(request Request) (Match, error) {
	c, err := NewCriteria(request.Claim, request.Terms)
	if err != nil {
		return Match{}, err
	}
	return c.Find(request.Volumes), nil
}

// Find does what the function Find does.
func (c *Criteria) Find(volumes []*corev1.PersistentVolume) Match {
	var best candidate
	var match Match
	for _, volume := range volumes {
		v := c.candidate(volume)
		switch preferred := best.PersistentVolume == nil || c.compare(v, best) < 0; {
		case !preferred && !v.ours():
			// To compare is cheaper than to check.
		case c.firstFailing(v, 0) == len(fitRules):
			if preferred {
				best = v
			}
		case v.ours():
			match.Rejected = append(match.Rejected, c.Verdict(volume))
		}
	}
	slices.SortFunc(match.Rejected, func(a, b Verdict) int { return cmp.Compare(a.Volume.Name, b.Volume.Name) })
	if best.ours() || !match.Elsewhere() {
		match.Volume = best.PersistentVolume
	}
	return match
}

// Elsewhere reports whether a volume that is bound or pre-bound to the claim fits it, but not on this node. Then no
// other volume will do: the claim has a volume, and the pod must go where that is.
func (m Match) Elsewhere() bool {
	return slices.ContainsFunc(m.Rejected, Verdict.elsewhere)
}

// compare orders volumes that fit, the better one first: one that is bound to the claim, so that after a crash the same
// volume wins again (B5), then one that is pre-bound, then the one with the fewest access modes or, on a node, with the
// smallest capacity. Ties are broken by name.
func (c *Criteria) compare(a, b candidate) int {
	if order := cmp.Compare(a.precedence(), b.precedence()); order != 0 {
		return order
	}
	byModes := compareModes(a.PersistentVolume, b.PersistentVolume)
	byCapacity := compareCapacity(a.PersistentVolume, b.PersistentVolume)
	if c.Node == nil {
		return cmp.Or(byModes, byCapacity, cmp.Compare(a.Name, b.Name))
	}
	return cmp.Or(byCapacity, byModes, cmp.Compare(a.Name, b.Name))
}

func (v candidate) precedence() int {
	switch v.state {
	case phase.ClaimRefBound:
		return 0
	case phase.ClaimRefPreBound:
		return 1
	}
	return 2
}

func compareModes(a, b *corev1.PersistentVolume) int {
	inA, _ := accessmode.Of(a.Spec.AccessModes...)
	inB, _ := accessmode.Of(b.Spec.AccessModes...)
	return accessmode.Compare(inA, inB)
}

func compareCapacity(a, b *corev1.PersistentVolume) int {
	inA, _ := CapacityOf(a)
	inB, _ := CapacityOf(b)
	return quantities.Compare(inA, inB)
}
