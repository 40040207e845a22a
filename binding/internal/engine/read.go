package engine

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// contradiction is the reply to a live read that contradicts what is known: an object does not exist, or it exists
// though it was deleted, or it is older than it was. A server that was restored replies so, and so does a proxy or a
// cache that stands in for the server. It is believed once the next read has the same reply.
type contradiction struct {
	uid     types.UID // of the object that is missing, or that is there
	missing bool
}

// handleRead takes the reply to a live read.
func (s *State) handleRead(t *task, got Reply) error {
	key := t.pending.Key
	if got.Object != nil {
		t.forgetProvisioned(got.Object)
	}
	found, contradicts := s.contradictionIn(got, t)
	switch {
	case contradicts && found != t.contradicted[key]:
		zeromap.Put(&t.contradicted, key, found)
		return nil // the next decision reads it again
	case contradicts && !found.missing:
		t.wake(s.replace(key, got.Object), t.key)
		t.wake(s.clearDoubt(key), t.key)
		return wentBackError(got.Object)
	case contradicts:
		if known := s.Known(key); known != nil && known.GetUID() == found.uid { // one that was observed since is another
			t.wake(s.ObserveDeleted(known), t.key)
		}
		zeromap.Put(&t.contradicted, key, contradiction{missing: true})
	case got.Err != nil:
		return got.Err
	case got.Object != nil:
		delete(t.contradicted, key)
		t.wake(s.Observe(got.Object), t.key)
	}
	t.wake(s.clearDoubt(key), t.key)
	if s.dropStaleReads(t) && key != t.key {
		return nil // it is read anew if it matters still
	}
	zeromap.Put(&t.live, key, got)
	return nil
}

// contradictionIn returns what a reply says against what was known when its read was sent, if it does. What an informer
// has shown since counts no more than the reply: the next read tells which of the two is newer.
func (s *State) contradictionIn(got Reply, t *task) (found contradiction, contradicts bool) {
	switch {
	case obj.IsAbsent(got.Err, t.pending.Key):
		return contradiction{uid: uidOf(t.before), missing: true}, true
	case got.Object == nil:
		return contradiction{}, false
	}
	found.uid = got.Object.GetUID()
	return found, s.gone.has(found.uid) || t.before != nil && obj.Older(got.Object, t.before)
}

// replace stores what the server has in place of what was known, newer though that was.
func (s *State) replace(key obj.Key, object obj.Object) (woken []obj.Key) {
	if known := s.Known(key); known != nil {
		woken = s.ObserveDeleted(known)
	}
	s.gone.remove(object.GetUID())
	return append(woken, s.Observe(object)...)
}

// wentBackError ends a sync that has found that the server went back in time: nothing is destroyed on what such a reply
// says. The next sync begins with what the server has now.
func wentBackError(found obj.Object) error {
	return fmt.Errorf("metadata.resourceVersion: the server has %s, though a later one was known or the object was deleted: it may have been restored from a backup", found.GetResourceVersion())
}

// Recheck compares what a cache has of an object with what is known, and returns whom that wakes (W7).
//
// A claim or volume that is not the same is put in doubt, and read by the next sync. Where its last write is in doubt
// already it is read anyhow, and stays with the sync that made the write (B6). Of another object the cache's version is
// stored.
func (s *State) Recheck(object obj.Object) []obj.Key {
	woken := s.Observe(object)
	key := keyOf(object)
	known := s.Known(key)
	if key.Kind == obj.KindVolume || key.Kind == obj.KindClaim {
		if _, doubted := s.inDoubt[key]; !doubted && (known == nil || !sameVersion(known, object)) {
			s.markInDoubt(key, key)
		}
		return unique(append(woken, key))
	}
	if known != nil && !sameVersion(known, object) {
		woken = s.ObserveDeleted(known)
	}
	s.tombstonesOf(key.Kind).remove(object.GetUID())
	return unique(append(woken, s.Observe(object)...))
}

func sameVersion(a, b obj.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// uidOf returns the UID of the object; "" for nil.
func uidOf(object obj.Object) types.UID {
	if object == nil {
		return ""
	}
	return object.GetUID()
}
