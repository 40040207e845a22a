package engine

import (
	"slices"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// What follows keeps one tenant from taking all that is there for everybody: the hooks that may run at once (Rh), and the
// workers of whoever calls Start (W9). A sync that there is no room for ends, and is in the Next of another that ends: nobody
// is kept waiting.

// namespaceOf returns the namespace that a sync works for: that of the claim, or of the one that the volume was last bound to.
// Volumes that have none share one, "".
func (s *State) namespaceOf(key obj.Key) string {
	if key.Kind != obj.KindVolume {
		return key.Namespace
	}
	if volume := s.volume(key.Name); volume != nil && volume.Spec.ClaimRef != nil {
		return volume.Spec.ClaimRef.Namespace
	}
	return ""
}

// slots bounds how many syncs have one of something at once: a hook that runs (Rh), or a worker (W9). A namespace gets one more
// only while it has fewer than are free: half of those that it finds, so that some are left for who comes. The namespaces that wait are served in turn, so that whoever waits is overtaken at most once by each other namespace,
// however much that one waits for. A sync keeps its slot until it ends: that of a deleter or recycler from
// before its announcement, and that of a provisioner for the deleter of what is no use.
type slots struct {
	limit    int                // 0: no bound
	running  map[obj.Key]string // the syncs that have a slot, with their namespaces
	promised map[obj.Key]string // the same of those that a free slot is kept for
	held     map[string]int     // by namespace, how many it has of both
	waiting  namespaceQueues    // the syncs that found none free
	turns    []string           // the namespaces that wait, the one to be served next first
}

// acquire acquires a slot for a sync that has none, or queues it.
func (s *slots) acquire(key obj.Key, namespace string) bool {
	if _, running := s.running[key]; running || s.limit == 0 {
		return true
	}
	_, promised := s.promised[key]
	s.release(key)
	if !promised && s.turn(anybody) >= 0 || !s.hasRoom(namespace) {
		if first := s.waiting.add(namespace, key); first {
			s.turns = append(s.turns, namespace)
		}
		return false
	}
	zeromap.Put(&s.running, key, namespace)
	zeromap.Put(&s.held, namespace, s.held[namespace]+1)
	return true
}

// release releases what a sync has: a slot, or the promise of one.
func (s *slots) release(key obj.Key) {
	for _, those := range []map[obj.Key]string{s.running, s.promised} {
		namespace, has := those[key]
		if !has {
			continue
		}
		delete(those, key)
		if s.held[namespace]--; s.held[namespace] == 0 {
			delete(s.held, namespace)
		}
	}
}

// promise promises a free slot to the sync whose turn it is, of the namespaces that may have one.
func (s *slots) promise(may func(namespace string) bool) (key obj.Key, namespace string, ok bool) {
	for turn := s.turn(may); turn >= 0; turn = s.turn(may) {
		namespace := s.turns[turn]
		s.turns = slices.Delete(s.turns, turn, turn+1)
		key, left := s.waiting.take(namespace)
		if left > 0 {
			s.turns = append(s.turns, namespace)
		}
		if s.keep(key, namespace) {
			return key, namespace, true
		}
	}
	return obj.Key{}, "", false
}

// keep keeps a free slot for a sync, and reports whether it had none.
func (s *slots) keep(key obj.Key, namespace string) bool {
	_, running := s.running[key]
	_, promised := s.promised[key]
	if running || promised || s.limit == 0 {
		return false
	}
	zeromap.Put(&s.promised, key, namespace)
	zeromap.Put(&s.held, namespace, s.held[namespace]+1)
	return true
}

// turn returns the position of the first namespace in turns that may have a slot and that there is room for; -1 if there is none.
func (s *slots) turn(may func(namespace string) bool) int {
	if s.free() <= 0 {
		return -1
	}
	return slices.IndexFunc(s.turns, func(namespace string) bool { return s.hasRoom(namespace) && may(namespace) })
}

func anybody(string) bool { return true }

// hasRoom reports whether a slot is free, and the namespace may have one more. What is of no namespace counts as one: volumes
// without claimRef, that somebody has made in place of others, may all wait for a list of the claims of all tenants (V1).
func (s *slots) hasRoom(namespace string) bool {
	return s.limit == 0 || s.held[namespace] < s.free()
}

func (s *slots) free() int { return s.limit - len(s.running) - len(s.promised) }

// release releases what a sync that ends, or cannot begin, has of hooks and workers, and returns the syncs to begin in its
// place. A slot for a hook is promised only together with a worker: it never lies idle while its sync is waiting for one. Of
// the workers of a namespace, those that a slot is free for come first.
func (s *State) release(key obj.Key) (next []obj.Key) {
	s.hooks.release(key)
	s.workers.release(key)
	for {
		key, namespace, promised := s.hooks.promise(s.workers.hasRoom)
		if promised {
			s.workers.keep(key, namespace)
		} else if key, _, promised = s.workers.promise(anybody); !promised {
			return next
		}
		next = append(next, key)
	}
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
