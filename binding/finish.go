package binding

import (
	"errors"
	"slices"
	"time"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 2 * time.Minute
)

// finish ends a sync with its last decision, or with an error.
func (s *state) finish(t *task, action Action, err error) call {
	if action.Kind == HandOver {
		s.handOver(t, action.Key)
	} else if err == nil || len(action.Events) > 0 {
		t.publish = append(t.publish, s.news(t.key, action.Events)...)
	}
	ended := s.end(t)
	ended.result.After, ended.err = s.delay(t.key, action, err), err
	return ended
}

// end ends a sync that had its turn. The volumes that were handed to its claim go next.
func (s *state) end(t *task) call {
	t.next = append(t.next, s.offers.answered(t.key)...)
	if claim := s.called.Get(t.key); claim != nil {
		s.called.Delete(t.key)
		s.enlist(claim)
	}
	return s.standBack(t)
}

// standBack lets go of everything that the sync had. Whoever found one of its objects in its hands goes next,
// itself perhaps. A claim that stands back for another sync still has its turn before it: what was handed to
// it waits for that.
func (s *state) standBack(t *task) call {
	s.letGo(t)
	delete(s.tasks, t.key)
	delete(s.holders, t.key)
	t.next = append(t.next, s.waiters.take(t.key)...)
	t.next = append(t.next, s.slots.next(t.key)...)
	return call{publish: t.publish, done: true, result: Result{Next: unique(t.next)}}
}

// delay is after how long the key is to be synced again: longer after each failure in a row, and not at all
// where only a change helps (W6).
func (s *state) delay(key obj.Key, action Action, err error) time.Duration {
	var invalid *obj.InvalidError
	if errors.As(err, &invalid) || err == nil && action.Retry == RetryNever {
		delete(s.failures, key)
		delete(s.refused, key)
		return 0
	}
	if err == nil && action.Retry == RetryAfter {
		return max(action.After, firstDelay/10)
	}
	zeromap.Put(&s.failures, key, s.failures[key]+1)
	return min(lastDelay, firstDelay<<min(s.failures[key]-1, 16))
}

// news are the events of a decision that were not part of the decision before it (N).
func (s *state) news(key obj.Key, events []Event) []Event {
	var fresh, all []Event
	for _, event := range events {
		all = append(all, event.identity())
		if !slices.Contains(s.said[key], event.identity()) {
			fresh = append(fresh, event)
		}
	}
	if len(all) == 0 {
		delete(s.said, key)
	} else {
		zeromap.Put(&s.said, key, all)
	}
	return fresh
}
