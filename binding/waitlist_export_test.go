package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Waitlist lets tests compare a waitlist with a look at every claim.
type Waitlist struct{ waitlist }

func (w *Waitlist) Set(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) {
	w.set(claim, class)
}
func (w *Waitlist) Delete(key obj.Key) { w.delete(key) }
func (w *Waitlist) Len() int           { return len(w.claims) }
func (w *Waitlist) Queues() int        { return len(w.queues) }
func (w *Waitlist) Clone() Waitlist    { return Waitlist{w.clone()} }

func (w *Waitlist) First(volume *corev1.PersistentVolume, takes func(*corev1.PersistentVolumeClaim) bool) *corev1.PersistentVolumeClaim {
	return w.first(volume, takes)
}

// Compared is how many selectors a volume of these labels is compared with.
func (w *Waitlist) Compared(labels map[string]string) (count int) {
	for _, queue := range w.queues {
		count += len(queue.odd)
		for key, value := range labels {
			count += len(queue.asking[label{key, value}])
		}
	}
	return count
}

// WaitsFor is about one claim.
func WaitsFor(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, terms match.Terms) bool {
	return waitsFor(claim, volume, func(*corev1.PersistentVolumeClaim) match.Terms { return terms })
}

// Needier is the claim of two that comes first; best may be nil.
func Needier(best, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	return needier(best, claim, volume)
}
