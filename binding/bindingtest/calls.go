package bindingtest

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Verb is what a call does.
type Verb string

const (
	VerbCreate Verb = "create"
	VerbUpdate Verb = "update"
	VerbDelete Verb = "delete"
	VerbGet    Verb = "get"
	VerbList   Verb = "list"
	VerbRecord Verb = "record" // an event was published
	VerbLoad   Verb = "load"   // see Server.Load
)

// Subresource is the part of an object that a call is about; empty for the object itself.
type Subresource string

// Status is the part that UpdateStatus writes.
const Status Subresource = "status"

// Call is one call of the server, as a hook sees it and as the log keeps it.
type Call struct {
	// Actor is the name of the Client that made the call; empty for the Server's own methods.
	Actor       string
	Verb        Verb
	Subresource Subresource
	// Key is what the call is about. A list has no name in it.
	Key obj.Key
	// Sent is the object as it was sent, for hooks; nil unless the call creates or updates. The log keeps it
	// only where it was not stored.
	Sent obj.Object
	// Options are those of a delete.
	Options metav1.DeleteOptions
	// Before and After are the stored object before and after the call; nil where there was none, and
	// for calls that do not write. A hook must not modify them.
	Before, After obj.Object
	// Event is what was recorded.
	Event decision.Event
	// Err is the error that the caller got. A write with After different from Before took effect
	// nevertheless.
	Err error

	answer   obj.Object
	list     []obj.Object
	logged   bool
	replaced bool // answer is not the server's own
}

// Writes reports whether the call is one that writes.
func (c *Call) Writes() bool {
	return c.Verb == VerbCreate || c.Verb == VerbUpdate || c.Verb == VerbDelete
}

// Changed reports whether the call changed what is stored.
func (c *Call) Changed() bool { return c.Before != c.After }

// perform carries a call out and logs it.
func (s *Server) perform(call *Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Err = s.execute(call)
	s.log(call)
	if call.Actor == "" { // or else hooks may still look at it
		call.trim()
	}
	return call.Err
}

// trim drops what After says as well: a long log would be twice as large.
func (c *Call) trim() {
	if c.Changed() {
		c.Sent = nil
	}
}

func (s *Server) execute(call *Call) error {
	switch call.Verb {
	case VerbCreate:
		return s.create(call)
	case VerbUpdate:
		return s.update(call)
	case VerbDelete:
		return s.delete(call)
	case VerbGet:
		return s.get(call)
	case VerbList:
		return s.list(call)
	}
	return nil
}

func (s *Server) log(call *Call) {
	call.logged = true
	s.calls = append(s.calls, call)
}

// finish logs what the caller of a Client was told, which a hook may have changed.
func (s *Server) finish(call *Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Err = err
	if !call.logged {
		s.log(call)
	}
	call.trim()
}

// Calls returns all calls so far, in the order in which they took effect, and the events among them.
func (s *Server) Calls() []Call { return s.CallsSince(0) }

// Events returns the events recorded so far, in order.
func (s *Server) Events() []decision.Event {
	var events []decision.Event
	for _, call := range s.Calls() {
		if call.Verb == VerbRecord {
			events = append(events, call.Event)
		}
	}
	return events
}

// CallsSince returns the calls after the first n.
func (s *Server) CallsSince(n int) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]Call, 0, len(s.calls)-n)
	for _, logged := range s.calls[n:] {
		calls = append(calls, logged.copy())
	}
	return calls
}

// copy keeps Before and After one object if they are, for that is how Changed knows.
func (c *Call) copy() Call {
	call := *c
	call.answer, call.list = nil, nil
	call.Sent, call.Before, call.After = copyOf(c.Sent), copyOf(c.Before), copyOf(c.After)
	if !c.Changed() {
		call.After = call.Before
	}
	return call
}

// callsFrom returns the calls after the first n, not copied.
func (s *Server) callsFrom(n int) []*Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[n:len(s.calls):len(s.calls)]
}

// String returns the call in one line, without its actor:
//
//	update pv/a: spec.claimRef={default/data uid-3} +annotation pv.kubernetes.io/bound-by-controller
//	update status pv/a: status.phase=Bound
//	update pvc/default/data: -finalizer kubernetes.io/pvc-protection, gone
//	delete pv/a: failed: Conflict
//	event Normal FailedBinding pvc/default/data: no volume fits
func (c Call) String() string {
	switch c.Verb {
	case VerbRecord:
		return "event " + c.Event.String()
	case VerbList:
		return c.listLine()
	}
	line := string(c.Verb)
	if c.Subresource != "" {
		line += " " + string(c.Subresource)
	}
	line += " " + display(c.Key)
	if outcome := c.outcome(); outcome != "" {
		line += ": " + outcome
	}
	return line
}

func (c Call) listLine() string {
	info, _ := infoOf(c.Key.Kind)
	line := "list " + info.resource
	if c.Key.Namespace != "" {
		line += " in " + c.Key.Namespace
	}
	if c.Err != nil {
		line += ": failed: " + reason(c.Err)
	}
	return line
}

// outcome returns what the call changed and what error its caller got, as far as they need saying.
func (c Call) outcome() string {
	effect := c.effect()
	switch {
	case c.Err == nil && c.replaced:
		return strings.TrimPrefix(effect+", answered with another object", ", ")
	case c.Err == nil:
		return effect
	case !c.Changed():
		return "failed: " + reason(c.Err)
	case effect == "":
		return "done, but answered: " + reason(c.Err)
	}
	return effect + ", but answered: " + reason(c.Err)
}

func (c Call) effect() string {
	switch {
	case c.Verb == VerbUpdate && !c.Changed():
		return "nothing changed"
	case c.Verb == VerbUpdate && c.After == nil:
		return "-finalizer " + strings.Join(c.Before.GetFinalizers(), " -finalizer ") + ", gone"
	case c.Before != nil && c.After != nil:
		return Diff(c.Before, c.After)
	}
	return ""
}

func reason(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return err.Error()
}
