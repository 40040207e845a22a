package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/internal/judge"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// History is a run of controllers on a server, one step at a time. Between any two steps of a controller anything else may
// happen. A random history is decided by its seed; a directed one does what its caller says.
type History struct {
	*rand.Rand
	extent
	Server      *bindingtest.Server
	Controllers []*Controller
	Late        []*bindingtest.Call // writes whose sender has given up, and which may still arrive
	Judged      int                 // calls of the server that were judged, or are not to be
	Broken      []string            // the rules that did not hold, and how

	backup   *bindingtest.Server // nil: none was made, or it was restored
	backedUp bool
	restores int
	lost     int // how many volumes a restore took from a claim, as all controllers knew
	// outrun: the server was restored after the reads on which the write at hand was decided. No controller can notice that.
	// outrunLate has the late writes of which that is true.
	outrun     bool
	outrunLate map[*bindingtest.Call]bool

	// followsData: whoever writes, and is no controller, is called people. Then data says whose data is on each volume.
	followsData bool
	data        map[string]judge.Data
	heirs       map[string]obj.Key // of volumes that a restore took from a claim, as all controllers know: whose data is on them
	// overtaken has the claims that a controller has bound to a volume which a restore, that it has not noticed, had taken from them (W8).
	overtaken map[types.UID]bool
	// handed has the claims that people have written into a claimRef: the volume may be bound to one, as its cache has it, after they have taken it back.
	handed map[holding]bool
	// madeAgain has the claims of volumes that somebody has removed, and perhaps made again, as all controllers know: whose data is on them.
	madeAgain map[string]types.UID
	// misgiven has those among them that all controllers knew to be Bound, of volumes that were made again with the UID of a claim that is not there.
	misgiven  map[string]types.UID
	hadBy     map[holding]bool // which claims each volume was given to
	handedOut []handedOut
	log       []string // what happened, a line each
}

// extent is the size of a history: the number of names that volumes, claims and pods can have, how many steps there are
// between two times that all settles, and after how many a run counts as endless.
type extent struct{ volumes, claims, pods, steps, endless int }

var (
	small = extent{volumes: 4, claims: 4, pods: 4, steps: 80, endless: 4000}
	large = extent{volumes: 50, claims: 50, pods: 20, steps: 2500, endless: 60_000}
)

// handedOut is an object that was handed to a controller, and what it looked like then (X6).
type handedOut struct{ object, copy obj.Object }

// Fault is what happens to a call of a controller.
type Fault string

const (
	noFault           Fault = ""
	Conflicts         Fault = "conflicts"
	forbids           Fault = "refuses"
	Fails             Fault = "fails"         // it never arrived
	LosesAnswer       Fault = "loses answer"  // it arrived
	isSentTwice       Fault = "is sent twice" // by a proxy, which returns the second answer
	ArrivesLate       Fault = "arrives late"  // it arrives some time, or never
	GoesOn            Fault = "goes on"       // a hook has begun, and is not done
	throttles         Fault = "is throttled"
	SaysNotFound      Fault = "is told NotFound"
	SaysProxyNotFound Fault = "is told NotFound by a proxy"
	SaysOldNotFound   Fault = "is told NotFound, as of before all" // by what keeps old replies
	AnswersBare       Fault = "is answered with bare metadata"
	AnswersAsKnown    Fault = "is answered as known" // by what keeps old replies, after a reply that says otherwise
)

var faults = []Fault{Conflicts, forbids, Fails, LosesAnswer, isSentTwice, ArrivesLate, throttles, SaysNotFound, SaysProxyNotFound, SaysOldNotFound, AnswersBare, AnswersAsKnown}

// Directed returns a history on the server in which nothing is random. Its caller adds the controllers and takes each step.
func Directed(server *bindingtest.Server) *History {
	return &History{Rand: rand.New(rand.NewPCG(0, 0)), extent: small, Server: server}
}

// newRandom returns a history on a new server with one or two controllers. The source decides all that happens.
func newRandom(source rand.Source, of extent) *History {
	h := &History{Rand: rand.New(source), extent: of, Server: bindingtest.NewServer()}
	_, _ = h.Server.Create(context.Background(), bindingtest.Node("first", "zone")) // at resourceVersion 1, before all claims
	rules := decision.Options{Protection: decision.ProtectionOff}
	if h.oneIn(2) {
		rules.Protection = decision.ProtectionOn
	}
	for i := range 1 + h.IntN(2) {
		h.Add(&Controller{Name: fmt.Sprintf("controller-%d", i), Rules: rules})
	}
	return h
}

// Add starts a controller with this name, these rules and these hooks.
func (h *History) Add(c *Controller) {
	c.client, c.now = h.Server.NewClient(c.Name), h.Server.Now
	c.client.Use(func(call *bindingtest.Call, do func() error) error { return h.suffer(c, call, do) })
	h.Controllers = append(h.Controllers, c)
	h.Restart(c)
}

