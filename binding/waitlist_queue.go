package binding

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// want is a waiting claim in an order: by request, the largest first, then by name. To that end its size
// is negative.
type want struct{ *corev1.PersistentVolumeClaim }

func (w want) amount() resource.Quantity { return w.Spec.Resources.Requests[corev1.ResourceStorage] }

func (w want) tie(r rank) int {
	if !exact(r.size) {
		if order := compareQuantities(r.quantity, w.amount()); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(w.Namespace, r.namespace), cmp.Compare(w.Name, r.name))
}

// rank is where the claim waits.
func (c *criteria) rank() rank {
	return rank{size: -sizeOf(c.request), quantity: c.request, namespace: c.claim.Namespace, name: c.claim.Name}
}

// queue keeps the waiting claims of one group by the modes that they ask for. One whose selector asks for
// a label is kept by that label.
type queue struct {
	any      rack[want]
	labelled racks[want]
}

func (q *queue) empty() bool { return q.any.used == 0 && len(q.labelled) == 0 }

func (q *queue) insert(c *criteria) {
	labels := askedLabels(c.claim.Spec.Selector)
	for _, label := range labels {
		q.labelled.insert(label, c.modes, c.rank(), want{c.claim})
	}
	if len(labels) == 0 {
		q.any.insert(c.modes, c.rank(), want{c.claim})
	}
}

func (q *queue) remove(c *criteria) {
	labels := askedLabels(c.claim.Spec.Selector)
	for _, label := range labels {
		q.labelled.remove(label, c.modes, c.rank())
	}
	if len(labels) == 0 {
		q.any.remove(c.modes, c.rank())
	}
}

// askedLabels are labels of one key, of which a volume must have one: a part of the selector. None, if
// it has no such part.
func askedLabels(selector *metav1.LabelSelector) (asked []label) {
	if selector == nil {
		return nil
	}
	for key, value := range selector.MatchLabels {
		if len(asked) == 0 || key < asked[0].key {
			asked = []label{{key, value}}
		}
	}
	for _, part := range selector.MatchExpressions {
		if len(asked) > 0 || part.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		for i, value := range part.Values {
			if !slices.Contains(part.Values[:i], value) {
				asked = append(asked, label{part.Key, value})
			}
		}
	}
	return asked
}

// offering is the search for the neediest claim that takes a volume.
type offering struct {
	ask    rank // before the first claim that does not ask for too much
	served slots
	takes  func(*corev1.PersistentVolumeClaim) bool

	best want
	size int64
}

func (o *offering) in(k *rack[want]) {
	if k == nil {
		return
	}
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
