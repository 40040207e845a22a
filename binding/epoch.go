package binding

import (
	"context"
	"sync"

	"github.com/pvbind/pvbind/binding/obj"
)

// epoch is the time until it is noticed that the server went back. The contexts of the writes, and of the deleters and recyclers, that were
// decided on in it end with it (W8).
type epoch struct {
	mu    sync.Mutex
	over  bool
	calls map[*call]struct{}
}

// call is a write, or a call of a deleter or recycler.
type call struct {
	cancel context.CancelCauseFunc
	by     obj.Key // what a write was decided by that is to another object, and carries that one's version alone
}

// context returns the context of a call, and what to do after it. If the epoch is over, the context has ended.
func (e *epoch) context(ctx context.Context, by obj.Key) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	own := &call{cancel, by}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		cancel(ErrServerWentBack)
	}
	e.calls[own] = struct{}{}
	return ctx, func() {
		cancel(nil)
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.calls, own)
	}
}

// end ends the epoch. When it returns the contexts have ended.
func (e *epoch) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	for running := range e.calls {
		running.cancel(ErrServerWentBack)
	}
}

// endBy ends the contexts of the writes that were decided by an object which has changed.
func (e *epoch) endBy(changed obj.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for running := range e.calls {
		if running.by == changed {
			running.cancel(errDecidedBefore)
		}
	}
}

func newEpoch() *epoch { return &epoch{calls: map[*call]struct{}{}} }
