package binding_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// history is a random one: people and one or two controllers at work on a server, step by step. Between any two
// steps of a controller anything else may happen. It is decided by its seed.
type history struct {
	*rand.Rand
	extent
	server  *bindingtest.Server
	members []*member
	late    []*bindingtest.Call // writes whose sender has given up, and which may still arrive
	seen    []witnessed
	calls   int // looked at
	path    []string
	broken  []string // rules, and how
}

// extent is how much there is in a history: the number of names that volumes, claims and pods can have, how much
// happens between two times that all settles, and how many steps are more than any end can take.
type extent struct{ volumes, claims, pods, steps, endless int }

var (
	small = extent{volumes: 4, claims: 4, pods: 4, steps: 80, endless: 4000}
	large = extent{volumes: 50, claims: 50, pods: 20, steps: 2500, endless: 60_000}
)

// witnessed is an object that was handed to a controller, and what it looked like then (X6).
type witnessed struct{ object, copy obj.Object }

// fault is what happens to a call.
type fault string

const (
	noFault   fault = ""
	conflicts fault = "conflicts"
	refuses   fault = "refuses"
	fails     fault = "fails"        // it never arrived
	loses     fault = "loses answer" // it arrived
	lags      fault = "arrives late" // it arrives some time, or never
	throttles fault = "is throttled"
	lies      fault = "is told NotFound"
	misleads  fault = "is told NotFound by a proxy"
)

var faults = []fault{conflicts, refuses, fails, loses, lags, throttles, lies, misleads}

func newHistory(source rand.Source, of extent) *history {
	h := &history{Rand: rand.New(source), extent: of, server: bindingtest.NewServer()}
	rules := binding.Rules{}
	if h.one(2) {
		rules.Protection = binding.ProtectionOn
	}
	for i := range 1 + h.IntN(2) {
		m := &member{name: fmt.Sprintf("controller-%d", i), rules: rules}
		m.client = h.server.NewClient(m.name)
		m.client.Use(func(call *bindingtest.Call, do func() error) error { return h.suffer(m, call, do) })
		h.members = append(h.members, m)
		h.restart(m)
	}
	return h
}

// one is true once in n times.
func (h *history) one(n int) bool { return h.IntN(n) == 0 }

func (h *history) note(format string, args ...any) {
	h.path = append(h.path, fmt.Sprintf(format, args...))
}

var errConnection = errors.New("connection lost")

func (h *history) suffer(m *member, call *bindingtest.Call, do func() error) error {
	suffered := m.fault
	m.fault = noFault
	resource := schema.GroupResource{Resource: "things"}
	switch suffered {
	case conflicts:
		if call.Writes() {
			return apierrors.NewConflict(resource, call.Key.Name, errConnection)
		}
	case refuses:
		return apierrors.NewForbidden(resource, call.Key.Name, errConnection)
	case throttles:
		return apierrors.NewTooManyRequests("later", 1)
	case fails:
		return errConnection
	case loses:
		_ = do()
		return errConnection
	case lags:
		if call.Writes() {
			h.late = append(h.late, call)
		}
		return errConnection
	case lies:
		if call.Verb == bindingtest.VerbGet && !m.lied[call.Key] { // nothing survives a server that lies again and again
			m.lied[call.Key] = true
			return notFoundError(call.Key)
		}
	case misleads:
		return proxyError(call.Key)
	}
	delete(m.lied, call.Key)
	return do()
}

// step lets something happen: to a controller most of the time.
func (h *history) step() {
	m := h.members[h.IntN(len(h.members))]
	switch h.IntN(12) {
	case 0, 1, 2:
		h.people()
	case 3, 4, 5:
		h.deliver(m, m.watches[h.IntN(len(m.watches))])
	case 6:
		h.arrive()
	case 7:
		if h.one(6) {
			h.note("%s restarts", m.name)
			h.restart(m)
		}
	default:
		if keys := m.choices(); len(keys) > 0 {
			h.work(m, keys[h.IntN(len(keys))], h.oneFault())
		}
	}
}

