package bindingtest

import (
	"errors"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/obj"
)

// Match selects the calls that a fault is about.
type Match func(*Call) bool

// AnyWrite matches creates, updates and deletes.
func AnyWrite(call *Call) bool { return call.Writes() }

// On matches the calls of a verb on objects of a kind; those on their status are not among them.
func On(verb Verb, kind obj.Kind) Match {
	return func(call *Call) bool {
		return call.Verb == verb && call.Key.Kind == kind && call.Subresource == ""
	}
}

// OnStatus matches status updates of objects of a kind.
func OnStatus(kind obj.Kind) Match {
	return func(call *Call) bool { return call.Subresource == Status && call.Key.Kind == kind }
}

// Fail makes the n-th matching call, counted from 1, fail with err before it reaches the server.
func Fail(n int, match Match, err error) Hook {
	return nth(n, match, func(*Call, func() error) error { return err })
}

// Conflict makes the n-th matching call fail as if its resourceVersion were stale.
func Conflict(n int, match Match) Hook {
	return nth(n, match, func(call *Call, _ func() error) error {
		info, _ := infoOf(call.Key.Kind)
		return apierrors.NewConflict(info.groupResource(), call.Key.Name, errors.New("injected by a test"))
	})
}

// LoseAnswer lets the n-th matching call take effect and fails it with ErrAnswerLost, so that its
// outcome is unknown to the caller.
func LoseAnswer(n int, match Match) Hook {
	return nth(n, match, func(_ *Call, do func() error) error {
		_ = do()
		return ErrAnswerLost
	})
}

// Answer answers the n-th matching call with another object than the server did, whatever that said. The call takes effect. An
// empty object is what client-go makes of {}, null, a Status or another kind, with which a proxy may answer in the server's
// place. The call is one that returns an object.
func Answer(n int, match Match, object obj.Object) Hook {
	return nth(n, match, func(call *Call, do func() error) error {
		_ = do()
		call.answer, call.replaced = object, true
		return nil
	})
}

// Before runs what somebody else does just before the n-th matching call reaches the server.
func Before(n int, match Match, meanwhile func()) Hook {
	return nth(n, match, func(_ *Call, do func() error) error {
		meanwhile()
		return do()
	})
}

// nth applies a hook to the n-th matching call alone.
func nth(n int, match Match, hook Hook) Hook {
	var seen atomic.Int64
	return func(call *Call, do func() error) error {
		if match(call) && seen.Add(1) == int64(n) {
			return hook(call, do)
		}
		return do()
	}
}
