package binding

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/phase"
)

// Find chooses a volume for a claim (M13): one that is set aside for the claim before a free one, then
// the one that wastes least. Equals are told apart by name, so the order of the volumes does not matter.
// That no volume is chosen is an answer, not an error; errors are those of Check.
func Find(request Request) (Match, error) {
	c, err := newCriteria(request.Claim, request.Terms)
	if err != nil {
		return Match{}, err
	}
	return c.find(request.Volumes), nil
}

func (c *criteria) find(volumes []*corev1.PersistentVolume) Match {
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
			match.Refused = append(match.Refused, Refusal{Volume: volume, Mismatches: c.mismatches(volume)})
		}
	}
	slices.SortFunc(match.Refused, func(a, b Refusal) int { return cmp.Compare(a.Volume.Name, b.Volume.Name) })
	if best.setAside() || !match.elsewhere() {
		match.Volume = best.PersistentVolume
	}
	return match
}

// elsewhere reports whether a volume set aside for the claim fits it, but not on this node. Then no
// free volume will do: the claim has a volume, and the pod must go where that is.
func (m Match) elsewhere() bool {
	return slices.ContainsFunc(m.Refused, func(r Refusal) bool { return r.Mismatches.only(NodeAffinity) })
}

// compare orders volumes that fit, the better one first: the one that is Held, so that after a crash
// the same volume wins again (B5), then Reserved, then the one that wastes least, then by name.
func (c *criteria) compare(a, b candidate) int {
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
func (c *criteria) compareWaste(a, b candidate) int {
	if c.node == nil {
		return cmp.Or(compareModes(a, b), compareCapacity(a, b))
	}
	return cmp.Or(compareCapacity(a, b), compareModes(a, b))
}

func compareModes(a, b candidate) int {
	inA, _ := modesOf(a.PersistentVolume)
	inB, _ := modesOf(b.PersistentVolume)
	return accessmode.Compare(inA, inB)
}

func compareCapacity(a, b candidate) int {
	inA, _ := capacityOf(a.PersistentVolume)
	inB, _ := capacityOf(b.PersistentVolume)
	return compareQuantities(inA, inB)
}
