package binding

import (
	"maps"
	"slices"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// hookSlots bound how many hooks run at once (Rh). A sync that finds none free ends, and comes back when one is:
// nobody waits with a worker in hand. The zero value has the usual number of slots.
type hookSlots struct {
	limit    int
	running  map[obj.Key]struct{} // the syncs whose hook runs
	promised map[obj.Key]struct{} // the syncs that were told that a slot is free, and have not taken it
	waiting  []obj.Key            // the syncs that found none free, in order
	queued   map[obj.Key]struct{} // the same
}

func (s *hookSlots) free() int {
	limit := s.limit
	if limit <= 0 {
		limit = defaultAtOnce
	}
	return limit - len(s.running) - len(s.promised)
}

// take takes a slot for a sync, or puts it in the queue.
func (s *hookSlots) take(key obj.Key) bool {
	delete(s.promised, key)
	if s.free() <= 0 {
		if _, queued := s.queued[key]; !queued {
			zeromap.Put(&s.queued, key, struct{}{})
			s.waiting = append(s.waiting, key)
		}
		return false
	}
	zeromap.Put(&s.running, key, struct{}{})
	return true
}

// give gives the slot of a sync back, if it has one.
func (s *hookSlots) give(key obj.Key) { delete(s.running, key) }

// next are the syncs to begin now, for there are slots for them. ended is the sync that makes room: if it was
// promised a slot, it did not need it.
func (s *hookSlots) next(ended obj.Key) []obj.Key {
	delete(s.promised, ended)
	n := min(max(0, s.free()), len(s.waiting))
	keys := slices.Clone(s.waiting[:n])
	s.waiting = s.waiting[n:]
	for _, key := range keys {
		delete(s.queued, key)
		zeromap.Put(&s.promised, key, struct{}{})
	}
	return keys
}

func (s hookSlots) clone() hookSlots {
	s.running, s.promised, s.waiting = maps.Clone(s.running), maps.Clone(s.promised), slices.Clone(s.waiting)
	s.queued = maps.Clone(s.queued)
	return s
}
