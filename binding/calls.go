package binding

import (
	"context"
	"sync"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// calls are the writes, and the calls of deleters and recyclers, that were decided on and are not over. The zero value is ready for use.
type calls struct {
	mu   sync.Mutex
	open map[*call]struct{}
}

// call is a write, or a call of a deleter or recycler. It can end before it is made, too.
type call struct {
	by     obj.Key // what a write was decided by that is to another object, and carries that one's version alone
	ended  error
	cancel context.CancelCauseFunc // nil until it is made
}

// add adds the call by which an action is performed; nil for any other action. It belongs to the same critical section as the decision: what is learned after
// that ends the call.
func (c *calls) add(action decision.Action) *call {
	if !action.Writes() && action.Kind != decision.RunDeleter && action.Kind != decision.RunRecycler { // what a provisioner makes destroys nothing
		return nil
	}
	added := &call{}
	if action.Kind == decision.UpdateClaim && action.Claim.DeletionTimestamp != nil { // which may be what lets it go (F2, P2)
		added.by = obj.NamedVolume(action.Claim)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*call]struct{}{}
	}
	c.open[added] = struct{}{}
	return added
}

// context returns the context in which a call is made. If the call has ended, so has that.
func (c *calls) context(ctx context.Context, made *call) context.Context {
	if made == nil {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if made.cancel = cancel; made.ended != nil {
		cancel(made.ended)
	}
	return ctx
}

// remove removes a call that is over.
func (c *calls) remove(over *call) {
	if over == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.open, over); over.cancel != nil {
		over.cancel(nil)
	}
}

// endAll ends all calls. When it returns their contexts have ended.
func (c *calls) endAll(cause error) { c.end(cause, func(*call) bool { return true }) }

// endBy ends the writes that were decided by an object which has changed.
func (c *calls) endBy(changed obj.Key, cause error) {
	c.end(cause, func(open *call) bool { return open.by == changed })
}

func (c *calls) end(cause error, these func(*call) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for open := range c.open {
		if !these(open) || open.ended != nil {
			continue
		}
		if open.ended = cause; open.cancel != nil {
			open.cancel(cause)
		}
	}
}
