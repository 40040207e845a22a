// Package hookrun calls hooks: each for a limited time, with copies of its arguments, and never two at once for the same
// storage. Runner.Run turns an action that runs a hook into the engine's Reply. A hook that panics, ends its goroutine or
// does not return in time is an error of that one call (Rh).
package hookrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// Runner calls hooks. A call that does not return in time is given up, and remembered until it does return,
// so that no two for the same storage ever overlap.
type Runner struct {
	running sync.Map // by the key of what the storage is of
}

// Run calls the hook that the action names, and returns when it has answered or its time is over. It fails if no such hook
// is registered, or if an earlier call for the same storage has not returned.
//
// The time of a deleter or recycler counts from the announcement of its call, before that was sent, or else from the live reads
// that it relies on. A call that comes too long after that is not made, and is announced, or what it relies on read, anew:
// another controller may take over by then (R8). The time that the client's own limit holds requests back counts too, for
// from here it is no other than that of the server.
func (r *Runner) Run(ctx context.Context, set hooks.Set, action decision.Action, since Elapsed) engine.Reply {
	call := callFor(set, action)
	if call == nil {
		return engine.Reply{Err: fmt.Errorf("no hook is registered under %q", action.Hook)}
	}
	storage := action.Target()
	if _, running := r.running.LoadOrStore(storage, true); running {
		return engine.Reply{Err: &hooks.Error{Meaning: hooks.NotReturned, Err: fmt.Errorf("the hook was not called, for an earlier call for %s has not returned", storage)}}
	}
	timeout := cmp.Or(max(0, set.Timeout), hooks.DefaultTimeout)
	if action.Kind != decision.RunProvisioner {
		timeout = min(timeout, reclaim.LongestCall) // others wait no longer
	}
	age, latest := since.now(), min(timeout, hooks.Margin)
	if age > latest {
		r.running.Delete(storage)
		return engine.Reply{Err: tooLate(latest)}
	}
	inTime, cancel := context.WithTimeout(ctx, timeout-age)
	defer cancel()
	answer := make(chan engine.Reply, 1)
	go func() {
		got := engine.Reply{Err: errNoAnswer}
		defer func() {
			if panicked := recover(); panicked != nil {
				got.Err = fmt.Errorf("the hook panicked: %v", panicked)
			}
			r.running.Delete(storage) // before the answer, for the next call may come as soon as that is there
			answer <- got
		}()
		if ctx.Err() != nil {
			got.Err = context.Cause(ctx)
			return
		}
		if since.now() > latest { // once more, for nothing comes between this and the call
			got.Err = tooLate(latest)
			return
		}
		got = replyOf(call(inTime))
	}()
	got := await(inTime, answer, timeout, since)
	if got.Err != nil && ctx.Err() != nil { // the hook did not fail: the caller of Sync has stopped waiting
		got.Err = &hooks.Error{Meaning: hooks.InProgress, Err: ctx.Err()}
	}
	return got
}

// await returns the answer, or an error once the context has ended or the time is over. A context's own clock stands still while
// the machine is suspended, so that the age is looked at as well, every second: the caller then ends the context.
func await(inTime context.Context, answer <-chan engine.Reply, timeout time.Duration, since Elapsed) engine.Reply {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case got := <-answer:
			return got
		case <-inTime.Done():
			return engine.Reply{Err: fmt.Errorf("no answer within %s: %w", timeout, inTime.Err())}
		case <-look.C:
			if since.now() >= timeout {
				return engine.Reply{Err: fmt.Errorf("no answer within %s: %w", timeout, context.DeadlineExceeded)}
			}
		}
	}
}

// Elapsed returns how old the evidence for a call is; nil if it needs none.
type Elapsed func() time.Duration

func (e Elapsed) now() time.Duration {
	if e == nil {
		return 0
	}
	return e()
}

var errNoAnswer = errors.New("the hook ended its goroutine") // as runtime.Goexit does

// tooLate does not say how late, or it would be told anew each time (N).
func tooLate(latest time.Duration) error {
	return &hooks.Error{Meaning: hooks.TooLate, Err: fmt.Errorf("the hook was not called, for more than %s had passed since the call was announced or what it relies on was read. "+
		"If that goes on, requests take too long: raise the limit of the controller's client (its QPS), or see why the API server is slow", latest)}
}

// hookCall is a hook with its arguments.
type hookCall func(context.Context) (*corev1.PersistentVolume, error)

// callFor returns what to call for the action, with copies of the objects in it; nil if nothing is registered.
func callFor(h hooks.Set, action decision.Action) hookCall {
	switch action.Kind {
	case decision.RunProvisioner:
		if hook := h.Provisioners[action.Hook]; hook != nil {
			request := action.Request.DeepCopy()
			return func(ctx context.Context) (*corev1.PersistentVolume, error) { return hook.Provision(ctx, request) }
		}
	case decision.RunDeleter:
		registered := h.SourceDeleters
		if action.Volume.Annotations[phase.ProvisionedByAnnotation] != "" {
			registered = h.Deleters
		}
		if hook := registered[action.Hook]; hook != nil {
			return on(action, hook.Delete)
		}
	case decision.RunRecycler:
		if hook := h.Recyclers[action.Hook]; hook != nil {
			return on(action, hook.Recycle)
		}
	}
	return nil
}

func on(action decision.Action, hook func(context.Context, hooks.ReclaimRequest) error) hookCall {
	request := hooks.ReclaimRequest{Volume: action.Volume.DeepCopy(), Token: action.Token}
	return func(ctx context.Context) (*corev1.PersistentVolume, error) { return nil, hook(ctx, request) }
}

func replyOf(volume *corev1.PersistentVolume, err error) engine.Reply {
	if volume == nil {
		return engine.Reply{Err: err} // and not an object that is a nil pointer
	}
	return engine.Reply{Object: volume, Err: err}
}
