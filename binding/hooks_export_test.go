package binding

import "context"

// NewHookedState is a state whose syncs run no more hooks at once than atOnce; the usual number if zero.
func NewHookedState(rules Rules, atOnce int) *State {
	s := newState(rules)
	s.slots.limit = atOnce
	return &State{s}
}

// Slots lets tests take and give back the right to run a hook.
type Slots struct{ hookSlots }

func NewSlots(limit int) *Slots       { return &Slots{hookSlots{limit: limit}} }
func (s *Slots) Take(key Key) bool    { return s.take(key) }
func (s *Slots) Give(key Key)         { s.give(key) }
func (s *Slots) Next(ended Key) []Key { return s.next(ended) }
func (s *Slots) Clone() *Slots        { return &Slots{s.clone()} }
func (c *Controller) RunHook(action Action) error {
	return c.runner.run(context.Background(), c.Hooks, action).err
}
