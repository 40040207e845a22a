package binding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// hookRunner calls hooks. A call that does not return in time is given up, and remembered until it does return,
// so that no two for the same storage ever overlap.
type hookRunner struct {
	mu      sync.Mutex
	running map[obj.Key]struct{}
}

// run calls the hook that the action names, and returns when it has answered or its time is over.
func (r *hookRunner) run(ctx context.Context, hooks Hooks, action Action) reply {
	call := hooks.call(action)
	if call == nil {
		return reply{err: fmt.Errorf("no hook is registered under %q", action.Hook)}
	}
	storage := action.Target()
	if !r.begin(storage) {
		return reply{err: &HookError{Meaning: HookInProgress, Err: fmt.Errorf("an earlier call for %s has not returned", storage)}}
	}
	timeout := cmp.Or(hooks.Timeout, defaultTimeout)
	inTime, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := make(chan reply, 1)
	go func() {
		got := reply{err: errNoAnswer}
		defer func() { // in this order: the next call may come as soon as the answer is there
			r.end(storage)
			answer <- got
		}()
		got = guarded(inTime, call)
	}()
	var got reply
	select {
	case got = <-answer:
	case <-inTime.Done():
		got.err = fmt.Errorf("no answer within %s: %w", timeout, inTime.Err())
	}
	if got.err != nil && ctx.Err() != nil { // it did not fail: whoever called Sync is not waiting any more
		got.err = &HookError{Meaning: HookInProgress, Err: ctx.Err()}
	}
	return got
}

var errNoAnswer = errors.New("the hook ended its goroutine") // as runtime.Goexit does

func (r *hookRunner) begin(storage obj.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, running := r.running[storage]; running {
		return false
	}
	zeromap.Put(&r.running, storage, struct{}{})
	return true
}

func (r *hookRunner) end(storage obj.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, storage)
}

// hookCall is a hook with its arguments.
type hookCall func(context.Context) (*corev1.PersistentVolume, error)

// call is what to call for the action, with copies of the objects in it; nil if nothing is registered.
func (h Hooks) call(action Action) hookCall {
	switch action.Kind {
	case RunProvisioner:
		if hook := h.Provisioners[action.Hook]; hook != nil {
			request := action.Request.copied()
			return func(ctx context.Context) (*corev1.PersistentVolume, error) { return hook.Provision(ctx, request) }
		}
	case RunDeleter:
		registered := h.SourceDeleters
		if action.Volume.Annotations[phase.ProvisionedByAnnotation] != "" {
			registered = h.Deleters
		}
		if hook := registered[action.Hook]; hook != nil {
			return on(action.Volume, hook.Delete)
		}
	case RunRecycler:
		if hook := h.Recyclers[action.Hook]; hook != nil {
			return on(action.Volume, hook.Recycle)
		}
	}
	return nil
}

func on(volume *corev1.PersistentVolume, hook func(context.Context, *corev1.PersistentVolume) error) hookCall {
	copied := volume.DeepCopy()
	return func(ctx context.Context) (*corev1.PersistentVolume, error) { return nil, hook(ctx, copied) }
}

// guarded turns a panic into an error.
func guarded(ctx context.Context, call hookCall) (got reply) {
	defer func() {
		if panicked := recover(); panicked != nil {
			got = reply{err: fmt.Errorf("the hook panicked: %v", panicked)}
		}
	}()
	volume, err := call(ctx)
	if volume == nil {
		return reply{err: err} // and not an object that is a nil pointer
	}
	return reply{object: volume, err: err}
}
