package binding

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
)

// want is a waiting claim in an order: by request, the largest first, then by name. To that end its size
// is negative.
type want struct{ *corev1.PersistentVolumeClaim }

func (w want) amount() resource.Quantity { return w.Spec.Resources.Requests[corev1.ResourceStorage] }

func (w want) tie(r rank) int {
	if !exact(r.size) {
		if order := quantities.Compare(r.quantity, w.amount()); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(w.Namespace, r.namespace), cmp.Compare(w.Name, r.name))
}

// waitRank is where the claim waits.
func waitRank(c *match.Criteria) rank {
	return rank{size: -sizeOf(c.Request), quantity: c.Request, namespace: c.Claim.Namespace, name: c.Claim.Name}
}

// queue keeps the waiting claims of one group by the modes that they ask for. Those of one selector are a line, so
// that a volume is compared with a selector once, however many claims have it.
type queue struct {
	any   rack[want] // without a selector
	lines map[string]*line
	// asking are the lines by a label that a volume must have, or one of several; odd are those that ask for none.
	asking map[label]lines
	odd    lines
}

func (q *queue) empty() bool { return q.any.used == 0 && len(q.lines) == 0 }

func (q *queue) insert(c *match.Criteria) {
	if c.Selector == nil {
		q.any.insert(c.Modes, waitRank(c), want{c.Claim})
		return
	}
	name := metav1.FormatLabelSelector(c.Claim.Spec.Selector)
	if q.lines[name] == nil {
		zeromap.Put(&q.lines, name, q.open(c))
	}
	q.lines[name].insert(c.Modes, waitRank(c), want{c.Claim})
}

func (q *queue) remove(c *match.Criteria) {
	if c.Selector == nil {
		q.any.remove(c.Modes, waitRank(c))
		return
	}
	name := metav1.FormatLabelSelector(c.Claim.Spec.Selector)
	l := q.lines[name]
	if l == nil {
		return
	}
	if l.remove(c.Modes, waitRank(c)); l.used == 0 {
		delete(q.lines, name)
		q.close(l)
	}
}

// offering is the search for the neediest claim that takes a volume.
type offering struct {
	ask    rank // before the first claim that does not ask for too much
	served slots
	takes  func(*corev1.PersistentVolumeClaim) bool

	best want
	size int64
}

// among looks in the lines whose selector matches the labels.
func (o *offering) among(found lines, has labels.Set) {
	for l := range found {
		if l.selector.Matches(has) {
			o.in(&l.rack)
		}
	}
}

func (o *offering) in(k *rack[want]) {
	for slot, rest := (k.used & o.served).next(); slot < len(narrowest); slot, rest = rest.next() {
		for at := k.in(slot).seek(&o.ask); at.ok() && o.needier(at); at = at.forward() {
			if o.takes(at.item().PersistentVolumeClaim) {
				o.best, o.size = at.item(), at.size()
				break
			}
		}
	}
}

func (o *offering) needier(at cursor[want]) bool {
	if o.best.PersistentVolumeClaim == nil || at.size() != o.size {
		return o.best.PersistentVolumeClaim == nil || at.size() < o.size
	}
	return at.item().tie(rank{size: o.size, quantity: o.best.amount(), namespace: o.best.Namespace, name: o.best.Name}) < 0
}
