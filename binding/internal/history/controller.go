package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/internal/hookrun"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// Controller is one of the controllers of a history: the engine of a real one, what it has been told, and what is due.
type Controller struct {
	Name     string
	Rules    decision.Options
	client   *bindingtest.Client
	Hooks    hooks.Set
	runner   hookrun.Runner
	fault    Fault // of the next call
	State    *engine.State
	Watches  []*bindingtest.Watch
	Queue    []obj.Key
	waiting  []obj.Key // for another to have done what it announced
	Failed   []obj.Key // to be tried again
	Running  map[obj.Key]*runningSync
	wrote    map[obj.Key]obj.Object // the newest reply to a write of its own
	inDoubt  map[obj.Key]bool       // writes that were lost, or whose outcome is unknown
	liedTo   map[obj.Key]bool       // the last read of it was told a lie
	events   int
	restarts int
	now      func() time.Time

	cache     map[obj.Key]obj.Object // what its informers have
	resyncDue bool                   // the server was restored, and its caches were not compared since
	relisted  bool                   // an informer has listed anew, and what is known from a reply alone was not read since
	unnoticed bool                   // the server was restored, and it does not know
	restores  int                    // how often it has noticed that
	unread    map[obj.Key]bool       // what it knew then and has not read since
}

// runningSync is a sync under way: what it asked for, and what came of it once that is known.
type runningSync struct {
	Action decision.Action
	Reply  *engine.Reply    // nil until it is there
	reads  []obj.Key        // since its last write
	proof  hookrun.Evidence // what its next call of a deleter or recycler relies on
	failed bool             // a hook did, or what answered was behind: it is to be tried again

	restores       int // how often its controller had noticed a restore when it was asked
	serverRestores int // how often there was one
	evidence       int // how often there had been one when the first of reads was made
}

// Restart replaces the engine of a controller by one that remembers nothing, which will be told of all objects anew.
func (h *History) Restart(c *Controller) {
	h.forget()
	c.restarts++
	rules := c.Rules
	rules.Identity = fmt.Sprintf("%s-%d", c.Name, c.restarts)
	c.State, c.Queue, c.Failed, c.waiting, c.Watches = engine.New(rules, 10), nil, nil, nil, nil
	c.State.SetTime(h.Server.Now())
	c.Running, c.wrote, c.inDoubt = map[obj.Key]*runningSync{}, map[obj.Key]obj.Object{}, map[obj.Key]bool{}
	c.liedTo = map[obj.Key]bool{}
	c.cache, c.unread, c.resyncDue, c.relisted = map[obj.Key]obj.Object{}, map[obj.Key]bool{}, false, false
	c.unnoticed = false
	for _, kind := range bindingtest.Kinds() {
		c.Watches = append(c.Watches, h.Server.Watch(kind))
	}
}

// observe tells the controller of a change, as clientgo's Runner does: of what is never read live, an informer has the newest.
func (c *Controller) observe(change bindingtest.Change) {
	key, _ := bindingtest.KeyOf(change.Object)
	switch {
	case change.Type == bindingtest.Deleted:
		delete(c.cache, key)
		c.Enqueue(c.timed().ObserveDeleted(change.Object))
		return
	case key.Kind == obj.KindVolume || key.Kind == obj.KindClaim:
		c.Enqueue(c.timed().Observe(change.Object))
	default:
		c.Enqueue(c.timed().Recheck(change.Object))
	}
	c.cache[key] = change.Object
}

// learn keeps the replies that the controller gets, to judge its next decisions by.
func (h *History) learn(c *Controller, running *runningSync) {
	target, err := running.Action.Target(), running.Reply.Err
	running.failed = running.failed || err != nil && (running.Action.RunsHook() || running.Action.Kind == decision.CreateVolume || obj.AbsentAsOf(err) != "")
	switch {
	case running.Action.RunsHook():
		return
	case !running.Action.Writes():
		if err == nil || obj.IsAbsent(err, target) {
			if len(running.reads) == 0 {
				running.evidence = running.serverRestores
			}
			running.reads = append(running.reads, target)
			delete(c.inDoubt, target)
		}
		c.learnAfterRestore(running)
		return
	case err == nil && running.Action.Kind == decision.DeleteVolume:
		c.inDoubt[target] = true // its finalizers may keep it
	case err == nil && running.serverRestores == h.restores: // else it is of a server that there is no more
		c.wrote[target] = running.Reply.Object
	case err == nil:
	case !apierrors.IsForbidden(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsInvalid(err):
		c.inDoubt[target] = true
	}
	running.reads = nil
}

// perform makes the call of a step. The faults of a hook happen here, those of any other call in the client.
func (c *Controller) perform(running *runningSync) engine.Reply {
	action := running.Action
	running.proof.Note(action, c.now())
	if !action.RunsHook() {
		return testkit.Perform(c.client, action)
	}
	suffered := c.fault
	c.fault = noFault
	switch suffered {
	case Fails:
		return engine.Reply{Err: testkit.ErrConnection}
	case GoesOn:
		return engine.Reply{Err: &hooks.Error{Meaning: hooks.InProgress}}
	}
	got := c.runner.Run(context.Background(), c.Hooks, action, running.proof.Age(action, c.now))
	if suffered == LosesAnswer {
		return engine.Reply{Err: testkit.ErrConnection}
	}
	return got
}

// timed sets the time in the engine's state, and returns that.
func (c *Controller) timed() *engine.State {
	c.State.SetTime(c.now())
	return c.State
}

// Enqueue adds keys to those that are to be synced, none twice.
func (c *Controller) Enqueue(keys []obj.Key) {
	for _, key := range keys {
		if !slices.Contains(c.Queue, key) {
			c.Queue = append(c.Queue, key)
		}
	}
}

// choices returns the keys that a step can be taken for, in order.
func (c *Controller) choices() []obj.Key {
	keys := slices.Collect(maps.Keys(c.Running))
	for _, key := range c.Queue {
		if c.Running[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareByText)
	return keys
}

func compareByText(a, b obj.Key) int {
	return slices.Compare([]byte(a.String()), []byte(b.String()))
}
