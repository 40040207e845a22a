package binding

import (
	"maps"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// state is everything that a Controller remembers. It does no I/O and starts nothing: start begins a
// sync and says what to do first, proceed takes what came of that and says what to do next. A test can
// clone it and try every order of steps.
type state struct {
	store
	rules Rules
	// tasks are the syncs that have begun and not finished.
	tasks map[obj.Key]*task
	// holders are the objects in the hands of a sync: its own, and the volume that a claim's sync binds.
	holders map[obj.Key]obj.Key
	// waiters are the syncs to run once the holder of an object is done.
	waiters links
	// unsettled are the objects whose last write was lost or had an unknown outcome, with the sync that made it.
	// A volume in it stays reserved for that claim until a live read tells (B6).
	unsettled map[obj.Key]obj.Key
	// doubts is the same from the other side: the objects that a sync left unsettled.
	doubts links
	// offers remember which claims a volume was handed over to (W1).
	offers offers
	// slots bound how many hooks run at once (Rh).
	slots hookSlots
	// said are the events of the last decision on a key (N).
	said map[obj.Key][]Event
	// refused are the claims whose last write the server refused, and that are to be synced again after a
	// delay.
	refused map[obj.Key]refusal
	// failures counts the failures in a row of a key (W6).
	failures map[obj.Key]int
}

// refusal is what a write was about that the server refused.
type refusal struct {
	claimVersion          string
	volume, volumeVersion string
}

// newState knows nothing yet.
func newState(rules Rules) state {
	return state{store: store{index: &index.Index{}}, rules: rules.filled()}
}

// call is what a step asks for: an action whose outcome goes to proceed, or the end of the sync.
type call struct {
	publish []Event // first
	action  Action
	done    bool
	result  Result
	err     error
}

// start begins a sync, unless another one has its object: then that one sees to it.
func (s *state) start(key obj.Key) call {
	if _, held := s.holders[key]; held {
		s.waiters.move(obj.Key{}, key, key)
		return call{done: true}
	}
	zeromap.Put(&s.holders, key, key)
	zeromap.Put(&s.tasks, key, &task{key: key})
	return s.advance(s.tasks[key])
}

// clone copies the state. Objects are shared, for nothing modifies them.
func (s *state) clone() *state {
	copied := *s
	copied.store = s.store.clone()
	copied.tasks = make(map[obj.Key]*task, len(s.tasks))
	for key, running := range s.tasks {
		copied.tasks[key] = running.clone()
	}
	copied.holders = maps.Clone(s.holders)
	copied.waiters = s.waiters.clone()
	copied.unsettled = maps.Clone(s.unsettled)
	copied.doubts = s.doubts.clone()
	copied.offers = s.offers.clone()
	copied.slots = s.slots.clone()
	copied.said = maps.Clone(s.said) // the slices in it are replaced, never changed
	copied.refused = maps.Clone(s.refused)
	copied.failures = maps.Clone(s.failures)
	return &copied
}
