package bindingtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
)

// StorageVerb is what a controller calls a Storage for.
type StorageVerb string

const (
	StorageProvision StorageVerb = "provision"
	StorageDelete    StorageVerb = "delete"
	StorageRecycle   StorageVerb = "recycle"
)

// StorageEffect is what a call did.
type StorageEffect string

const (
	StorageUnchanged StorageEffect = "" // there was nothing to do, or the call did not get that far
	StorageMade      StorageEffect = "made"
	StorageDeleted   StorageEffect = "deleted"
	StorageScrubbed  StorageEffect = "scrubbed"
)

// StorageCall is one call of a Storage, as a hook sees it and as the log keeps it.
type StorageCall struct {
	Verb StorageVerb
	// Volume is the name of the volume, and Claim the UID of its claim.
	Volume string
	Claim  types.UID
	// Node is the one that a provisioner was asked to be on.
	Node string
	// Token is that of the request; 0 for none, which is never refused.
	Token int64
	// Effect is what the call did, once it has.
	Effect StorageEffect
	// Err is the error that the controller got. A call with an Effect may have one nevertheless.
	Err error

	unheard bool // the controller had given up before the answer came
}

// String returns the call in one line: "provision pvc-uid-3: made, but answered: connection lost".
func (c StorageCall) String() string {
	line := string(c.Verb) + " " + c.Volume
	switch {
	case c.Err == nil && c.Effect == StorageUnchanged:
		return line
	case c.Err == nil:
		return line + ": " + string(c.Effect)
	case c.Effect == StorageUnchanged:
		return line + ": failed: " + c.Err.Error()
	}
	return line + ": " + string(c.Effect) + ", but answered: " + c.Err.Error()
}

// StorageHook stands between a controller and a Storage. It may take its time, do things before and after the
// call, not make it at all, panic, or answer with another error. To make the call it calls do, once; call.Effect
// is set then. ctx is the controller's; a hook that should seem stuck ignores it.
//
// No lock is held while a hook runs, so it may call the server and the storage itself.
type StorageHook func(ctx context.Context, call *StorageCall, do func() error) error

// Use adds hooks around every call from now on. The first one added is the outermost.
func (s *Storage) Use(added ...StorageHook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(slices.Clip(s.hooks), added...)
}

// Calls returns all calls so far, in the order in which they began.
func (s *Storage) Calls() []StorageCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]StorageCall, len(s.calls))
	for i, call := range s.calls {
		calls[i] = *call
	}
	return calls
}

var errStoragePanicked = errors.New("bindingtest: the storage panicked")

// perform makes a call with every hook around it. What effect does, it does under the lock.
func (s *Storage) perform(ctx context.Context, call *StorageCall, effect func() StorageEffect) error {
	logged, around := s.begin(call)
	answer := errStoragePanicked
	defer func() { s.end(ctx, logged, answer) }()
	do := func() error {
		var err error
		call.Effect, err = s.execute(logged, effect)
		return err
	}
	for _, hook := range slices.Backward(around) {
		inner := do
		do = func() error { return hook(ctx, call, inner) }
	}
	answer = do()
	return answer
}

// begin logs a call. What is logged changes under the lock alone; the call itself belongs to the hooks.
func (s *Storage) begin(call *StorageCall) (logged *StorageCall, around []StorageHook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	logged = new(*call)
	s.calls = append(s.calls, logged)
	return logged, s.hooks
}

// execute refuses a call with a smaller token than that of another for the same volume, and lets any other have its effect.
func (s *Storage) execute(logged *StorageCall, effect func() StorageEffect) (StorageEffect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if largest := s.tokens[logged.Volume]; logged.Token > 0 && logged.Token < largest && !s.forgets {
		return StorageUnchanged, &hooks.Error{Meaning: hooks.StaleToken, Err: fmt.Errorf("token %d comes after %d", logged.Token, largest)}
	}
	s.tokens[logged.Volume] = max(s.tokens[logged.Volume], logged.Token)
	logged.Effect = effect()
	return logged.Effect, nil
}

// end logs the error that the controller got.
func (s *Storage) end(ctx context.Context, logged *StorageCall, answer error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	logged.Err, logged.unheard = answer, ctx.Err() != nil
	if logged.Verb == StorageDelete && logged.answered() {
		s.deleted[logged.Volume] = s.now()
	}
}

// answered reports whether the controller knows that the call succeeded.
func (c *StorageCall) answered() bool { return c.Err == nil && !c.unheard }

func claimUID(volume *corev1.PersistentVolume) types.UID {
	if volume == nil || volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.UID
}

// StorageMatch says which calls of a Storage a fault is about.
type StorageMatch func(*StorageCall) bool

// AnyStorageCall matches all of them.
func AnyStorageCall(*StorageCall) bool { return true }

// OnStorage matches the calls of a verb.
func OnStorage(verb StorageVerb) StorageMatch {
	return func(call *StorageCall) bool { return call.Verb == verb }
}

// FailStorage makes the n-th matching call, counted from 1, fail with err before it has an effect. With a
// *hooks.Error a storage says more than that it failed.
func FailStorage(n int, match StorageMatch, err error) StorageHook {
	return nthStorage(n, match, func(context.Context, *StorageCall, func() error) error { return err })
}

// LieStorage lets the n-th matching call take effect and fails it with ErrAnswerLost.
func LieStorage(n int, match StorageMatch) StorageHook {
	return nthStorage(n, match, func(_ context.Context, _ *StorageCall, do func() error) error {
		_ = do()
		return ErrAnswerLost
	})
}

// DelayStorage answers the n-th matching call with hooks.InProgress, to be called again after that time: it has no effect yet.
func DelayStorage(n int, match StorageMatch, after time.Duration) StorageHook {
	return FailStorage(n, match, &hooks.Error{Meaning: hooks.InProgress, After: after})
}

// PanicStorage makes the n-th matching call panic before it has an effect.
func PanicStorage(n int, match StorageMatch) StorageHook {
	return nthStorage(n, match, func(context.Context, *StorageCall, func() error) error {
		panic("injected by a test")
	})
}

// nthStorage applies a hook to the n-th matching call alone.
func nthStorage(n int, match StorageMatch, hook StorageHook) StorageHook {
	var seen atomic.Int64
	return func(ctx context.Context, call *StorageCall, do func() error) error {
		if match(call) && seen.Add(1) == int64(n) {
			return hook(ctx, call, do)
		}
		return do()
	}
}
