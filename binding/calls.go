package binding

import (
	"context"
	"errors"
	"sync"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/obj"
)

// calls are the writes, and the calls of deleters and recyclers, that were decided on and are not over. The zero value is ready for use.
type calls struct {
	mu       sync.Mutex
	open     map[*call]struct{}
	byOthers map[*call]struct{} // those of them that were decided by another object
}

// call is a write, or a call of a deleter or recycler. It can end before it is made, too.
type call struct {
	by     obj.Key    // what a write was decided by that is to another object, and carries that one's version alone; none for most
	known  obj.Object // it, as it was known then
	ended  error
	cancel context.CancelCauseFunc // nil until it is made
}

// errDecidedBefore is of a write that lets a claim go, and that the server has not answered when the claim's volume is changed.
var errDecidedBefore = errors.New("the volume of the claim was changed before the server has answered the write")

// add adds the call by which an action is performed; nil for any other action. It belongs to the same critical section as the decision: what is learned after
// that ends the call.
func (c *calls) add(action decision.Action, state *engine.State) *call {
	if !action.Writes() && action.Kind != decision.RunDeleter && action.Kind != decision.RunRecycler { // what a provisioner makes destroys nothing
		return nil
	}
	added := &call{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open, c.byOthers = map[*call]struct{}{}, map[*call]struct{}{}
	}
	c.open[added] = struct{}{}
	if action.Kind == decision.UpdateClaim && action.Claim.DeletionTimestamp != nil { // which may be what lets it go (F2, P2)
		added.by = obj.NamedVolume(action.Claim)
		added.known = state.Known(added.by)
		c.byOthers[added] = struct{}{}
	}
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
	delete(c.open, over)
	delete(c.byOthers, over)
	if over.cancel != nil {
		over.cancel(nil)
	}
}

// endAll ends all calls. When it returns their contexts have ended.
func (c *calls) endAll(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for open := range c.open {
		open.end(cause)
	}
}

// endOutdated ends the writes that were decided by an object which is known to have changed since, to be gone, or to be there.
func (c *calls) endOutdated(state *engine.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for open := range c.byOthers {
		if open.known == nil && state.Known(open.by) != nil || open.known != nil && !state.Knows(open.known) {
			open.end(errDecidedBefore)
		}
	}
}

func (c *call) end(cause error) {
	if c.ended != nil {
		return
	}
	if c.ended = cause; c.cancel != nil {
		c.cancel(cause)
	}
}