func (h *history) oneFault() fault {
	if h.one(8) {
		return faults[h.IntN(len(faults))]
	}
	return noFault
}

// arrive lets a late write reach the server, or get lost.
func (h *history) arrive() {
	if len(h.late) == 0 {
		return
	}
	call := h.late[0]
	h.late = h.late[1:]
	if h.one(3) {
		return
	}
	if call.Subresource == bindingtest.Status {
		_, err := h.server.UpdateStatus(context.Background(), call.Sent)
		h.note("late: update status %s: %v", call.Key, err)
	} else {
		_, err := h.server.Update(context.Background(), call.Sent)
		h.note("late: update %s: %v", call.Key, err)
	}
	h.judgeCalls("late")
}

func (h *history) deliver(m *member, watch *bindingtest.Watch) bool {
	change, ok := watch.Next()
	if !ok {
		return false
	}
	h.witness(change.Object)
	if change.Type == bindingtest.Deleted {
		m.enqueue(m.state.Forget(change.Object))
	} else {
		m.enqueue(m.state.Observe(change.Object))
	}
	return true
}

func (h *history) witness(object obj.Object) {
	if object != nil && !reflect.ValueOf(object).IsNil() {
		h.seen = append(h.seen, witnessed{object, object.DeepCopyObject().(obj.Object)})
	}
}

// work goes one step further with a sync: begins it, performs what it asks for, or tells it what came of that.
func (h *history) work(m *member, key obj.Key, suffers fault) {
	running := m.running[key]
	switch {
	case running == nil:
		m.queue = slices.DeleteFunc(m.queue, func(queued obj.Key) bool { return queued == key })
		h.note("%s syncs %s", m.name, key)
		h.proceed(m, key, m.state.Start(key))
	case running.reply == nil:
		m.fault = suffers
		running.reply = m.perform(running.action)
		h.note("%s: %s %s", m.name, running.action, suffers)
		h.witness(binding.Replied(running.reply))
		h.judgeCalls(m.name)
	default:
		h.note("%s hears of %s", m.name, key)
		m.learn(running)
		h.proceed(m, key, m.state.Proceed(key, running.reply))
	}
}

func (h *history) proceed(m *member, key obj.Key, step binding.Step) {
	before := m.running[key]
	if before == nil {
		before = &work{}
	}
	delete(m.running, key)
	for _, event := range step.Published() {
		m.events++
		h.note("%s: event %s", m.name, event)
	}
	if !step.Done() {
		h.judgeDecision(m, step.Action(), before.reads)
		m.running[key] = &work{action: step.Action(), reads: before.reads, failed: before.failed}
		return
	}
	if step.Err() != nil {
		h.note("%s: %s fails: %v", m.name, key, step.Err())
	}
	if step.After() > 0 && (before.failed || step.Err() != nil) {
		m.failed = append(m.failed, key)
	}
	for i, next := range step.Next() {
		if slices.Contains(step.Next()[:i], next) {
			h.broke("W: %s is to be synced twice", next)
		}
	}
	m.enqueue(step.Next()) // none twice
}

// settle lets the controllers finish, without faults and without people. It reports whether there was an end.
func (h *history) settle() bool {
	h.note("settle")
	for len(h.late) > 0 {
		h.arrive()
	}
	for range h.endless {
		if !h.busy() {
			return true
		}
	}
	return false
}

// busy takes one step that is to be taken, and reports whether there was one.
func (h *history) busy() bool {
	for _, m := range h.members {
		for _, watch := range m.watches {
			if h.deliver(m, watch) {
				return true
			}
		}
	}
	for _, m := range h.members {
		if keys := m.choices(); len(keys) > 0 {
			h.work(m, keys[h.IntN(len(keys))], noFault)
			return true
		}
		if len(m.failed) > 0 {
			m.enqueue(m.failed)
			m.failed = nil
			return true
		}
	}
	return false
}
