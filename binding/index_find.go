package binding

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
)

// Find chooses a volume for a claim as the function Find does among the same volumes; errors are the
// same too. It takes O(log n) and does not allocate if the claim has no selector or one of labels only.
//
// Volumes that belong to the claim or whose claimRef has its name are looked at one by one. A node
// affinity is looked up by a `key In (values)` that each of its terms has, and checked if it says more;
// those that have none are tried one by one, by size. A selector's labels and `In` are looked up, and the
// one that leaves the fewest volumes is gone through by size. Terms.Owners has
// to say only what SetClaim and Reserve did not; it must not use the Index.
func (x *Index) Find(claim *corev1.PersistentVolumeClaim, terms Terms) (Match, error) {
	c, err := newCriteria(claim, terms)
	if err != nil {
		return Match{}, err
	}
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return x.find(&c), nil
}

func (x *Index) find(c *criteria) Match {
	match := x.findRelated(c)
	if c.delayed && c.node == nil || match.Volume != nil && c.candidate(match.Volume).setAside() || match.elsewhere() {
		return match
	}
	s := search{c: *c, ask: askOf(c), serving: serving(c.modes), recheck: c.owners != nil}
	if match.Volume != nil {
		s.best = fileOf(match.Volume)
	}
	if shelf := x.free[c.group()]; shelf != nil {
		s.onShelf(shelf)
	}
	match.Volume = s.best.PersistentVolume
	return match
}

// askOf is before the first volume that is large enough.
func askOf(c *criteria) rank { return rank{size: sizeOf(c.request), quantity: c.request} }

// findRelated chooses among the volumes that are set aside for the claim or belong to it.
func (x *Index) findRelated(c *criteria) Match {
	if len(x.related) == 0 {
		return Match{}
	}
	related := x.related[KeyOf(c.claim).claimName()]
	if len(related) == 0 {
		return Match{}
	}
	withOwners := *c
	withOwners.owners = x.ownersBeside(c.owners)
	return withOwners.find(related)
}

// search is for the best of the free volumes of one group.
type search struct {
	c       criteria // not a pointer, which would move it to the heap
	ask     rank
	serving slots
	recheck bool // what is found must be compared with the claim once more

	best filing
}

func (s *search) in(k *rack[stock]) {
	if k == nil {
		return
	}
	for slot, rest := (k.used & s.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		s.inOrder(k.in(slot), narrowest[slot])
	}
}

// inOrder looks for a better volume than the best one among those of one set of modes: it can only be
// the first one that will do.
func (s *search) inOrder(order *ordered[stock], modes accessmode.Set) {
	if s.c.node == nil && s.best.PersistentVolume != nil && accessmode.Compare(modes, s.best.modes) > 0 {
		return
	}
	for at := order.seek(&s.ask); at.ok() && s.better(at, modes); at = at.forward() {
		if volume := at.item(); !s.recheck || s.c.fits(s.c.candidate(volume.PersistentVolume)) {
			s.best = filing{stock: volume, rank: rank{size: at.size()}, modes: modes}
			return
		}
	}
}

// better is compare for volumes whose size and modes are known without a look at them (M13).
func (s *search) better(at cursor[stock], modes accessmode.Set) bool {
	if s.best.PersistentVolume == nil {
		return true
	}
	bySize := cmp.Compare(at.size(), s.best.size)
	if bySize == 0 {
		return s.c.compare(s.c.candidate(at.item().PersistentVolume), s.c.candidate(s.best.PersistentVolume)) < 0
	}
	if s.c.node == nil {
		return cmp.Or(accessmode.Compare(modes, s.best.modes), bySize) < 0
	}
	return bySize < 0
}
