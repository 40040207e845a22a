package index

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
)

// Find chooses a volume for a claim as match.Find does among the same volumes, with the same errors. It takes O(log n),
// and does not allocate if the claim has no selector or one of labels only.
//
// Volumes that belong to the claim or whose claimRef has its name are checked one by one. Volumes whose node affinity has the
// same key in an In expression of every term are looked up by the node's label; what else it says is checked on each volume
// that is found. Volumes with any other node affinity are checked one by one, by size. Of a selector's labels and In
// expressions the one that the fewest volumes meet is searched by size. Terms.Owners must not return claims that the Index
// knows from SetClaim or Reserve, and must not use the Index.
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

// Reader reads an Index that does not change. See Index.Read.
type Reader struct{ x *Index }

// Query begins the search for a volume for a claim.
func (r Reader) Query(c *match.Criteria) *Query {
	q := r.x.query(c)
	return &q
}

// Query searches an Index that does not change for a volume for one claim, on one node after the other: see On. It must
// not be used once Index.Read has returned, nor from two goroutines at once.
type Query struct {
	match.Criteria
	x        *Index
	related  []*corev1.PersistentVolume // see Index.related
	free     *bucket                    // the volumes to choose from; nil if there are none
	selected bool                       // free has only volumes that the selector matches
}

func (x *Index) query(c *match.Criteria) Query {
	return Query{Criteria: *c, x: x, related: x.relatedTo(c.Claim), free: x.free[c.Group]}
}

// On narrows the search to volumes that are usable on the node. It replaces the node of an earlier call.
func (q *Query) On(node *corev1.Node) { q.Node = node }

// Reserved returns the volume that belongs to the claim, or whose claimRef names it, and that fits; or else the name of
// one that would fit on another node. A volume that the Index has reserved for the claim belongs to it.
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
	s.best = choices[:0]
	s.run()
	if k == 1 && s.count == 1 {
		return append(s.best, s.worst)
	}
	return s.best
}

// Summary counts why no volume fits the claim. It is rule E2.
func (q *Query) Summary() match.Summary {
	counts := q.x.counts(&q.Criteria)
	return counts.Summary()
}

// Preselect looks up the volumes that the claim's selector matches, so that later searches skip the selector.
func (q *Query) Preselect() {
	if q.Claim.Spec.Selector == nil || q.free == nil || q.selected {
		return
	}
	found := &bucket{}
	c := newCounter(&q.Criteria)
	c.selectable(q.free, func(trees volumeTrees) {
		c.each(trees, func(volume *corev1.PersistentVolume) {
			if q.Selects(volume) {
				found.updateTopology(recordOf(volume), volumeTrees.insert, 1)
			}
		})
	})
	q.free, q.selected = found, true
}

func (q *Query) find() match.Match {
	found := q.findRelated()
	if q.WaitsForFirstConsumer && q.Node == nil || found.Volume != nil && found.Volume.Spec.ClaimRef != nil || found.Elsewhere() {
		return found
	}
	s := q.search(1)
	if found.Volume != nil {
		s.add(choiceOf(found.Volume))
	}
	s.run()
	found.Volume = s.worst.Volume // the only one: k is 1
	return found
}

// findRelated chooses among the volumes that belong to the claim or whose claimRef has its name.
func (q *Query) findRelated() match.Match {
	if len(q.related) == 0 {
		return match.Match{}
	}
	withOwners := q.Criteria
	withOwners.Owners = q.x.ownersOr(q.Owners)
	return withOwners.Find(q.related)
}

// Choice is a volume that fits a claim, with what decides between it and others that fit.
type Choice struct {
	Volume *corev1.PersistentVolume
	size   int64
	modes  accessmode.Set
}

func choiceOf(volume *corev1.PersistentVolume) Choice {
	modes, _ := accessmode.Of(volume.Spec.AccessModes...)
	return Choice{volume, sizeOf(volumeEntry{volume}.capacity()), modes}
}

