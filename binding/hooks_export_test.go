package binding

import (
	"context"

	"github.com/pvbind/pvbind/binding/obj"
)

// NewHookedState is a state whose syncs run no more hooks at once than atOnce; the usual number if zero.
func NewHookedState(rules Rules, atOnce int) *State {
	s := newState(rules)
	s.slots.limit = atOnce
	return &State{s}
}

// Slots lets tests take and give back the right to run a hook.
type Slots struct{ hookSlots }

func NewSlots(limit int) *Slots               { return &Slots{hookSlots{limit: limit}} }
func (s *Slots) Take(key obj.Key) bool        { return s.take(key) }
func (s *Slots) Give(key obj.Key)             { s.give(key) }
func (s *Slots) Next(ended obj.Key) []obj.Key { return s.next(ended) }
func (s *Slots) Clone() *Slots                { return &Slots{s.clone()} }

// Names are those that the hooks are registered under.
func (h Hooks) Names() HookNames { return h.names() }

// PerformHook runs a hook for a step that asks for one.
func PerformHook(hooks Hooks, action Action) any {
	return (&hookRunner{}).run(context.Background(), hooks, action)
}

func (c *Controller) RunHook(action Action) error {
	return c.runner.run(context.Background(), c.Hooks, action).err
}