// oneIn reports true once in n times.
func (h *History) oneIn(n int) bool { return h.IntN(n) == 0 }

func (h *History) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *History) suffer(c *Controller, call *bindingtest.Call, do func() error) error {
	suffered := c.fault
	c.fault = noFault
	resource := schema.GroupResource{Resource: "things"}
	switch suffered {
	case Conflicts:
		if call.Writes() {
			return apierrors.NewConflict(resource, call.Key.Name, testkit.ErrConnection)
		}
	case forbids:
		return apierrors.NewForbidden(resource, call.Key.Name, testkit.ErrConnection)
	case throttles:
		return apierrors.NewTooManyRequests("later", 1)
	case Fails:
		return testkit.ErrConnection
	case LosesAnswer:
		_ = do()
		return testkit.ErrConnection
	case isSentTwice:
		if call.Writes() {
			_ = do()
		}
	case ArrivesLate:
		if call.Writes() {
			h.Late = append(h.Late, call)
			if h.outrun {
				zeromap.Put(&h.outrunLate, call, true)
			}
		}
		return testkit.ErrConnection
	case SaysNotFound:
		if call.Verb == bindingtest.VerbGet && !c.liedTo[call.Key] { // nothing survives a server that lies again and again
			c.liedTo[call.Key] = true
			return testkit.NotFoundError(call.Key)
		}
	case SaysProxyNotFound:
		return testkit.ProxyError(call.Key)
	case SaysOldNotFound:
		if call.Verb == bindingtest.VerbGet && (call.Key.Kind == obj.KindClaim || call.Key.Kind == obj.KindVolume) {
			return testkit.AbsentAsOf(call.Key, "1")
		}
	case AnswersBare: // it arrived, and nobody can tell
		if call.Key.Kind == obj.KindVolume || call.Key.Kind == obj.KindClaim {
			return bindingtest.Answer(1, func(*bindingtest.Call) bool { return true }, testkit.BareObject(call.Key))(call, do)
		}
	case AnswersAsKnown:
		if known := c.State.Known(call.Key); call.Verb == bindingtest.VerbGet && known != nil && c.State.Disputed(call.Key) {
			return bindingtest.Answer(1, func(*bindingtest.Call) bool { return true }, known)(call, do)
		}
	}
	delete(c.liedTo, call.Key)
	return do()
}

// step lets something happen: to a controller most of the time.
func (h *History) step() {
	c := h.Controllers[h.IntN(len(h.Controllers))]
	switch h.IntN(12) {
	case 0, 1, 2:
		h.people()
	case 3, 4, 5:
		h.Deliver(c, c.Watches[h.IntN(len(c.Watches))])
	case 6:
		h.arrive()
	case 7:
		if h.oneIn(6) {
			h.note("%s restarts", c.Name)
			h.Restart(c)
			h.list(c)
		} else if h.oneIn(6) {
			h.travel(c)
		} else if h.oneIn(3) {
			h.relist(c, h.IntN(len(c.Watches)))
		}
	default:
		if keys := c.choices(); len(keys) > 0 {
			h.Work(c, keys[h.IntN(len(keys))], h.randomFault())
		}
	}
}

func (h *History) randomFault() Fault {
	if h.oneIn(8) {
		return faults[h.IntN(len(faults))]
	}
	return noFault
}

// list tells a controller that begins of all claims that there are, as a driver has to before the first sync: who is Bound to a
// volume without claimRef, nothing else says (M2).
func (h *History) list(c *Controller) {
	claims := c.Watches[slices.Index(bindingtest.Kinds(), obj.KindClaim)]
	for range claims.Pending() {
		h.Deliver(c, claims)
	}
}

// relist lets one of a controller's informers list anew, as after a watch that was cut off for long: what came in between it never sees, and of what
// went it has the last version that it knew.
func (h *History) relist(c *Controller, watch int) {
	kind := bindingtest.Kinds()[watch]
	c.Watches[watch] = h.Server.Watch(kind)
	for _, key := range slices.SortedFunc(maps.Keys(c.cache), compareByText) {
		if key.Kind != kind {
			continue
		}
		if _, err := h.Server.Get(context.Background(), key); err != nil {
			c.observe(bindingtest.Change{Type: bindingtest.Deleted, Object: c.cache[key]})
		}
	}
	c.relisted = true
	h.note("%s lists %s anew", c.Name, kind)
}

// arrive lets a late write reach the server, or get lost.
func (h *History) arrive() {
	if len(h.Late) == 0 {
		return
	}
	call := h.Late[0]
	h.Late = h.Late[1:]
	if h.oneIn(3) {
		return
	}
	if call.Subresource == bindingtest.Status {
		_, err := h.Server.UpdateStatus(context.Background(), call.Sent)
		h.note("late: update status %s: %v", call.Key, err)
	} else {
		_, err := h.Server.Update(context.Background(), call.Sent)
		h.note("late: update %s: %v", call.Key, err)
	}
	h.outrun = h.outrunLate[call]
	h.judgeCalls("late")
	h.outrun = false
}

