package index

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// WaitsFor reports whether a claim that is not bound could be bound to the volume. Either it names the volume, which no claim
// owns, and could be bound to it (C7, C8), or it names none and the volume fits it (C1). A claim that nothing can be
// decided for does not wait: its own sync returns the error. It is rule W1.
func WaitsFor(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, terms func(*corev1.PersistentVolumeClaim) match.Terms) bool {
	name := claim.Spec.VolumeName
	if claim.DeletionTimestamp != nil || name != "" && name != volume.Name {
		return false
	}
	switch phase.ClaimBindingStateOf(claim, volume) {
	case phase.ClaimUnbound:
		criteria, err := match.NewCriteria(claim, terms(claim))
		return err == nil && criteria.Fits(volume)
	case phase.ClaimRequestsVolume:
		mismatches, err := match.CheckNamed(claim, volume, nil)
		return err == nil && len(mismatches) == 0
	case phase.ClaimBinding:
		return phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefPreBound
	}
	return false
}

// PreferredClaim returns whichever of two claims the volume is offered to first: the one that names it, then the one with
// the larger request, then the first by name. best may be nil.
func PreferredClaim(best, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	unnamed := func(claim *corev1.PersistentVolumeClaim) int {
		if claim.Spec.VolumeName == volume.Name {
			return 0
		}
		return 1
	}
	if best == nil || cmp.Or(cmp.Compare(unnamed(claim), unnamed(best)),
		quantities.Compare(requestOf(best), requestOf(claim)), obj.CompareKeys(obj.KeyOf(claim), obj.KeyOf(best))) < 0 {
		return claim
	}
	return best
}

func requestOf(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// Waiting is a set of claims that any volume might fit, from which First returns in O(log n) the one to offer a volume to.
// The claims are well-formed and not of a class that is WaitForFirstConsumer. They are not bound, not being
// deleted, and name no volume. The zero value is empty. A Waiting is not safe for concurrent use.
type Waiting struct {
	claims map[obj.Key]*corev1.PersistentVolumeClaim
	groups map[match.Group]*selectorQueues
}

// Set adds or replaces the claim, or removes it if it no longer waits. Call it again when the class changes.
func (w *Waiting) Set(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) {
	w.Delete(obj.KeyOf(claim))
	if phase.BindCompleted(claim) || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" {
		return
	}
	if c, err := match.NewCriteria(claim, match.Terms{Class: class}); err == nil && !c.WaitsForFirstConsumer {
		w.insert(&c)
	}
}

// Get returns the claim; nil if it is not in the set.
func (w *Waiting) Get(key obj.Key) *corev1.PersistentVolumeClaim { return w.claims[key] }

// Len returns the number of claims.
func (w *Waiting) Len() int { return len(w.claims) }

// Delete removes a claim. One that is not in the set is no error.
func (w *Waiting) Delete(key obj.Key) {
	claim := w.claims[key]
	if claim == nil {
		return
	}
	c, _ := match.NewCriteria(claim, match.Terms{}) // no error, for the claim is in the set
	delete(w.claims, key)
	queues := w.groups[c.Group]
	if queues.remove(&c); len(queues.bySelector) == 0 {
		delete(w.groups, c.Group)
	}
}

// First returns the claim with the largest request, then first by name, among those that the volume fits by class, modes,
// size and selector and that accept accepts; nil if there is none. It calls accept in this order.
func (w *Waiting) First(volume *corev1.PersistentVolume, accept func(*corev1.PersistentVolumeClaim) bool) *corev1.PersistentVolumeClaim {
	queues := w.groups[match.GroupOf(volume)]
	if queues == nil || match.Unavailable(volume) != "" {
		return nil
	}
	r := recordOf(volume)
	s := claimSearch{volume: volume, modes: r.modes, largest: key{size: -r.key.size, quantity: r.key.quantity}, accept: accept}
	s.searchQueues(queues.byLabel[label{}])
	for name, value := range volume.Labels {
		s.searchQueues(queues.byLabel[label{name, value}])
	}
	return s.best.PersistentVolumeClaim
}

// Clone returns a copy of the set. The claims are shared.
func (w *Waiting) Clone() Waiting {
	var copied Waiting
	for _, claim := range w.claims {
		c, _ := match.NewCriteria(claim, match.Terms{})
		copied.insert(&c)
	}
	return copied
}

func (w *Waiting) insert(c *match.Criteria) {
	zeromap.Put(&w.claims, obj.KeyOf(c.Claim), c.Claim)
	if w.groups[c.Group] == nil {
		zeromap.Put(&w.groups, c.Group, &selectorQueues{})
	}
	w.groups[c.Group].insert(c)
}

