package index

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// CanBind reports whether a claim that is not bound could be bound to the volume. Either it names the volume, which no
// claim owns, and could be bound to it (C7, C8), or it names none and the volume fits it (C1). A claim that nothing can be
// decided for cannot be bound: its own sync returns the error. It is rule W1.
func CanBind(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, terms func(*corev1.PersistentVolumeClaim) match.Terms) bool {
	name := claim.Spec.VolumeName
	if claim.DeletionTimestamp != nil || name != "" && name != volume.Name {
		return false
	}
	switch phase.ClaimBindingStateOf(claim, volume) {
	case phase.ClaimUnbound:
		criteria, err := match.NewCriteria(claim, terms(claim))
		return err == nil && criteria.Fits(volume)
	case phase.ClaimRequestsVolume:
		mismatches, err := match.CheckNamed(claim, volume, terms(claim).Parsed)
		return err == nil && len(mismatches) == 0
	case phase.ClaimBinding:
		return phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefPreBound
	}
	return false
}

// PreferredClaim returns whichever of two claims a volume that both wait for is offered to first: the one that names it,
// then the one with the larger request, then the first by name. best may be nil.
func PreferredClaim(best, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	if best == nil || cmp.Or(cmp.Compare(best.Spec.VolumeName, claim.Spec.VolumeName),
		quantities.Compare(requestOf(best), requestOf(claim)), obj.CompareKeys(obj.KeyOf(claim), obj.KeyOf(best))) < 0 {
		return claim
	}
	return best
}

func requestOf(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// WaitingClaims is a set of claims that any volume might fit, from which First returns in O(log n) the one to offer a volume to.
// The claims are well-formed and not of a class that is WaitForFirstConsumer. They are not bound, not being
// deleted, and name no volume. The zero value is empty. A WaitingClaims is not safe for concurrent use.
type WaitingClaims struct {
	claims map[obj.Key]waitingClaim
	queues map[queueKey]*selectorQueue
	// byLabel has the queues of a group by a label that a volume must have, or one of several. Those that require no label
	// are at the zero label.
	byLabel map[groupLabel]map[*selectorQueue]struct{}
}

// selectorQueue has the waiting claims of one group and selector, so that a volume is compared with the selector once,
// however many claims have it.
type selectorQueue struct {
	claims   modeTrees[claimEntry]
	key      queueKey
	criteria match.Criteria // those of any one claim: all have the same selector
	required requirement    // the queue is found by each label that meets it
}

// waitingClaim is a claim and where it waits.
type waitingClaim struct {
	record[claimEntry]
	queue *selectorQueue
}

type queueKey struct {
	match.Group
	selector string
}

type groupLabel struct {
	match.Group
	label
}

// Set adds or replaces the claim, or removes it if it no longer waits. Call it again when the class changes. The terms are
// those without a node.
func (w *WaitingClaims) Set(claim *corev1.PersistentVolumeClaim, terms match.Terms) {
	w.Delete(obj.KeyOf(claim))
	if phase.BindCompleted(claim) || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" {
		return
	}
	if c, err := match.NewCriteria(claim, terms); err == nil && !c.WaitsForFirstConsumer {
		w.insert(&c, match.SelectorID(claim, terms.Parsed))
	}
}

// Get returns the claim; nil if it is not in the set.
func (w *WaitingClaims) Get(key obj.Key) *corev1.PersistentVolumeClaim {
	return w.claims[key].entry.PersistentVolumeClaim
}

// Len returns the number of claims.
func (w *WaitingClaims) Len() int { return len(w.claims) }

// Delete removes a claim. One that is not in the set is no error.
func (w *WaitingClaims) Delete(key obj.Key) {
	waiting, found := w.claims[key]
	if !found {
		return
	}
	delete(w.claims, key)
	queue := waiting.queue
	if queue.claims = queue.claims.remove(waiting.record); len(queue.claims) == 0 {
		w.close(queue)
	}
}

