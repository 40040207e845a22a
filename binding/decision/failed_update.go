package decision

import (
	"fmt"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
)

// FailedUpdate returns the events that tell of a write which the API server does not let happen, and of which nothing else
// in the cluster would tell: an object without room for one more annotation, a webhook or a quota that refuses it (N). They are
// on the object that was to be written, with the server's message, and on the one that the write was decided for, if that is
// another. Its owners may be others, who read only which object it is.
func FailedUpdate(action Action, decidedFor obj.Object, err error) []Event {
	written := action.written()
	if written == nil {
		return nil
	}
	change := fmt.Sprintf("the next change to %s (%s) fails", action.Target(), action.Why)
	const again = "It is tried again, more and more seldom"
	because := oneline.Text(err.Error(), messageLimit/2) // so that the rest is not cut
	events := []Event{warning(written, EventFailedUpdate, fmt.Sprintf("%s: %s. %s", change, because, again))}
	if decidedFor != nil && decidedFor.GetUID() != written.GetUID() {
		events = append(events, warning(decidedFor, EventFailedUpdate, change+". "+again))
	}
	return events
}
