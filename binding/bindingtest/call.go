package bindingtest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
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
	Event binding.Event
	// Err is what the caller was told. A write with After different from Before took effect
	// nevertheless.
	Err error

	answer obj.Object
	list   []obj.Object
	logged bool
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

// settle logs what the caller of a Client was told, which a hook may have changed.
func (s *Server) settle(call *Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Err = err
	if !call.logged {
		s.log(call)
	}
	call.trim()
}

// Calls are all calls so far, in the order in which they took effect, and the events among them.
func (s *Server) Calls() []Call { return s.CallsSince(0) }

// Events are the events recorded so far, in order.
func (s *Server) Events() []binding.Event {
	var events []binding.Event
	for _, call := range s.Calls() {
		if call.Verb == VerbRecord {
			events = append(events, call.Event)
		}
	}
	return events
}

// CallsSince are the calls after the first n.
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

// callsFrom are the calls after the first n, not copied.
func (s *Server) callsFrom(n int) []*Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[n:len(s.calls):len(s.calls)]
}
