package binding

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/internal/hookrun"
	"github.com/pvbind/pvbind/binding/obj"
)

// Controller carries out decisions on an API server: it remembers the objects of the cluster, and makes one write after
// another. It has no queue, no clock and no goroutine but for a hook that runs. Its driver (an adapter, a reconciler, a
// test) calls Observe and ObserveDeleted with what changed, and Sync with the keys that these and Sync itself return.
//
// Set Client and use it; the other fields have useful zero values. None may be changed once it is in
// use. All methods may be called from any number of goroutines.
type Controller struct {
	// Client is the API server.
	Client Client
	// Recorder publishes events; nil drops them.
	Recorder Recorder
	// Options are what an administrator has decided on.
	Options decision.Options
	// Hooks provision, delete and scrub storage; without any, that is left to others.
	Hooks hooks.Set
	// Workers bounds how many Syncs work at once; zero is no bound. A namespace gets one more only while it has fewer than are
	// free, half of all if it is alone, so that a tenant whose objects are slow to sync leaves workers for others; and the
	// namespaces that wait are served in turn. One more returns at once, as one that waits for another Sync. The driver calls
	// Sync from one goroutine more than that, so that whoever comes is in the turn at once, and not behind all that is in the
	// driver's own queue (W9).
	Workers int
	// Now returns the time; nil is time.Now. It must not go back, as time.Now does not by its monotonic reading: by it is
	// measured how long another Controller may be at work on storage (R8).
	Now func() time.Time

	mu     sync.Mutex
	state  *engine.State
	calls  calls
	runner hookrun.Runner
	lists  listReads
}

// Observe stores an object that was created or changed, and returns the keys to sync for it, none twice. It ignores a
// version that is older than what is stored already, and kinds that decisions do not depend on. The object must not be
// modified any more.
func (c *Controller) Observe(object obj.Object) []obj.Key {
	follow(c.Client, object)
	return c.tell(object, (*engine.State).ObserveParsed)
}

// ObserveDeleted forgets an object that is gone, and returns the keys to sync for that. Of the object only key and UID
// matter.
func (c *Controller) ObserveDeleted(object obj.Object) []obj.Key {
	return c.tellLocked(func() (woken, rest []obj.Key) { return c.state.ForgetDeleted(object) })
}

// Recheck compares an object in a cache with what is known of it, as at a resync, and returns the keys to sync. For a
// claim or volume its own key is always among them. If the Controller knows a later version, or a deletion, then cache or
// Controller is wrong, as after a restore of etcd from a backup: the next Sync reads the object live first. Classes, pods and attachments are known from caches alone; the cache's version replaces what
// is known. The object must not be modified any more.
func (c *Controller) Recheck(object obj.Object) []obj.Key {
	return c.tell(object, (*engine.State).RecheckParsed)
}

// Knows reports whether a claim or a volume is known in the version in which a cache has it. If it is not, at a resync, Recheck has it
// read: one that was known to be gone may be there again, as after a restore of etcd, and no watch will tell of it once more. It costs less
// than Recheck, which has each object synced.
func (c *Controller) Knows(object obj.Object) bool {
	c.lockState()
	defer c.unlockState()
	return c.state.Knows(object)
}

// RecheckKnown compares what is known with what is in the caches, as at a resync, and returns the keys to sync, none twice. cached
// reports whether a cache has the object, by its UID; it is called without a lock, and returns true for a kind that is not watched. A
// claim or a volume that no cache has is known from a reply of the Client, and no watch will tell of its end, which it may have told of
// already, before an old reply has shown the object again: the next Sync reads it live first. Classes, pods and attachments are known
// from caches alone. One that no cache has is forgotten, as by ObserveDeleted: informers that replace others tell of no end that
// came before them.
func (c *Controller) RecheckKnown(cached func(obj.Object) bool) []obj.Key {
	missing := slices.DeleteFunc(c.known(), cached)
	keys, _ := c.locked(func() (woken, rest []obj.Key) { return c.state.RecheckMissing(missing), nil })
	for _, object := range missing {
		switch object.(type) {
		case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim: // that no cache has one is no proof that it is gone
		default:
			keys = append(keys, c.ObserveDeleted(object)...)
		}
	}
	return engine.Unique(keys)
}

func (c *Controller) known() []obj.Object {
	c.lockState()
	defer c.unlockState()
	return c.state.Objects()
}

