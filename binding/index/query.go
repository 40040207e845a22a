package index

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

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
func (r Reader) Query(c *match.Criteria) *Query { return new(r.x.query(c)) }

// Query searches an Index that does not change for a volume for one claim. Its Node may be another one for each search. It
// must not be used once Index.Read has returned, unless another Reader renews it, nor from two goroutines at once.
type Query struct {
	match.Criteria
	x        *Index
	related  []*corev1.PersistentVolume // see Index.related
	free     *bucket                    // the volumes to choose from; nil if there are none
	selected bool                       // free has only volumes that the selector matches
	least    key                        // before the first volume that is large enough
}

func (x *Index) query(c *match.Criteria) (q Query) {
	q.Criteria, q.x, q.free, q.least = *c, x, x.free[c.Group], lowest(c.Request)
	if len(x.affinities) > 0 {
		q.Affinity = x.affinity
	}
	q.related = x.related[types.NamespacedName{Namespace: c.Claim.Namespace, Name: c.Claim.Name}]
	return q
}

// Renew lets a query go on that an earlier Reader of the same Index has begun. What Preselect has found stays, and may be outdated.
func (r Reader) Renew(q *Query) {
	free, selected := q.free, q.selected
	*q = r.x.query(&q.Criteria)
	if selected {
		q.free, q.selected = free, true
	}
}

// HasRelated reports whether any volume belongs to the claim, or has a claimRef of its name. If none does, PreBound finds none.
func (q *Query) HasRelated() bool { return len(q.related) > 0 }

// PreBound returns the volume that belongs to the claim, or whose claimRef names it, and that fits; or else the name of
// one that would fit on another node. A volume that the Index has reserved for the claim belongs to it.
func (q *Query) PreBound() (volume *corev1.PersistentVolume, elsewhere string) {
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
	s := search{Query: q, from: &q.least, k: k, best: slices.Grow(choices[:0], 2*k)}
	s.run()
	return s.best
}

// Next is Best among the volumes on the query's node that have a capacity and come after a choice, unless that is zero.
func (q *Query) Next(k int, atLeast resource.Quantity, after Choice, choices []Choice) []Choice {
	from := lowest(atLeast)
	s := search{Query: q, from: &from, k: k, best: slices.Grow(choices[:0], 2*k)}
	if after.Volume != nil {
		if capacity := (volumeEntry{after.Volume}).capacity(); quantities.Compare(capacity, atLeast) >= 0 {
			from, s.after = lowest(capacity), &after
		}
	}
	s.run()
	return s.best
}

// Preselect looks up the volumes that the claim's selector matches, so that later searches skip the selector.
func (q *Query) Preselect() {
	if q.Claim.Spec.Selector == nil || q.free == nil || q.selected {
		return
	}
	found := &bucket{}
	q.eachSelected(q.free, func(volume *corev1.PersistentVolume) {
		found.updateTopology(recordOf(volume), volumeTrees.insert, 1)
	})
	q.free, q.selected = found, true
}

// eachSelected visits the volumes of a bucket that are large enough, have the access modes and the selector matches.
func (q *Query) eachSelected(b *bucket, visit func(*corev1.PersistentVolume)) {
	b.eachSelectable(q.Claim.Spec.Selector, func(trees volumeTrees) {
		q.eachIn(trees, func(volume *corev1.PersistentVolume) {
			if q.Selects(volume) {
				visit(volume)
			}
		})
	})
}

// eachIn visits the volumes that are large enough and have the access modes.
func (q *Query) eachIn(trees volumeTrees, visit func(*corev1.PersistentVolume)) {
	for i := range trees {
		if trees[i].modes.Contains(q.Modes) {
			for _, entry := range trees[i].from(&q.least) {
				visit(entry.PersistentVolume)
			}
		}
	}
}

// waits reports whether the claim is to wait for a node (M11).
func (q *Query) waits() bool { return q.WaitsForFirstConsumer && q.Node == nil }

// find returns the match for the claim. A volume whose claimRef names the claim wins, and so does one that would fit on another
// node. A volume that is only reserved for the claim competes with the free ones.
func (q *Query) find() match.Match {
	found := q.findRelated()
	if q.waits() || found.Volume != nil && found.Volume.Spec.ClaimRef != nil || found.Elsewhere() {
		return found
	}
	var room [1]Choice
	s := search{Query: q, from: &q.least, k: 1, best: room[:0]}
	if found.Volume != nil {
		s.add(choiceOf(found.Volume))
	}
	s.run()
	if len(s.best) > 0 {
		found.Volume = s.best[0].Volume
	}
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
	order := cmp.Compare(c.size, other.size)
	if order == 0 && !exact(c.size) {
		order = quantities.Compare(volumeEntry{c.Volume}.capacity(), volumeEntry{other.Volume}.capacity())
	}
	return cmp.Or(order, accessmode.Compare(c.modes, other.modes), cmp.Compare(c.Volume.Name, other.Volume.Name))
}