// First returns the claim with the largest request, then first by name, among those that the volume fits by class, modes,
// size and selector and that accept accepts; nil if there is none. It calls accept in this order.
func (w *WaitingClaims) First(volume *corev1.PersistentVolume, accept func(*corev1.PersistentVolumeClaim) bool) *corev1.PersistentVolumeClaim {
	if match.Unavailable(volume) != "" {
		return nil
	}
	r := recordOf(volume)
	largest := key{size: -r.key.size, quantity: r.key.quantity} // before the first claim that does not request too much
	var best *corev1.PersistentVolumeClaim
	w.eachTree(volume, r.modes, func(tree *modeTree[claimEntry]) {
		for _, entry := range tree.from(&largest) {
			claim := entry.PersistentVolumeClaim
			if PreferredClaim(best, claim) == best {
				return
			}
			if accept(claim) {
				best = claim
				return
			}
		}
	})
	return best
}

// eachTree visits the trees of the claims whose group, selector and access modes match the volume.
func (w *WaitingClaims) eachTree(volume *corev1.PersistentVolume, modes accessmode.Set, visit func(*modeTree[claimEntry])) {
	group := match.GroupOf(volume)
	visitAt := func(l label) {
		for queue := range w.byLabel[groupLabel{group, l}] {
			if !queue.criteria.Selects(volume) {
				continue
			}
			for i := range queue.claims {
				if modes.Contains(queue.claims[i].modes) {
					visit(&queue.claims[i])
				}
			}
		}
	}
	visitAt(label{})
	if len(volume.Labels) > max(maxLabels, len(w.byLabel)) {
		for at := range w.byLabel {
			if value, has := volume.Labels[at.key]; has && value == at.value && at.Group == group {
				visitAt(at.label)
			}
		}
		return
	}
	for name, value := range volume.Labels {
		visitAt(label{name, value})
	}
}

// Clone returns a copy of the set. The claims are shared.
func (w *WaitingClaims) Clone() WaitingClaims {
	var copied WaitingClaims
	for _, waiting := range w.claims {
		c := waiting.queue.criteria
		c.Claim, c.Request, c.Modes = waiting.entry.PersistentVolumeClaim, waiting.key.quantity, waiting.modes
		copied.insert(&c, waiting.queue.key.selector)
	}
	return copied
}

func (w *WaitingClaims) insert(c *match.Criteria, selector string) {
	key := queueKey{c.Group, selector}
	queue := w.queues[key]
	if queue == nil {
		queue = w.open(key, c)
	}
	r := recordOfClaim(c)
	queue.claims = queue.claims.insert(r)
	zeromap.Put(&w.claims, obj.KeyOf(c.Claim), waitingClaim{r, queue})
}

// open adds the queue of a selector. It is found by the requirement that leads to the fewest queues so far: where all
// selectors require the same application and each a part of it, by the part.
func (w *WaitingClaims) open(key queueKey, c *match.Criteria) *selectorQueue {
	queue := &selectorQueue{key: key, criteria: *c}
	if selector := c.Claim.Spec.Selector; selector != nil {
		queue.required, _ = narrowest(selector, func(l label) int { return len(w.byLabel[groupLabel{c.Group, l}]) })
	}
	zeromap.Put(&w.queues, key, queue)
	queue.required.eachLabel(func(l label) {
		at := groupLabel{c.Group, l}
		queues := w.byLabel[at]
		zeromap.Put(&queues, queue, struct{}{})
		zeromap.Put(&w.byLabel, at, queues)
	})
	return queue
}

func (w *WaitingClaims) close(queue *selectorQueue) {
	delete(w.queues, queue.key)
	queue.required.eachLabel(func(l label) {
		at := groupLabel{queue.criteria.Group, l}
		if delete(w.byLabel[at], queue); len(w.byLabel[at]) == 0 {
			delete(w.byLabel, at)
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

func recordOfClaim(c *match.Criteria) record[claimEntry] {
	k := key{size: -sizeOf(c.Request), quantity: c.Request, namespace: c.Claim.Namespace, name: c.Claim.Name}
	return record[claimEntry]{entry: claimEntry{c.Claim}, key: k, modes: c.Modes}
}
