package clientgo

import (
	"context"
	"errors"
	"slices"
	"time"
)

// errStopped is for informers that others have stopped: without them nobody would tell the crew of anything any more.
var errStopped = errors.New("somebody has stopped them")

// stoppedWithin is how soon it is noticed that informers have stopped, of which they tell nobody.
const stoppedWithin = time.Second

// informed is a context that ends with the given one, or once informers of others have stopped. The function ends it.
func (w *watch) informed(ctx context.Context) (context.Context, func()) {
	informed, end := context.WithCancelCause(ctx)
	if !w.own {
		go func() {
			if w.stopped(informed) {
				end(errStopped)
			}
		}()
	}
	return informed, func() { end(nil) }
}

// stopped waits until an informer has stopped; false if the context ended before.
func (w *watch) stopped(ctx context.Context) bool {
	ticker := time.NewTicker(stoppedWithin)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if slices.ContainsFunc(w.handlers, func(h handler) bool { return h.informer.IsStopped() }) {
				return ctx.Err() == nil
			}
		}
	}
}
