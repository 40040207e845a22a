package index

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Find chooses a volume for a claim as match.Find does among the same volumes; errors are the
// same too. It takes O(log n) and does not allocate if the claim has no selector or one of labels only.
//
// Volumes that belong to the claim or whose claimRef has its name are looked at one by one. A node
// affinity is looked up by a `key In (values)` that each of its terms has, and checked if it says more;
// those that have none are tried one by one, by size. A selector's labels and `In` are looked up, and the
// one that leaves the fewest volumes is gone through by size. Terms.Owners has
// to say only what SetClaim and Reserve did not; it must not use the Index.
func (x *Index) Find(claim *corev1.PersistentVolumeClaim, terms match.Terms) (match.Match, error) {
	c, err := match.NewCriteria(claim, terms)
	if err != nil {
		return match.Match{}, err
	}
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	q := x.query(&c)
	return q.find(), nil
}

// Read calls f with a Reader. Until f returns, the Index can be read but not changed. f must not use the Index itself.
func (x *Index) Read(f func(Reader)) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	f(Reader{x})
}

// Reader is an Index that does not change. See Index.Read.
type Reader struct{ x *Index }

// Query begins the search for a volume for a claim.
func (r Reader) Query(c *match.Criteria) *Query {
	q := r.x.query(c)
	return &q
}

// Query is the search for a volume for one claim in an Index that does not change (M13). It is good for one node after
// the other: see On. It must not be used once Index.Read has returned, nor from two goroutines at once.
type Query struct {
	match.Criteria
	x *Index
	// related are the volumes that have to do with claims of its name.
	related []*corev1.PersistentVolume
	// free are the volumes to choose from; nil if there are none.
	free *bucket
	// selected says that free has only volumes that the selector matches.
	selected bool
}

func (x *Index) query(c *match.Criteria) Query {
	q := Query{Criteria: *c, x: x, free: x.free[groupFor(c)]}
	if len(x.related) > 0 {
		q.related = x.related[sharedName(obj.KeyOf(c.Claim))]
	}
	return q
}

// On narrows the search to volumes that are usable on the node, in place of the node before.
func (q *Query) On(node *corev1.Node) { q.Node = node }

// Reserved returns the volume that belongs to the claim, or whose claimRef names it, and that fits; or else the name of
// one that would fit on another node. What the Index has reserved for the claim belongs to it.
func (q *Query) Reserved() (volume *corev1.PersistentVolume, elsewhere string) {
	if found := q.findRelated().Volume; found != nil {
		return found, ""
	}
	for _, volume := range q.related {
		if q.Mismatches(volume).Only(match.NodeAffinity) && (elsewhere == "" || volume.Name < elsewhere) {
			elsewhere = volume.Name
		}
	}
	return nil, elsewhere
}

// Best returns the k best of the free volumes that fit, or as many as there are, the best first. It overwrites the
// choices that it is given, and returns them if they have room.
func (q *Query) Best(k int, choices []Choice) []Choice {
	s := q.search(k)
	s.more = choices[:0]
	s.run()
	if k == 1 && s.count == 1 {
		return append(s.more, s.last)
	}
	return s.more
}

// Summary tells in numbers why no volume fits the claim (E2).
func (q *Query) Summary() match.Summary {
	t := q.x.tally(&q.Criteria)
	return t.Summary()
}

// Preselect looks up the volumes that the claim's selector matches, once for all nodes to come.
func (q *Query) Preselect() {
	if q.Selector == nil || q.free == nil || q.selected {
		return
	}
	found := &bucket{}
	s := survey{c: &q.Criteria, ask: askOf(&q.Criteria), serving: serving(q.Modes)}
	s.selectable(q.free, func(k *modeTrees[stock]) {
		s.each(k, func(volume *corev1.PersistentVolume) {
			if q.Selects(volume) {
				found.place(fileOf(volume))
			}
		})
	})
	q.free, q.selected = found, true
}

func (q *Query) find() match.Match {
	found := q.findRelated()
	if q.Delayed && q.Node == nil || found.Volume != nil && found.Volume.Spec.ClaimRef != nil || found.Elsewhere() {
		return found
	}
	s := q.search(1)
	if found.Volume != nil {
		s.add(choiceOf(found.Volume))
	}
	s.run()
	found.Volume = s.last.Volume
	return found
}

// findRelated chooses among the volumes that are set aside for the claim or belong to it.
func (q *Query) findRelated() match.Match {
	if len(q.related) == 0 {
		return match.Match{}
	}
	withOwners := q.Criteria
	withOwners.Owners = q.x.ownersBeside(q.Owners)
	return withOwners.Find(q.related)
}

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
	serving modeMask
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
		s.inBucket(s.free)
	}
}

func (s *search) in(k *modeTrees[stock]) {
	if k == nil {
		return
	}
	for slot, rest := (k.used & s.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		s.inOrder(k.in(slot), narrowest[slot])
	}
}

// inOrder takes the first volumes that will do, of one set of modes: no other of these is better.
func (s *search) inOrder(order *btree[stock], modes accessmode.Set) {
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