// tell has the state take an object. What takes time in proportion to the object's size is done before the lock is taken (X9).
func (c *Controller) tell(object obj.Object, take func(*engine.State, engine.Parsed) (woken, rest []obj.Key)) []obj.Key {
	parsed := engine.Parse(object)
	return c.tellLocked(func() (woken, rest []obj.Key) { return take(c.state, parsed) })
}

// tellLocked has the state take what it is told under the lock, and returns the keys to sync for it. For a pod that names
// very many claims the lock is released again and again, so that others may have it.
func (c *Controller) tellLocked(take func() (woken, rest []obj.Key)) []obj.Key {
	woken, rest := c.locked(take)
	if len(rest) == 0 {
		return woken
	}
	for some := range slices.Chunk(rest, engine.MaxLinks) {
		more, _ := c.locked(func() (woken, rest []obj.Key) { return c.state.WokenByClaims(nil, some), nil })
		woken = append(woken, more...)
	}
	return engine.Unique(woken)
}

func (c *Controller) locked(do func() (woken, rest []obj.Key)) (woken, rest []obj.Key) {
	c.lockState()
	defer c.unlockState()
	return do()
}

// ObserveRestore notes that the server went back in time, as after a restore of etcd from a backup, and returns the keys of all
// claims and volumes that are known, to be synced. Each of these syncs begins with a live read. Until all are read, nothing is
// destroyed: no storage is deleted or scrubbed, no volume is Released or taken from a claim, and no finalizer removed from an
// object that is being deleted. All else goes on. The contexts of the deleters and recyclers that run end, and their answers are
// no success. Another controller may be in a call that it has announced and the server has lost: for Hooks.Timeout and hooks.Margin no
// hook is called, and what was announced before is given to nobody. Those syncs say when to run again.
//
// A driver calls it when a list has a resourceVersion below one that it has seen for that kind, once each time: an event tells of
// it. When a list of another kind shows the same shortly after that, it calls ObserveRestoreAgain. A Sync that notices it by itself
// returns ErrServerWentBack, and the same keys.
func (c *Controller) ObserveRestore() []obj.Key {
	c.lockState()
	defer c.unlockState()
	c.calls.endAll(ErrServerWentBack)
	return c.state.ObserveRestore()
}

// ObserveRestoreAgain does what ObserveRestore does, and returns the same keys, but no event tells of it: it is for a list that may
// show what was told already, and may show another restore, as where the first notice was an old reply of a proxy. What was read
// between the two is read again.
func (c *Controller) ObserveRestoreAgain() []obj.Key {
	c.lockState()
	defer c.unlockState()
	c.calls.endAll(ErrServerWentBack)
	return c.state.ObserveRestoreAgain()
}

// ErrServerWentBack is in the error of the Sync that noticed, by two live reads of an object, that the server went back in time.
// The Controller has done by then what ObserveRestore does.
var ErrServerWentBack = engine.ErrWentBack

// Sync reconciles one claim or volume: it decides, writes, and decides again on the server's reply, until there is nothing to
// do but wait. Where another Sync works on the same claim, volume or pair, or no worker is left for the namespace, it returns at
// once; that Sync, or one of those that work, then returns the key as one to sync next.
//
// The Result says what to sync next, and after which delay to sync this key again. It is valid even if an error is returned.
// The error names what failed. The delay grows with each failure in a row, and is zero where only a change of the object can
// help (*obj.InvalidError).
//
// A panic of the Client or the Recorder is an error of the sync too, as one of a hook is: who waits for the sync must be among
// the keys that it returns.
func (c *Controller) Sync(ctx context.Context, key obj.Key) (Result, error) {
	step, made := c.start(key)
	defer func() { // if a call has ended the goroutine, the sync unlocks its objects, as after a write of unknown outcome
		c.calls.remove(made)
		for !step.Done {
			step, made = c.proceed(key, engine.Reply{Err: errEnded})
			c.calls.remove(made)
		}
	}()
	var proof hookrun.Evidence
	var panicked error
	for {
		panicked = cmp.Or(panicked, c.publish(step.Publish))
		if step.Done {
			return Result{Next: step.Next, After: step.After}, cmp.Or(step.Err, panicked)
		}
		proof.Note(step.Action, c.now()) // before it is sent
		got := c.perform(c.calls.context(ctx, made), step.Action, proof)
		c.calls.remove(made)
		if errors.Is(got.Err, errPanicked) { // after which the sync may go on
			panicked = cmp.Or(panicked, got.Err)
		}
		step, made = c.proceed(key, got)
	}
}