// search finds the k best of the free volumes of a Query.
type search struct {
	// Query is embedded as a pointer. By value, the compiler would have best escape to the heap, and Find must not allocate.
	*Query
	from  *key    // before the first that is large enough
	after *Choice // the volumes up to this one are passed over; nil: none
	k     int
	best  []Choice // those found so far, at most k, the best first; append would have it escape, and there is room for 2k
}

// run searches the smallest set of trees that has every volume that may fit.
func (s *search) run() {
	if s.free == nil {
		return
	}
	s.WellFormed = true // as all in a bucket are
	defer func() { s.WellFormed = false }()
	selector := s.Claim.Spec.Selector
	if selector == nil || s.selected {
		s.free.eachOn(s.Node, s.searchTrees)
		return
	}
	required, count := s.free.narrowest(selector)
	if required.key == "" || s.Node != nil && s.free.countOn(s.Node) < count {
		s.free.eachOn(s.Node, func(trees volumeTrees, _ bool) { s.searchTrees(trees, false) })
		return
	}
	allFit := s.Node == nil && len(selector.MatchLabels)+len(selector.MatchExpressions) == 1
	s.free.eachLabelled(required, func(trees volumeTrees, meet bool) { s.searchTrees(trees, allFit && meet) })
}

// searchTrees searches trees. If allFit is set, all of their volumes that are large enough and have the access modes fit.
func (s *search) searchTrees(trees volumeTrees, allFit bool) {
	for i := range trees {
		if trees[i].modes.Contains(s.Modes) {
			s.searchTree(&trees[i], allFit && s.Owners == nil)
		}
	}
}

// searchTree takes the first volumes of the tree that fit, unless k better ones are known.
func (s *search) searchTree(tree *modeTree[volumeEntry], allFit bool) {
	if s.Node == nil && s.full() && accessmode.Compare(tree.modes, s.worst().modes) > 0 {
		return
	}
	from := s.from
	if s.after != nil && s.after.modes == tree.modes {
		named := *s.from
		named.name = s.after.Volume.Name
		from = &named
	}
	if s.k > maxInserted && s.Node != nil {
		s.addMany(tree, from, allFit)
		return
	}
	left := s.k
	for size, entry := range tree.from(from) {
		found := Choice{entry.PersistentVolume, size, tree.modes}
		if s.full() && s.compare(found, s.worst()) >= 0 {
			return
		}
		if !s.takes(found, allFit) {
			continue
		}
		s.add(found)
		if left--; left == 0 {
			return
		}
	}
}

// maxInserted is how many choices are kept in order by putting each in its place. That would take the square of many.
const maxInserted = 16

// addMany adds the first k volumes of the tree that fit on the node, and puts all in order after that.
func (s *search) addMany(tree *modeTree[volumeEntry], from *key, allFit bool) {
	known := len(s.best)
	for size, entry := range tree.from(from) {
		found := Choice{entry.PersistentVolume, size, tree.modes}
		if len(s.best)-known == s.k || known == s.k && found.Compare(s.best[known-1]) >= 0 {
			break
		}
		if s.takes(found, allFit) {
			s.best = s.best[:len(s.best)+1]
			s.best[len(s.best)-1] = found
		}
	}
	if known > 0 && len(s.best) > known {
		slices.SortFunc(s.best, Choice.Compare)
		s.best = s.best[:min(len(s.best), s.k)]
	}
}

// takes reports whether the volume fits and is not passed over.
func (s *search) takes(found Choice, allFit bool) bool {
	return (s.after == nil || found.Compare(*s.after) > 0) && (allFit || s.Fits(found.Volume))
}

func (s *search) full() bool { return len(s.best) == s.k }

func (s *search) worst() Choice { return s.best[len(s.best)-1] }

// add puts a choice in its place. If there are k already, the worst goes.
func (s *search) add(found Choice) {
	s.best = s.best[:min(len(s.best)+1, s.k)]
	at := len(s.best) - 1
	for ; at > 0 && s.compare(found, s.best[at-1]) < 0; at-- {
		s.best[at] = s.best[at-1]
	}
	s.best[at] = found
}

// compare orders the volumes that fit, the better one first (M13).
func (s *search) compare(a, b Choice) int {
	if s.Node == nil && a.modes != b.modes {
		return cmp.Or(accessmode.Compare(a.modes, b.modes), a.Compare(b))
	}
	return a.Compare(b)
}
