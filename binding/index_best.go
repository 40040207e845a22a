package binding

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
)

// Choice is a volume that fits a claim, with what tells it from others that fit.
type Choice struct {
	Volume *corev1.PersistentVolume
	size   int64
	modes  accessmode.Set
}

func choiceOf(volume *corev1.PersistentVolume) Choice {
	f := fileOf(volume)
	return Choice{volume, f.size, f.modes}
}

// Compare puts first, on a node, the volume with the smallest capacity, then the fewest access modes, then by name, as
// it is for every claim (M13).
func (c Choice) Compare(other Choice) int {
	return cmp.Or(c.compareSize(other), accessmode.Compare(c.modes, other.modes), cmp.Compare(c.Volume.Name, other.Volume.Name))
}

func (c Choice) compareSize(other Choice) int {
	order := cmp.Compare(c.size, other.size)
	if order == 0 && !exact(c.size) {
		return quantities.Compare(stock{c.Volume}.amount(), stock{other.Volume}.amount())
	}
	return order
}

// askOf is before the first volume that is large enough.
func askOf(c *match.Criteria) rank { return rank{size: sizeOf(c.Request), quantity: c.Request} }

// search is for the k best of the free volumes of one group.
type search struct {
	Query   // not a pointer, which would move it to the heap; nor is there a slice for the only one
	k       int
	ask     rank
	serving slots
	recheck bool // what is found must be compared with the claim once more

	count int      // of the volumes found so far, at most k
	last  Choice   // the worst of them
	more  []Choice // all of them, in order, if k is more than one
}

func (q *Query) search(k int) search {
	return search{Query: *q, k: k, ask: askOf(&q.Criteria), serving: serving(q.Modes), recheck: q.Owners != nil}
}

func (s *search) run() {
	if s.free != nil {
		s.onShelf(s.free)
	}
}

func (s *search) in(k *rack[stock]) {
	if k == nil {
		return
	}
	for slot, rest := (k.used & s.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		s.inOrder(k.in(slot), narrowest[slot])
	}
}

// inOrder takes the first volumes that will do, of one set of modes: no other of these is better.
func (s *search) inOrder(order *ordered[stock], modes accessmode.Set) {
	if s.Node == nil && s.count == s.k && accessmode.Compare(modes, s.last.modes) > 0 {
		return
	}
	for at, left := order.seek(&s.ask), s.k; at.ok() && left > 0; at = at.forward() {
		found := Choice{at.item().PersistentVolume, at.size(), modes}
		if s.count == s.k && s.compare(found, s.last) >= 0 {
			return
		}
		if !s.recheck || s.Fits(found.Volume) {
			s.add(found)
			left--
		}
	}
}

// add puts a volume in its place, if need be in that of the worst.
func (s *search) add(found Choice) {
	s.count = min(s.count+1, s.k)
	if s.k == 1 {
		s.last = found
		return
	}
	at, _ := slices.BinarySearchFunc(s.more, found, s.compare)
	s.more = slices.Insert(s.more, at, found)[:s.count]
	s.last = s.more[s.count-1]
}

// compare orders the volumes that fit (M13). Most need no look at the volume itself.
func (s *search) compare(a, b Choice) int {
	if s.Node != nil {
		return a.Compare(b)
	}
	return cmp.Or(accessmode.Compare(a.modes, b.modes), a.compareSize(b), cmp.Compare(a.Volume.Name, b.Volume.Name))
}