var (
	errPanicked = errors.New("panicked")
	errOverdue  = errors.New("the server went back in time before it has answered the write")
	errEnded    = errors.New("the Client or the Recorder ended its goroutine") // as runtime.Goexit does
)

// publish has the recorder publish events, and returns the first of its panics.
func (c *Controller) publish(events []decision.Event) (err error) {
	if c.Recorder == nil {
		return nil
	}
	for _, event := range events {
		err = cmp.Or(err, c.record(event))
	}
	return err
}

func (c *Controller) record(event decision.Event) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the Recorder %w: %v", errPanicked, panicked)
		}
	}()
	c.Recorder.Record(event)
	return nil
}

// perform performs an action: with a hook, or else with the client. Its context is that of its call.
func (c *Controller) perform(ctx context.Context, action decision.Action, proof hookrun.Evidence) engine.Reply {
	switch {
	case action.RunsHook():
		return c.runner.Run(ctx, c.Hooks, action, proof.Age(action, c.now))
	case action.Writes():
		return c.write(ctx, action)
	case action.Kind == decision.Read && action.Key.IsList():
		return c.lists.read(ctx, action.Key, func() engine.Reply { return perform(ctx, c.Client, action).Parsed() })
	}
	return perform(ctx, c.Client, action).Parsed()
}

// write makes a write. Its context ends once it is noticed that the server went back, also before it is sent, as where it waits for the client's
// rate limit: a create needs no resourceVersion, and an object may have come to the same one again. So does that of a write which may let a claim go, once the claim's volume
// is seen to change: who removes its claimRef meanwhile is to see that written again before the claim goes (C11). It may have taken effect.
func (c *Controller) write(ctx context.Context, action decision.Action) engine.Reply {
	got := perform(ctx, c.Client, action).Parsed()
	switch cause := context.Cause(ctx); {
	case got.Err == nil:
	case errors.Is(cause, ErrServerWentBack):
		got.Err = errOverdue // and not the cause, by which this sync would be the one that has noticed it
	case errors.Is(cause, errDecidedBefore):
		got.Err = errDecidedBefore
	}
	return got
}

func (c *Controller) start(key obj.Key) (engine.Step, *call) {
	step, made := c.lockedStep(func() engine.Step { return c.state.StartDraft(key) })
	return step.Complete(), made
}

func (c *Controller) proceed(key obj.Key, got engine.Reply) (engine.Step, *call) {
	step, made := c.lockedStep(func() engine.Step { return c.state.ProceedDraft(key, got) })
	return step.Complete(), made
}

// lockedStep returns the next step of a sync, and the call that it makes.
func (c *Controller) lockedStep(do func() engine.Step) (engine.Step, *call) {
	c.lockState()
	defer c.unlockState()
	step := do()
	if errors.Is(step.Err, ErrServerWentBack) { // this sync has noticed it
		c.calls.endAll(ErrServerWentBack)
	}
	return step, c.calls.add(step.Action, c.state)
}

func (c *Controller) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// lockState locks the state, tells it the time, and makes it on first use.
func (c *Controller) lockState() {
	c.mu.Lock()
	if c.state == nil {
		options := c.Options
		options.Hooks, options.HookTimeout = c.Hooks.Names(), c.Hooks.Timeout
		options.Identity = cmp.Or(options.Identity, rand.Text())
		c.state = engine.New(options, cmp.Or(max(0, c.Hooks.MaxConcurrent), hooks.DefaultMaxConcurrent))
		c.state.ShareWorkers(c.Workers)
	}
	c.state.SetTime(c.now())
}

// unlockState ends the writes that were decided by what is known to be otherwise by now, and unlocks the state.
func (c *Controller) unlockState() {
	c.calls.endOutdated(c.state)
	c.mu.Unlock()
}

// Result is what the driver of a Controller does after a Sync.
type Result struct {
	// Next are the keys to sync next, in order; none twice.
	Next []obj.Key
	// After, if not zero, is how long to wait before the same key is synced again.
	After time.Duration
}
