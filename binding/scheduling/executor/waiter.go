package executor

import (
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// waiter is woken by changes of certain objects: of a thousand plans that wait, a change wakes those that depend on it.
type waiter struct {
	changed chan struct{} // has one if something has changed since it was last read
	keys    map[obj.Key]bool
}

func newWaiter() *waiter {
	return &waiter{changed: make(chan struct{}, 1), keys: map[obj.Key]bool{}}
}

// watch wakes the waiter when one of these objects changes, and of those that it has watched before.
func (e *Executor) watch(w *waiter, keys []obj.Key) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for _, key := range keys {
		if w.keys[key] {
			continue
		}
		w.keys[key] = true
		if e.waiters[key] == nil {
			zeromap.Put(&e.waiters, key, map[*waiter]bool{})
		}
		e.waiters[key][w] = true
	}
}

// leave ends watch.
func (e *Executor) leave(w *waiter) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for key := range w.keys {
		delete(e.waiters[key], w)
		if len(e.waiters[key]) == 0 {
			delete(e.waiters, key)
		}
	}
}

// wake wakes those that wait for the object. The caller holds the mutex.
func (e *Executor) wake(key obj.Key) {
	for w := range e.waiters[key] {
		select {
		case w.changed <- struct{}{}:
		default: // it has not yet looked since the last change
		}
	}
}

// wakeAll wakes all that wait. The caller holds the mutex.
func (e *Executor) wakeAll() {
	for key := range e.waiters {
		e.wake(key)
	}
}