// selectorQueue has the waiting claims of one selector, so that a volume is compared with the selector once, however many
// claims have it.
type selectorQueue struct {
	claims   modeTrees[claimEntry]
	selector match.Criteria // those of any one claim: all have the same selector
	required requirement    // the queue is found by each label that meets it
}

// selectorQueues has the waiting claims of one group.
type selectorQueues struct {
	bySelector map[string]*selectorQueue
	// byLabel has the queues by a label that a volume must have, or one of several. Those that require no label are at the
	// zero label.
	byLabel map[label]map[*selectorQueue]struct{}
}

func (q *selectorQueues) insert(c *match.Criteria) {
	name := metav1.FormatLabelSelector(c.Claim.Spec.Selector)
	if q.bySelector[name] == nil {
		zeromap.Put(&q.bySelector, name, q.open(c))
	}
	queue := q.bySelector[name]
	queue.claims = queue.claims.insert(recordOfClaim(c))
}

func (q *selectorQueues) remove(c *match.Criteria) {
	name := metav1.FormatLabelSelector(c.Claim.Spec.Selector)
	queue := q.bySelector[name]
	if queue.claims = queue.claims.remove(recordOfClaim(c)); len(queue.claims) == 0 {
		delete(q.bySelector, name)
		q.close(queue)
	}
}

// open adds the queue of a selector. It is found by the requirement that leads to the fewest queues so far: where all
// selectors require the same application and each a part of it, by the part.
func (q *selectorQueues) open(c *match.Criteria) *selectorQueue {
	opened := &selectorQueue{selector: *c}
	if c.Claim.Spec.Selector != nil {
		opened.required, _ = narrowest(c.Claim.Spec.Selector, func(l label) int { return len(q.byLabel[l]) })
	}
	opened.required.eachLabel(func(l label) {
		if q.byLabel[l] == nil {
			zeromap.Put(&q.byLabel, l, map[*selectorQueue]struct{}{})
		}
		q.byLabel[l][opened] = struct{}{}
	})
	return opened
}

func (q *selectorQueues) close(closed *selectorQueue) {
	closed.required.eachLabel(func(l label) {
		if delete(q.byLabel[l], closed); len(q.byLabel[l]) == 0 {
			delete(q.byLabel, l)
		}
	})
}

// claimEntry is a waiting claim in a tree: by request, the largest first, then by name. Its size is therefore negative.
type claimEntry struct{ *corev1.PersistentVolumeClaim }

func (e claimEntry) compareTie(k key) int {
	if !exact(k.size) {
		if order := quantities.Compare(k.quantity, requestOf(e.PersistentVolumeClaim)); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(e.Namespace, k.namespace), cmp.Compare(e.Name, k.name))
}

func (e claimEntry) key() key {
	request := requestOf(e.PersistentVolumeClaim)
	return key{size: -sizeOf(request), quantity: request, namespace: e.Namespace, name: e.Name}
}

func recordOfClaim(c *match.Criteria) record[claimEntry] {
	e := claimEntry{c.Claim}
	return record[claimEntry]{entry: e, key: e.key(), modes: c.Modes}
}

// claimSearch finds the first claim that takes a volume.
type claimSearch struct {
	volume  *corev1.PersistentVolume
	modes   accessmode.Set // of the volume
	largest key            // before the first claim that does not request too much
	accept  func(*corev1.PersistentVolumeClaim) bool

	best    claimEntry
	bestKey key
}

// searchQueues searches the queues whose selector matches the volume.
func (s *claimSearch) searchQueues(queues map[*selectorQueue]struct{}) {
	for queue := range queues {
		if queue.selector.Selects(s.volume) {
			s.searchTrees(queue.claims)
		}
	}
}

func (s *claimSearch) searchTrees(trees modeTrees[claimEntry]) {
	for i := range trees {
		if s.modes.Contains(trees[i].modes) {
			s.searchTree(&trees[i].btree)
		}
	}
}

func (s *claimSearch) searchTree(tree *btree[claimEntry]) {
	for size, entry := range tree.from(&s.largest) {
		if s.best.PersistentVolumeClaim != nil && cmp.Or(cmp.Compare(size, s.bestKey.size), entry.compareTie(s.bestKey)) >= 0 {
			return
		}
		if s.accept(entry.PersistentVolumeClaim) {
			s.best, s.bestKey = entry, entry.key()
			return
		}
	}
}