// Deliver lets a controller observe the next change of a watch, and reports whether there was one.
func (h *History) Deliver(c *Controller, watch *bindingtest.Watch) bool {
	change, ok := watch.Next()
	if !ok {
		return false
	}
	h.keepCopy(change.Object)
	c.observe(change)
	return true
}

func (h *History) keepCopy(object obj.Object) {
	if object != nil && !reflect.ValueOf(object).IsNil() {
		h.handedOut = append(h.handedOut, handedOut{object, object.DeepCopyObject().(obj.Object)})
	}
}

// Work takes the next step of a sync: begins it, makes its call, or has it go on with what came of that.
func (h *History) Work(c *Controller, key obj.Key, suffers Fault) {
	running := c.Running[key]
	switch {
	case running == nil:
		c.Queue = slices.DeleteFunc(c.Queue, func(queued obj.Key) bool { return queued == key })
		h.note("%s syncs %s", c.Name, key)
		h.proceed(c, key, c.timed().Start(key))
	case running.Reply == nil:
		c.fault, running.restores, running.serverRestores = suffers, c.restores, h.restores
		h.outrun = len(running.reads) > 0 && running.evidence != h.restores
		reply := c.perform(running)
		running.Reply = &reply
		h.note("%s: %s %s", c.Name, running.Action, suffers)
		h.keepCopy(running.Reply.Object)
		h.judgeCalls(c.Name)
		h.outrun = false
	default:
		h.note("%s hears of %s", c.Name, key)
		h.learn(c, running)
		h.proceed(c, key, c.timed().Proceed(key, *running.Reply))
	}
}

func (h *History) proceed(c *Controller, key obj.Key, step engine.Step) {
	before := c.Running[key]
	if before == nil {
		before = &runningSync{}
	}
	delete(c.Running, key)
	for _, event := range step.Publish {
		c.events++
		h.note("%s: event %s", c.Name, event)
	}
	if !step.Done {
		h.judgeDecision(c, step.Action, before.reads)
		c.Running[key] = &runningSync{Action: step.Action, reads: before.reads, failed: before.failed, proof: before.proof, evidence: before.evidence}
		return
	}
	if step.Err != nil {
		h.note("%s: %s fails: %v", c.Name, key, step.Err)
	}
	if errors.Is(step.Err, engine.ErrWentBack) {
		c.mustReread(before.Action.Target())
	}
	if step.After > 0 && (before.failed || step.Err != nil) {
		c.Failed = append(c.Failed, key)
	} else if step.After > 0 && (c.timed().AwaitsCalls() || slices.ContainsFunc(c.State.Objects(), func(o obj.Object) bool { return c.State.Awaits(judge.KeyOf(o)) })) {
		c.waiting = append(c.waiting, key)
	}
	for i, next := range step.Next {
		if slices.Contains(step.Next[:i], next) {
			h.Broke("W: %s is to be synced twice", next)
		}
	}
	c.Enqueue(step.Next) // none twice
}

// Settle lets the controllers finish, without faults and without people. It reports whether there was an end.
func (h *History) Settle() bool {
	h.note("settle")
	for len(h.Late) > 0 {
		h.arrive()
	}
	for step := range h.endless {
		for step == h.endless/2 && h.resync() { // until then one that has not noticed a restore may contradict the other without end
		}
		if !h.busy() {
			return true
		}
	}
	return false
}

// busy takes one step that is to be taken, and reports whether there was one.
func (h *History) busy() bool {
	for _, c := range h.Controllers {
		for _, watch := range c.Watches {
			if h.Deliver(c, watch) {
				return true
			}
		}
	}
	for _, c := range h.Controllers {
		if keys := c.choices(); len(keys) > 0 {
			h.Work(c, keys[h.IntN(len(keys))], noFault)
			return true
		}
		if len(c.Failed) > 0 {
			c.Enqueue(c.Failed)
			c.Failed = nil
			return true
		}
	}
	return h.resync() || h.outwait()
}

// outwait lets the time pass for which controllers wait that have seen another's announcement, or have noticed a restore, once
// nothing else is to be done. It reports whether there was one.
func (h *History) outwait() (any bool) {
	for _, c := range h.Controllers {
		if len(c.waiting) == 0 {
			continue
		}
		for _, object := range c.timed().Objects() {
			c.State.Outwait(judge.KeyOf(object))
		}
		c.State.OutwaitCalls()
		c.Enqueue(c.waiting)
		c.waiting, any = nil, true
	}
	return any
}
