package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Find chooses a volume for a claim as the function Find does among the same volumes; errors are the
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
	free *shelf
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
	found := &shelf{}
	s := survey{c: &q.Criteria, ask: askOf(&q.Criteria), serving: serving(q.Modes)}
	s.selectable(q.free, func(k *rack[stock]) {
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
