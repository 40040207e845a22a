package binding_test

import (
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// member is one of the controllers.
type member struct {
	name    string
	rules   binding.Rules
	client  *bindingtest.Client
	hooks   binding.Hooks
	fault   fault // of the next call
	state   *binding.State
	watches []*bindingtest.Watch
	queue   []obj.Key
	failed  []obj.Key // to be tried again
	running map[obj.Key]*work
	wrote   map[obj.Key]obj.Object // the newest reply to a write of its own
	doubts  map[obj.Key]bool       // writes that were lost, or whose outcome is unknown
	lied    map[obj.Key]bool       // the last read of it was told a lie
	events  int
}

// work is a sync under way: what it asked for, and what came of it once that is known.
type work struct {
	action binding.Action
	reply  any
	reads  []obj.Key // since its last write
	failed bool      // a hook did: it is to be tried again
}

func (h *history) restart(m *member) {
	m.state, m.queue, m.failed, m.watches = binding.NewState(m.rules), nil, nil, nil
	m.running, m.wrote, m.doubts = map[obj.Key]*work{}, map[obj.Key]obj.Object{}, map[obj.Key]bool{}
	m.lied = map[obj.Key]bool{}
	for _, kind := range bindingtest.Kinds() {
		m.watches = append(m.watches, h.server.Watch(kind))
	}
}

// learn keeps what the controller is told, to judge its next decisions by.
func (m *member) learn(running *work) {
	target, err := running.action.Target(), binding.Failed(running.reply)
	running.failed = running.failed || err != nil && (running.action.RunsHook() || running.action.Kind == binding.CreateVolume)
	switch {
	case running.action.RunsHook():
		return
	case !running.action.Writes():
		if err == nil || binding.IsAbsent(err, target) {
			running.reads = append(running.reads, target)
			delete(m.doubts, target)
		}
		return
	case err == nil && running.action.Kind == binding.DeleteVolume:
		m.doubts[target] = true // its finalizers may keep it
	case err == nil:
		m.wrote[target] = binding.Replied(running.reply)
	case !apierrors.IsForbidden(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsInvalid(err):
		m.doubts[target] = true
	}
	running.reads = nil
}

// perform does what a step asks for. What happens to the call of a hook is seen to here, and to any other by the client.
func (m *member) perform(action binding.Action) any {
	if !action.RunsHook() {
		return binding.Perform(m.client, action)
	}
	suffered := m.fault
	m.fault = noFault
	if suffered == fails {
		return binding.Reply(nil, errConnection)
	}
	got := binding.PerformHook(m.hooks, action)
	if suffered == loses {
		return binding.Reply(nil, errConnection)
	}
	return got
}

func (m *member) enqueue(keys []obj.Key) {
	for _, key := range keys {
		if !slices.Contains(m.queue, key) {
			m.queue = append(m.queue, key)
		}
	}
}

// choices are the keys that a step can be taken for, in order.
func (m *member) choices() []obj.Key {
	keys := slices.Collect(maps.Keys(m.running))
	for _, key := range m.queue {
		if m.running[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareByText)
	return keys
}

func compareByText(a, b obj.Key) int {
	return slices.Compare([]byte(a.String()), []byte(b.String()))
}
