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
	return func() time.Duration { return now().Sub(began) }
}
