package engine

import (
	"slices"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// hookSlots bounds how many hooks run at once (Rh). A sync that finds no slot free ends, and runs again when one is: no
// worker is kept waiting.
type hookSlots struct {
	limit    int
	running  map[obj.Key]struct{} // the syncs whose hook runs
	promised map[obj.Key]struct{} // the syncs that a free slot is kept for
	waiting  []obj.Key            // the syncs that found none free, in order
	queued   map[obj.Key]struct{} // the same
}

func (s *hookSlots) free() int {
	return s.limit - len(s.running) - len(s.promised)
}

// acquire acquires a slot for a sync, or queues it.
func (s *hookSlots) acquire(key obj.Key) bool {
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

// release releases the slot of a sync, if it has one.
func (s *hookSlots) release(key obj.Key) { delete(s.running, key) }

// next returns the syncs to begin now, as there are slots for them. ended is the sync that makes room: if a slot was
// promised to it, it did not need that.
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
