package bindingtest

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StorageVerb is what a controller asks of a Storage.
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
	// Effect is what the call did, once it has.
	Effect StorageEffect
	// Err is what the controller was told. A call with an Effect may have one nevertheless.
	Err error

	unheard bool // the controller had given up before the answer came
}

// String is the call in one line: "provision pvc-uid-3: made, but answered: connection lost".
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
func (s *Storage) Use(hooks ...StorageHook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(slices.Clip(s.hooks), hooks...)
}

// Calls are all calls so far, in the order in which they began.
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
	logged, hooks := s.begin(call)
	told := errStoragePanicked
	defer func() { s.end(ctx, logged, told) }()
	do := func() error {
		call.Effect = s.execute(logged, effect)
		return nil
	}
	for _, hook := range slices.Backward(hooks) {
		inner := do
		do = func() error { return hook(ctx, call, inner) }
	}
	told = do()
	return told
}

// begin logs a call. What is logged changes under the lock alone; the call itself belongs to the hooks.
func (s *Storage) begin(call *StorageCall) (logged *StorageCall, hooks []StorageHook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	logged = new(*call)
	s.calls = append(s.calls, logged)
	return logged, s.hooks
}

func (s *Storage) execute(logged *StorageCall, effect func() StorageEffect) StorageEffect {
	s.mu.Lock()
	defer s.mu.Unlock()
	logged.Effect = effect()
	return logged.Effect
}

// end logs what the controller was told.
func (s *Storage) end(ctx context.Context, logged *StorageCall, told error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	logged.Err, logged.unheard = told, ctx.Err() != nil
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
