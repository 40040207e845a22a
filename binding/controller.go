package binding

import (
	"context"
	"errors"
	"sync"

	"github.com/pvbind/pvbind/binding/obj"
)

// Controller runs the decisions against an API server: it keeps what it was told of the cluster, and
// makes one write after another. It has no queue, no clock and no goroutine but for a hook that runs. Whoever drives it (an
// adapter, a reconciler, a test) tells it what changed with Observe and ObserveDeleted and calls Sync
// with the keys that these and Sync itself return.
//
// Set Client and use it; the other fields have useful zero values. None may be changed once it is in
// use. All methods may be called from any number of goroutines.
type Controller struct {
	// Client is the API server.
	Client Client
	// Recorder publishes events; nil: they are dropped.
	Recorder Recorder
	// Rules are what an administrator has decided.
	Rules Rules
	// Hooks make, delete and scrub storage; without any, that is left to others.
	Hooks Hooks

	mu     sync.Mutex
	state  state
	runner hookRunner
	lists  listReads
}

// Observe tells of an object as it was created or changed, and returns the keys to sync for it, none
// twice. What is older than what is known already is ignored, and so are kinds that decisions do not
// depend on. The object is kept and must not be modified any more.
func (c *Controller) Observe(object obj.Object) []obj.Key {
	defer c.lock().Unlock()
	return c.state.observe(object)
}

// ObserveDeleted tells that an object is gone, with its last known state, and returns the keys to sync.
func (c *Controller) ObserveDeleted(object obj.Object) []obj.Key {
	defer c.lock().Unlock()
	return c.state.observeDeleted(object)
}

// Recheck tells what a cache has of an object long after it told of it, as at a resync, and returns the keys to sync: that
// of a claim or volume among them, though nothing is new. If a later version is known of it, or it is taken for gone, then
// cache or Controller is wrong, as after a restore of etcd from a backup: the next Sync reads the object from the server
// before it decides anything. Classes, pods and attachments are known from caches alone; what the cache has of one
// replaces what is known. The object is kept and must not be modified any more.
func (c *Controller) Recheck(object obj.Object) []obj.Key {
	defer c.lock().Unlock()
	return c.state.recheck(object)
}

// Sync takes one claim or volume as far as it goes: it decides, writes, and decides again on the
// server's reply, until there is nothing to do but wait. Where another Sync is at work on the same
// claim, volume or pair, it leaves a note and returns at once; that Sync then goes round again or
// returns the key.
//
// The result says what to sync next, and after which delay to come back to this key; both hold beside an
// error too. An error names what failed; the delay beside it grows with each failure in a row, and is zero
// where only a change of the object can help (*InvalidError).
func (c *Controller) Sync(ctx context.Context, key obj.Key) (Result, error) {
	call := c.start(key)
	for {
		c.publish(key, call)
		if call.done {
			return call.result, call.err
		}
		call = c.perform(ctx, key, call.action)
	}
}

// perform does what a step asks for, and takes the next. If the client panics, what the sync has in its
// hands is let go first, as after a write of unknown outcome.
func (c *Controller) perform(ctx context.Context, key obj.Key, action Action) call {
	got := reply{err: errPanicked}
	defer func() {
		if got.err == errPanicked {
			c.proceed(key, got)
		}
	}()
	switch {
	case action.RunsHook():
		got = c.runner.run(ctx, c.Hooks, action)
	case action.Kind == Read && action.Key.IsList():
		got = c.lists.read(ctx, action.Key, func() reply { return perform(ctx, c.Client, action) })
	default:
		got = perform(ctx, c.Client, action)
	}
	return c.proceed(key, got)
}

var errPanicked = errors.New("the client or the recorder panicked")

func (c *Controller) start(key obj.Key) call {
	defer c.lock().Unlock()
	return c.state.start(key)
}

func (c *Controller) proceed(key obj.Key, got reply) call {
	defer c.lock().Unlock()
	return c.state.proceed(key, got)
}

// lock locks the state and readies it on first use.
func (c *Controller) lock() *sync.Mutex {
	c.mu.Lock()
	if c.state.index == nil {
		rules := c.Rules
		rules.Hooks = c.Hooks.names()
		c.state = newState(rules)
		c.state.slots.limit = c.Hooks.AtOnce
	}
	return &c.mu
}

// publish publishes the events of a step. If the recorder panics, the sync ends as it does if the client panics.
func (c *Controller) publish(key obj.Key, step call) {
	if c.Recorder == nil {
		return
	}
	published := false
	defer func() {
		for !published && !step.done {
			step = c.proceed(key, reply{err: errPanicked})
		}
	}()
	for _, event := range step.publish {
		c.Recorder.Record(event)
	}
	published = true
}
