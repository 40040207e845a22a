package executor

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// known is what is known of a claim or volume: the version that was reported last, and the newest, which may be a reply's.
type known struct{ reported, newest obj.Object }

// Observe takes a claim or volume that is new, or a version of it that is. One that a reply has shown in a newer version stays.
// Other kinds are ignored.
func (e *Executor) Observe(object obj.Object) {
	key := keyOf(object)
	if !isKept(key) {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.observe(key, object)
}

// Update takes two versions of a claim or volume as an informer reports them; or two objects of one name, if it has missed the
// end of the first; or a version and an older one, if the server went back in time and the informer has listed anew: then the
// older one counts.
func (e *Executor) Update(before, now obj.Object) {
	key := keyOf(now)
	if !isKept(key) {
		return
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	switch {
	case before.GetUID() != now.GetUID():
		e.drop(key, before)
		e.observe(key, now)
	case obj.Older(now, before):
		e.put(key, known{now, now})
		e.wake(key)
	default:
		e.observe(key, now)
	}
}

func (e *Executor) observe(key obj.Key, object obj.Object) {
	is := known{object, object}
	if was, ok := e.known[key]; ok && obj.Older(object, was.newest) {
		if was.newest.GetUID() != object.GetUID() {
			return // reported late: the store of the informer has shown its successor
		}
		is.newest = was.newest
	}
	e.put(key, is)
	e.wake(key)
}

// ObserveStored takes a claim or volume that the store of an informer has, whether it was reported or not: an informer stores
// what is new before it reports it to one handler after the other, so that others may know of it before the Executor does. The
// function looks the object up in the store; nil if it is gone.
func (e *Executor) ObserveStored(object obj.Object, lookUp func() obj.Object) {
	for object != nil && !e.isReported(object) {
		e.Observe(object)
		now := lookUp()
		switch now {
		case nil: // its end may have been reported before it was observed
			e.ObserveDeleted(object)
		case object:
			return
		}
		object = now
	}
}

// Unreported returns those of the objects that were not the last of their names to be reported. The same object is the same pointer.
func (e *Executor) Unreported(objects iter.Seq[obj.Object]) (unreported []obj.Object) {
	e.mutex.RLock()
	defer e.mutex.RUnlock()
	for object := range objects {
		if e.known[keyOf(object)].reported != object {
			unreported = append(unreported, object)
		}
	}
	return unreported
}

func (e *Executor) isReported(object obj.Object) bool {
	e.mutex.RLock()
	defer e.mutex.RUnlock()
	return e.known[keyOf(object)].reported == object
}

// ObserveDeleted takes the last state of a claim, volume or pod that is gone. Report pods so that what is done for one ends with it.
func (e *Executor) ObserveDeleted(object obj.Object) {
	key := keyOf(object)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.drop(key, object)
	e.wake(key)
}

// ServerWentBack forgets what replies alone have shown, for what was written since the backup is lost. Call it when a list
// of claims or volumes has a resourceVersion below one that was seen, before what it has is reported (W8).
func (e *Executor) ServerWentBack() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.restores++
	for key, is := range e.known {
		if is.newest != is.reported {
			e.put(key, known{is.reported, is.reported})
		}
	}
	e.wakeAll()
}

// Reset takes all claims and volumes that the server has, in place of all that is known: where informers have seen nothing since the
// server went back in time, and others take their place. Report what becomes of these objects after that.
func (e *Executor) Reset(objects []obj.Object) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.restores++
	now := map[obj.Key]known{}
	for _, object := range objects {
		now[keyOf(object)] = known{object, object}
	}
	for key, was := range e.known {
		if is, ok := now[key]; !ok || is.newest.GetUID() != was.newest.GetUID() {
			e.drop(key, was.newest)
		}
	}
	for key, is := range now {
		e.put(key, is)
	}
	e.wakeAll()
}

// era returns how often the server went back in time.
func (e *Executor) era() int {
	e.mutex.RLock()
	defer e.mutex.RUnlock()
	return e.restores
}

// store takes the server's reply to a request that was made in that era, and reports whether it is known now, or something
// newer. What was deleted meanwhile stays deleted, and what was written before the server went back is not so any more.
func (e *Executor) store(object obj.Object, era int) bool {
	key := keyOf(object)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	was, ok := e.known[key]
	if era != e.restores || !ok || was.newest.GetUID() != object.GetUID() {
		return false
	}
	if !obj.Older(object, was.newest) {
		e.put(key, known{was.reported, object})
	}
	return true
}

// put sets what is known of a claim or volume. The caller holds the mutex.
func (e *Executor) put(key obj.Key, is known) {
	zeromap.Put(&e.known, key, is)
	switch object := is.newest.(type) {
	case *corev1.PersistentVolume:
		e.index.Set(object)
	case *corev1.PersistentVolumeClaim:
		e.index.SetClaim(object)
	}
}

// drop removes a claim or volume, unless another has its name by now. The caller holds the mutex.
func (e *Executor) drop(key obj.Key, object obj.Object) {
	if was, ok := e.known[key]; !ok || was.newest.GetUID() != object.GetUID() {
		return
	}
	delete(e.known, key)
	if key.Kind == obj.KindVolume {
		e.index.Delete(key.Name)
	} else {
		e.index.DeleteClaim(key)
	}
}

// knows reports whether the claim or volume is known to exist.
func (e *Executor) knows(object obj.Object) bool {
	e.mutex.RLock()
	defer e.mutex.RUnlock()
	is, ok := e.known[keyOf(object)]
	return ok && is.newest.GetUID() == object.GetUID()
}

// Volume looks up a volume, as a scheduling.View does.
func (e *Executor) Volume(name string) (*corev1.PersistentVolume, decision.Source) {
	return lookUp[*corev1.PersistentVolume](e, obj.VolumeKey(name))
}

// Claim looks up a claim, as a scheduling.View does.
func (e *Executor) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	return lookUp[*corev1.PersistentVolumeClaim](e, obj.ClaimKey(namespace, name))
}

// Owners returns the claims that are Bound to the volume, as a scheduling.View does.
func (e *Executor) Owners(volume string) []obj.Key { return e.index.Owners(volume) }

// CSINode looks up the CSINode of a node, as a scheduling.CSINodeView does.
func (e *Executor) CSINode(node string) *storagev1.CSINode {
	if e.CSINodeOf == nil {
		return nil
	}
	return e.CSINodeOf(node)
}

func lookUp[T obj.Object](e *Executor, key obj.Key) (T, decision.Source) {
	e.mutex.RLock()
	defer e.mutex.RUnlock()
	if is, ok := e.known[key]; ok {
		return is.newest.(T), decision.FromCache
	}
	var none T
	return none, decision.NotInCache
}

// keyOf returns the key of a claim, a volume or a pod; the zero Key for other kinds.
func keyOf(object obj.Object) obj.Key {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		return obj.VolumeKey(object.Name)
	case *corev1.PersistentVolumeClaim:
		return obj.KeyOf(object)
	case *corev1.Pod:
		return obj.KeyOfPod(object)
	}
	return obj.Key{}
}

// isKept reports whether objects of the kind are kept: of a pod only the end matters.
func isKept(key obj.Key) bool { return key.Kind == obj.KindVolume || key.Kind == obj.KindClaim }
