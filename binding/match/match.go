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
	// Class is the claim's class; nil if it names none or the class does not exist (M11: Immediate).
	Class *storagev1.StorageClass
	// Node is the node that the volume must be usable on (M10); nil if none is given.
	Node *corev1.Node
	// Owners returns the claims that an Unclaimed volume belongs to all the same (M2): those whose status
	// is Bound and that name it (phase.Owned), or else the one that it is being bound to at this moment.
	// Of several none can have it. None: nobody. A nil function: no such claim is known.
	Owners func(volume string) []obj.Key
}

// Request asks for a volume for a claim. Nothing in it is modified.
type Request struct {
	Claim *corev1.PersistentVolumeClaim
	// Volumes to choose from, in any order, none twice.
	Volumes []*corev1.PersistentVolume
	Terms
}

// Match is the answer to a Request.
type Match struct {
	// Volume is the one chosen, one of Request.Volumes; nil if none is.
	Volume *corev1.PersistentVolume
	// Refused are the volumes that are Reserved for or Held by the claim and do not fit it, in name
	// order (M12). There may be some beside a chosen volume.
	Refused []Refusal
}

// Refusal is a volume that does not fit and every reason why.
type Refusal struct {
	Volume     *corev1.PersistentVolume
	Mismatches Mismatches
}

// Find chooses a volume for a claim (M13): one that is set aside for the claim before a free one, then
// the one that wastes least. Equals are told apart by name, so the order of the volumes does not matter.
// That no volume is chosen is an answer, not an error; errors are those of Check.
func Find(request Request) (Match, error) {
	c, err := NewCriteria(request.Claim, request.Terms)
	if err != nil {
		return Match{}, err
	}
	return c.Find(request.Volumes), nil
}

// Find is the function Find for a claim whose criteria are known.
func (c *Criteria) Find(volumes []*corev1.PersistentVolume) Match {
	var best candidate
	var match Match
	for _, volume := range volumes {
		v := c.candidate(volume)
		switch preferred := !best.exists() || c.compare(v, best) < 0; {
		case !preferred && !v.setAside():
			// To compare is cheaper than to check.
		case c.failing(v, 0) == len(fitRules):
			if preferred {
				best = v
			}
		case v.setAside():
			match.Refused = append(match.Refused, Refusal{Volume: volume, Mismatches: c.Mismatches(volume)})
		}
	}
	slices.SortFunc(match.Refused, func(a, b Refusal) int { return cmp.Compare(a.Volume.Name, b.Volume.Name) })
	if best.setAside() || !match.Elsewhere() {
		match.Volume = best.PersistentVolume
	}
	return match
}

// Elsewhere reports whether a volume set aside for the claim fits it, but not on this node. Then no
// free volume will do: the claim has a volume, and the pod must go where that is.
func (m Match) Elsewhere() bool {
	return slices.ContainsFunc(m.Refused, func(r Refusal) bool { return r.Mismatches.Only(NodeAffinity) })
}

// compare orders volumes that fit, the better one first: the one that is Held, so that after a crash
// the same volume wins again (B5), then Reserved, then the one that wastes least, then by name.
func (c *Criteria) compare(a, b candidate) int {
	if order := cmp.Compare(a.rank(), b.rank()); order != 0 {
		return order
	}
	if order := c.compareWaste(a, b); order != 0 {
		return order
	}
	return cmp.Compare(a.Name, b.Name)
}

func (v candidate) rank() int {
	switch v.link {
	case phase.Held:
		return 0
	case phase.Reserved:
		return 1
	}
	return 2
}

// compareWaste puts the fewest access modes first, or, on a node, the smallest capacity.
func (c *Criteria) compareWaste(a, b candidate) int {
	if c.Node == nil {
		return cmp.Or(compareModes(a, b), compareCapacity(a, b))
	}
	return cmp.Or(compareCapacity(a, b), compareModes(a, b))
}

func compareModes(a, b candidate) int {
	inA, _ := ModesOf(a.PersistentVolume)
	inB, _ := ModesOf(b.PersistentVolume)
	return accessmode.Compare(inA, inB)
}

func compareCapacity(a, b candidate) int {
	inA, _ := CapacityOf(a.PersistentVolume)
	inB, _ := CapacityOf(b.PersistentVolume)
	return quantities.Compare(inA, inB)
}
