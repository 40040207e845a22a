package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// waitlist keeps the claims that any volume might serve, so that a volume finds the neediest in O(log n)
// (W1). They are well-formed and of no delayed class; they are not bound, not being deleted, and name no
// volume. The zero value is empty. It does not guard itself against concurrent use.
type waitlist struct {
	claims map[obj.Key]*corev1.PersistentVolumeClaim
	queues map[group]*queue
}

// set puts a claim in, in the place of an older version; or takes it out, if it does not wait. It has to
// be called again when the class changes.
func (w *waitlist) set(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) {
	w.delete(obj.KeyOf(claim))
	if phase.BindCompleted(claim) || claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" {
		return
	}
	if c, err := match.NewCriteria(claim, match.Terms{Class: class}); err == nil && !c.Delayed {
		w.insert(&c)
	}
}

func (w *waitlist) insert(c *match.Criteria) {
	zeromap.Put(&w.claims, obj.KeyOf(c.Claim), c.Claim)
	if w.queues[groupFor(c)] == nil {
		zeromap.Put(&w.queues, groupFor(c), &queue{})
	}
	w.queues[groupFor(c)].insert(c)
}

// delete takes a claim out. One that is not in it is no error.
func (w *waitlist) delete(key obj.Key) {
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

// first is the claim to offer a free volume to: of those that take it the one that asks for most, then
// the first by name; nil if there is none. Asked about are only claims that the volume serves by class,
// modes, size and selector, the neediest first. The rest is for takes to look at.
func (w *waitlist) first(volume *corev1.PersistentVolume, takes func(*corev1.PersistentVolumeClaim) bool) *corev1.PersistentVolumeClaim {
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

// clone copies the list. Claims are shared.
func (w *waitlist) clone() waitlist {
	var copied waitlist
	for _, claim := range w.claims {
		c, _ := match.NewCriteria(claim, match.Terms{})
		copied.insert(&c)
	}
	return copied
}