// Compare orders the volumes that fit a claim on a node: the smallest capacity first, then the fewest access modes, then
// by name. Without a node, access modes come before capacity: see search.compare. It is rule M13.
func (c Choice) Compare(other Choice) int {
	return cmp.Or(c.compareSize(other), accessmode.Compare(c.modes, other.modes), cmp.Compare(c.Volume.Name, other.Volume.Name))
}

func (c Choice) compareSize(other Choice) int {
	order := cmp.Compare(c.size, other.size)
	if order == 0 && !exact(c.size) {
		return quantities.Compare(volumeEntry{c.Volume}.capacity(), volumeEntry{other.Volume}.capacity())
	}
	return order
}

// search finds the k best of the free volumes of one group. It has a copy of the Query, and no slice for the only choice if
// k is 1: pointers to either would move it to the heap.
type search struct {
	Query
	k       int
	least   key  // the lower bound of the search: the request
	recheck bool // the trees do not guarantee a fit: check each volume that is found

	count int      // of the volumes found so far, at most k
	worst Choice   // the worst of them
	best  []Choice // all of them, in order, if k is more than 1
}

func (q *Query) search(k int) search {
	return search{Query: *q, k: k, least: lowest(q.Request), recheck: q.Owners != nil}
}

// run searches as few trees as have every volume that may fit.
func (s *search) run() {
	switch {
	case s.free == nil:
		return
	case s.Claim.Spec.Selector == nil || s.selected:
		s.onNode()
		return
	}
	selector := s.Claim.Spec.Selector
	required, count := s.free.narrowest(selector)
	if required.key == "" || s.Node != nil && s.free.countOn(s.Node) < count {
		s.recheck = true
		s.onNode()
		return
	}
	s.recheck = s.recheck || s.Node != nil || len(selector.MatchLabels)+len(selector.MatchExpressions) > 1
	required.eachLabel(func(l label) { s.in(s.free.labelled[l]) })
}

// onNode searches the trees of the volumes that may be usable on the node; without a node, all trees.
func (s *search) onNode() {
	s.in(s.free.anywhere)
	if s.Node == nil {
		s.in(s.free.affine)
		return
	}
	s.free.exactOn(s.Node, s.in)
	s.recheck = true
	s.free.candidatesOn(s.Node, s.in)
}

func (s *search) in(trees volumeTrees) {
	for i := range trees {
		if trees[i].modes.Contains(s.Modes) {
			s.inTree(&trees[i])
		}
	}
}

// inTree takes the first volumes of the tree that fit, unless k better ones are known.
func (s *search) inTree(tree *modeTree[volumeEntry]) {
	if s.Node == nil && s.count == s.k && accessmode.Compare(tree.modes, s.worst.modes) > 0 {
		return
	}
	left := s.k
	for size, entry := range tree.from(&s.least) {
		found := Choice{entry.PersistentVolume, size, tree.modes}
		if s.count == s.k && s.compare(found, s.worst) >= 0 {
			return
		}
		if s.recheck && !s.Fits(found.Volume) {
			continue
		}
		s.add(found)
		if left--; left == 0 {
			return
		}
	}
}

// add puts a choice in its place, if need be in that of the worst.
func (s *search) add(found Choice) {
	s.count = min(s.count+1, s.k)
	if s.k == 1 {
		s.worst = found
		return
	}
	at, _ := slices.BinarySearchFunc(s.best, found, s.compare)
	s.best = slices.Insert(s.best, at, found)[:s.count]
	s.worst = s.best[s.count-1]
}

// compare orders the volumes that fit, the better one first (M13).
func (s *search) compare(a, b Choice) int {
	if s.Node != nil {
		return a.Compare(b)
	}
	return cmp.Or(accessmode.Compare(a.modes, b.modes), a.compareSize(b), cmp.Compare(a.Volume.Name, b.Volume.Name))
}
