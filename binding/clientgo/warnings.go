package clientgo

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// WarningLog is a binding.Recorder that also logs each event of type Warning: a hook that fails, and the claim that waits for it;
// storage that is made and deleted again and again, because its volume cannot be used; a claim that is Lost. What fails again
// with the same message is logged once.
type WarningLog struct {
	// Recorder publishes all events; nil drops them.
	Recorder binding.Recorder
	// Log logs a warning. It may be called from several goroutines at once.
	Log func(decision.Event)

	mu   sync.Mutex
	said map[obj.Key]map[decision.EventReason]decision.Event
}

var _ binding.Recorder = (*WarningLog)(nil)

// Record publishes an event, and logs it if it is a warning that the log does not end with for its object and reason.
func (w *WarningLog) Record(event decision.Event) {
	if w.Recorder != nil {
		w.Recorder.Record(event)
	}
	if event.Type == corev1.EventTypeWarning && w.isNew(event) {
		w.Log(event)
	}
}

func (w *WarningLog) isNew(event decision.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said[event.On][event.Reason] == event.Identity() {
		return false
	}
	if w.said == nil {
		w.said = map[obj.Key]map[decision.EventReason]decision.Event{}
	}
	if w.said[event.On] == nil {
		w.said[event.On] = map[decision.EventReason]decision.Event{}
	}
	w.said[event.On][event.Reason] = event.Identity()
	return true
}

// Forget forgets what was logged of an object that is gone.
func (w *WarningLog) Forget(key obj.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.said, key)
}
