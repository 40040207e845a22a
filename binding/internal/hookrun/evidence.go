package hookrun

import (
	"time"

	"github.com/pvbind/pvbind/binding/decision"
)

// Evidence is what the next call of a deleter or recycler in a sync relies on, and since when: its announcement or, where there
// is nothing to announce it on, the live reads right before it (R8, P2).
type Evidence struct {
	token            int64
	announced, reads time.Time
	reading          bool
}

// Note takes an action of the sync that is about to be performed.
func (e *Evidence) Note(action decision.Action, now time.Time) {
	if action.Announces() {
		e.token, e.announced = action.Token, now
	}
	reads := action.Kind == decision.Read
	if reads && !e.reading {
		e.reads = now
	}
	e.reading = reads
}

// Age returns what tells how old the evidence for a call is; nil for a provisioner, which destroys nothing.
func (e Evidence) Age(call decision.Action, now func() time.Time) Elapsed {
	began := e.reads
	switch call.Token {
	case 0:
		return nil
	case e.token:
		began = e.announced
	}
	return func() time.Duration { return between(began, now()) }
}

// between returns the time from began to now, by whichever clock counts more of it. The monotonic one stands still while the
// machine is suspended, in which others may have taken over; the wall clock may be set back. One that was set ahead only makes
// the call seem late, which is safe.
func between(began, now time.Time) time.Duration {
	return max(now.Sub(began), now.Round(0).Sub(began.Round(0))) // Round(0) strips the monotonic reading
}
