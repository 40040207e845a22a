package index

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// WaitsFor reports whether a claim would take the volume (W1): it is not bound, and either names the volume, which
// nobody owns, and could have it (C7, C8), or names none and the volume fits it (C1). A claim that nothing can be decided
// for does not wait; its own sync says why.
func WaitsFor(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, terms func(*corev1.PersistentVolumeClaim) match.Terms) bool {
	name := claim.Spec.VolumeName
	if claim.DeletionTimestamp != nil || name != "" && name != volume.Name {
		return false
	}
	switch phase.ClaimStandingOf(claim, volume) {
	case phase.Unbound:
		criteria, err := match.NewCriteria(claim, terms(claim))
		return err == nil && criteria.Fits(volume)
	case phase.Asking:
		mismatches, err := match.CheckNamed(claim, volume)
		return err == nil && len(mismatches) == 0
	case phase.Finishing:
		return phase.LinkOf(volume, claim) == phase.Reserved
	}
	return false
}

// Needier is the claim that a volume is offered to before the other, which may be nil: who names it, then who
// asks for most, then by name.
func Needier(best, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	if best == nil {
		return claim
	}
	asks, asksBest := claim.Spec.Resources.Requests[corev1.ResourceStorage], best.Spec.Resources.Requests[corev1.ResourceStorage]
	names, namesBest := claim.Spec.VolumeName == volume.Name, best.Spec.VolumeName == volume.Name
	switch {
	case names != namesBest:
		if names {
			return claim
		}
		return best
	case cmp.Or(quantities.Compare(asksBest, asks), obj.CompareKeys(obj.KeyOf(claim), obj.KeyOf(best))) < 0:
		return claim
	}
	return best
}

// Waiting keeps the claims that any volume might serve, so that a volume finds the neediest in O(log n)
// (W1). They are well-formed and of no delayed class; they are not bound, not being deleted, and name no
// volume. The zero value is empty. It does not guard itself against concurrent use.
type Waiting struct {
	claims map[obj.Key]*corev1.PersistentVolumeClaim
	queues map[group]*queue
}

// Set puts a claim in, in the place of an older version; or takes it out, if it does not wait. It has to
// be called again when the class changes.
func (w *Waiting) Set(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) {
	w.Delete(obj.KeyOf(claim))
	if phase.BindCompleted(claim) || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" {
		return
	}
	if c, err := match.NewCriteria(claim, match.Terms{Class: class}); err == nil && !c.Delayed {
		w.insert(&c)
	}
}

// Get returns the claim; nil if it is not in the list.
func (w *Waiting) Get(key obj.Key) *corev1.PersistentVolumeClaim { return w.claims[key] }

// Len returns how many claims wait.
func (w *Waiting) Len() int { return len(w.claims) }

func (w *Waiting) insert(c *match.Criteria) {
	zeromap.Put(&w.claims, obj.KeyOf(c.Claim), c.Claim)
	if w.queues[groupFor(c)] == nil {
		zeromap.Put(&w.queues, groupFor(c), &queue{})
	}
	w.queues[groupFor(c)].insert(c)
}

// Delete takes a claim out. One that is not in it is no error.
func (w *Waiting) Delete(key obj.Key) {
	claim := w.claims[key]
	if claim == nil {
		return
	}
	c, _ := match.NewCriteria(claim, match.Terms{}) // no error, for it is in the list
	delete(w.claims, key)
	queue := w.queues[groupFor(&c)]
	if queue.remove(&c); queue.empty() {
		delete(w.queues, groupFor(&c))
	}
}

// First is the claim to offer a free volume to: of those that take it the one that asks for most, then
// the first by name; nil if there is none. Asked about are only claims that the volume serves by class,
// modes, size and selector, the neediest first. The rest is for takes to look at.
func (w *Waiting) First(volume *corev1.PersistentVolume, takes func(*corev1.PersistentVolumeClaim) bool) *corev1.PersistentVolumeClaim {
	queue := w.queues[groupOf(volume)]
	if queue == nil || !offered(volume) {
		return nil
	}
	f := fileOf(volume)
	o := offering{ask: rank{size: -f.rank.size, quantity: f.quantity}, served: servedBy(f.modes), takes: takes}
	o.in(&queue.any)
	o.among(queue.odd, volume.Labels)
	for key, value := range volume.Labels {
		o.among(queue.asking[label{key, value}], volume.Labels)
	}
	return o.best.PersistentVolumeClaim
}

// offered reports whether there can be a claim at all that takes the free volume: one that was Released, say, and is
// not Available again, would be shown to every claim in vain.
func offered(volume *corev1.PersistentVolume) bool {
	return match.Unavailable(volume) == ""
}

// Clone copies the list. Claims are shared.
func (w *Waiting) Clone() Waiting {
	var copied Waiting
	for _, claim := range w.claims {
		c, _ := match.NewCriteria(claim, match.Terms{})
		copied.insert(&c)
	}
	return copied
}

// line are the waiting claims of one selector.
type line struct {
	modeTrees[want]
	selector match.LabelSelector
	asked    []label // it is found by each of these
}

type lines map[*line]struct{}

// open begins a line. It is found by that part of its selector by which the fewest lines are found already: where
// all ask for the same application and each for a part of it, by the part.
func (q *queue) open(c *match.Criteria) *line {
	l := &line{selector: c.Selector}
	fewest := math.MaxInt
	for _, asked := range askedLabels(c.Claim.Spec.Selector) {
		count := 0
		for _, label := range asked {
			count += len(q.asking[label])
		}
		if count < fewest {
			l.asked, fewest = asked, count
		}
	}
	if len(l.asked) == 0 {
		zeromap.Put(&q.odd, l, struct{}{})
	}
	for _, label := range l.asked {
		if q.asking[label] == nil {
			zeromap.Put(&q.asking, label, lines{})
		}
		q.asking[label][l] = struct{}{}
	}
	return l
}

func (q *queue) close(l *line) {
	delete(q.odd, l)
	for _, label := range l.asked {
		if delete(q.asking[label], l); len(q.asking[label]) == 0 {
			delete(q.asking, label)
		}
	}
}

// askedLabels are the parts of a selector that ask for labels of one key, of which a volume must have one.
func askedLabels(selector *metav1.LabelSelector) (parts [][]label) {
	for key, value := range selector.MatchLabels {
		parts = append(parts, []label{{key, value}})
	}
	for _, part := range selector.MatchExpressions {
		if part.Operator != metav1.LabelSelectorOpIn {
			continue
		}
		var asked []label
		for i, value := range part.Values {
			if !slices.Contains(part.Values[:i], value) {
				asked = append(asked, label{part.Key, value})
			}
		}
		parts = append(parts, asked)
	}
	return parts
}

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
	any   modeTrees[want] // without a selector
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
	served modeMask
	takes  func(*corev1.PersistentVolumeClaim) bool

	best want
	size int64
}

// among looks in the lines whose selector matches the labels.
func (o *offering) among(found lines, has labels.Set) {
	for l := range found {
		if l.selector.Matches(has) {
			o.in(&l.modeTrees)
		}
	}
}

func (o *offering) in(k *modeTrees[want]) {
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
