package engine

import (
	"slices"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// What follows keeps one tenant from taking all that is there for everybody: the hooks that may run at once (Rh), and the
// workers of whoever calls Start (W9). A sync that is over its namespace's share ends, and is in the Next of another that
// ends: no worker is kept waiting.

// half is the share of one namespace: at least one, and less than all where there is more than one.
func half(of int) int { return (of + 1) / 2 }

// namespaceOf returns the namespace that a sync works for: that of the claim, or of the one that the volume was last bound to;
// "" if there is none.
func (s *State) namespaceOf(key obj.Key) string {
	if key.Kind != obj.KindVolume {
		return key.Namespace
	}
	if volume := s.volume(key.Name); volume != nil && volume.Spec.ClaimRef != nil {
		return volume.Spec.ClaimRef.Namespace
	}
	return ""
}

// hookSlots bounds how many hooks run at once, and to half of that how many of one namespace (Rh). The slot of a deleter or
// recycler is taken before its announcement. The namespaces that wait are served in turn, so that whoever waits is overtaken at
// most once by each other namespace, however many calls that one is waiting for.
type hookSlots struct {
	limit    int
	running  map[obj.Key]string // the syncs whose hook runs, or is announced, with their namespaces
	promised map[obj.Key]string // the same of those that a free slot is kept for
	waiting  namespaceQueues    // the syncs that found none free
	turns    []string           // the namespaces that wait, the one to be served next first
}

// acquire acquires a slot for a sync that has none, or queues it.
func (s *hookSlots) acquire(key obj.Key, namespace string) bool {
	if _, running := s.running[key]; running {
		return true
	}
	_, promised := s.promised[key]
	delete(s.promised, key)
	if !promised && s.turn() >= 0 || !s.hasRoom(namespace) {
		if first := s.waiting.add(namespace, key); first {
			s.turns = append(s.turns, namespace)
		}
		return false
	}
	zeromap.Put(&s.running, key, namespace)
	return true
}

// release releases the slot of a sync, if it has one.
func (s *hookSlots) release(key obj.Key) { delete(s.running, key) }

// next returns the syncs to begin now, as there are slots for them. ended is the sync that makes room: if a slot was
// promised to it, it did not need that.
func (s *hookSlots) next(ended obj.Key) []obj.Key {
	delete(s.promised, ended)
	var keys []obj.Key
	for turn := s.turn(); turn >= 0; turn = s.turn() {
		namespace := s.turns[turn]
		s.turns = slices.Delete(s.turns, turn, turn+1)
		key, left := s.waiting.take(namespace)
		if left > 0 {
			s.turns = append(s.turns, namespace)
		}
		zeromap.Put(&s.promised, key, namespace)
		keys = append(keys, key)
	}
	return keys
}

// turn returns the position of the first namespace in turns that there is room for; -1 if there is none.
func (s *hookSlots) turn() int {
	if s.free() <= 0 {
		return -1
	}
	return slices.IndexFunc(s.turns, s.hasRoom) // at most two have their share already
}

func (s *hookSlots) hasRoom(namespace string) bool {
	held := 0
	for _, slots := range []map[obj.Key]string{s.running, s.promised} {
		for _, holder := range slots {
			if holder == namespace {
				held++
			}
		}
	}
	return s.free() > 0 && held < half(s.limit)
}

func (s *hookSlots) free() int { return s.limit - len(s.running) - len(s.promised) }

// syncShares bounds how many syncs run at once for one namespace (W9).
type syncShares struct {
	limit   int             // 0: none
	running map[string]int  // by namespace
	waiting namespaceQueues // the syncs that were over the limit
}

// begin counts a sync that is about to begin, or queues it. Syncs without a namespace always begin.
func (s *syncShares) begin(key obj.Key, namespace string) bool {
	switch {
	case s.limit == 0 || namespace == "":
		return true
	case s.running[namespace] >= s.limit:
		s.waiting.add(namespace, key)
		return false
	}
	zeromap.Put(&s.running, namespace, s.running[namespace]+1)
	return true
}

// end counts a sync of the namespace that ends, and returns the one to begin in its place, if one waits. If another is faster, that
// one queues again, and the end of the other makes up for it.
func (s *syncShares) end(namespace string) []obj.Key {
	if s.limit == 0 || namespace == "" {
		return nil
	}
	if s.running[namespace]--; s.running[namespace] == 0 {
		delete(s.running, namespace)
	}
	if len(s.waiting.keys[namespace]) == 0 {
		return nil
	}
	key, _ := s.waiting.take(namespace)
	return []obj.Key{key}
}

// namespaceQueues has a queue of syncs for each namespace, and no sync twice.
type namespaceQueues struct {
	keys   map[string][]obj.Key
	queued map[obj.Key]struct{}
}

// add adds a sync to the queue of the namespace, unless it is in one, and reports whether it is the first there.
func (q *namespaceQueues) add(namespace string, key obj.Key) (first bool) {
	if _, queued := q.queued[key]; queued {
		return false
	}
	zeromap.Put(&q.queued, key, struct{}{})
	zeromap.Put(&q.keys, namespace, append(q.keys[namespace], key))
	return len(q.keys[namespace]) == 1
}

// take removes the first sync from the queue of the namespace, and returns how many are left.
func (q *namespaceQueues) take(namespace string) (key obj.Key, left int) {
	keys := q.keys[namespace]
	key, q.keys[namespace] = keys[0], keys[1:]
	delete(q.queued, key)
	if len(keys) == 1 {
		delete(q.keys, namespace)
	}
	return key, len(keys) - 1
}
