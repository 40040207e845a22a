package binding_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// stage is the world that a story is played in: a server, and the controllers on it.
type stage struct {
	ctx     context.Context
	server  *bindingtest.Server
	rules   binding.Rules
	drivers []*actor
	printed int // calls of the server printed so far

	snapshot *bindingtest.Server // a backup

	versions   map[string]obj.Object // every state of every object, see checkInputs
	recorded   int                   // calls of the server in versions so far
	violations []string

	hooks     map[string][]string // the names that a controller that starts now has hooks under
	stored    map[string]bool     // the storage that was made, by the name of its volume: whether it is there
	hookLines []hookLine          // not printed yet
	steps     *steps              // controllers that take single steps; nil if there are none
}

// actor is a controller with a name.
type actor struct {
	*bindingtest.Driver
	name    string
	delays  []bindingtest.Delay // printed last
	written map[obj.Key]uint64
	made    map[string]int // writes, reads and hooks so far
	down    bool           // the server answers it nothing

	hooks      binding.Hooks
	hookFaults map[int]hookFault
}

const defaultActor = "controller"

func newStage(ctx context.Context) *stage {
	return &stage{ctx: ctx, server: bindingtest.NewServer(), versions: map[string]obj.Object{}, stored: map[string]bool{}}
}

// actor is the controller of that name, which starts now if it has not.
func (s *stage) actor(name string) *actor {
	for _, a := range s.drivers {
		if a.name == name {
			return a
		}
	}
	a := &actor{name: name, written: map[obj.Key]uint64{}, made: map[string]int{}, hookFaults: map[int]hookFault{}}
	a.Driver = bindingtest.NewDriver(s.server, bindingtest.Options{Name: name, Rules: s.rules})
	a.hooks = s.hooksOf(a)
	a.Controller.Hooks = a.hooks
	a.Client.Use(s.guard(a))
	s.drivers = append(s.drivers, a)
	return a
}

// kindOf sorts calls into writes, reads and events.
func kindOf(call *bindingtest.Call) string {
	switch {
	case call.Writes():
		return "write"
	case call.Verb == bindingtest.VerbRecord:
		return "event"
	}
	return "read"
}

// nth matches the n-th write or read from now on, whatever becomes of those before it.
func (a *actor) nth(kind string, n int) bindingtest.Match {
	at := a.made[kind] + n
	return func(call *bindingtest.Call) bool { return kindOf(call) == kind && a.made[kind] == at }
}

// settle drives the controllers and prints what they did.
func (s *stage) settle(actors ...*actor) []string {
	drivers := make([]*bindingtest.Driver, len(actors))
	for i := range actors {
		drivers[i] = actors[i].Driver
	}
	err := bindingtest.Settle(s.ctx, drivers...)
	return s.report(err, actors)
}

// report prints the calls since the last report, the error and the delays that there are now.
func (s *stage) report(err error, actors []*actor) []string {
	lines := s.calls()
	var unsettled *bindingtest.UnsettledError
	switch {
	case errors.Is(err, bindingtest.ErrCrashed):
		lines = append(lines, "crashed")
	case err != nil:
		for _, line := range strings.Split(err.Error(), "\n") {
			lines = append(lines, "error "+line)
		}
	}
	if errors.As(err, &unsettled) {
		s.violate("X8: %v", err)
	}
	for _, a := range actors {
		lines = append(lines, a.newDelays()...)
		s.checkInputs(a)
	}
	if len(lines) == 0 {
		return []string{"nothing"}
	}
	return lines
}

// calls prints what the controllers did since the last time, and what others did meanwhile.
func (s *stage) calls() []string {
	calls := s.server.CallsSince(s.printed)
	var lines []string
	for _, call := range calls {
		lines = append(lines, s.hooksBefore(s.printed)...)
		s.printed++
		line := strings.TrimSuffix(call.String(), ", but answered: "+bindingtest.ErrCrashed.Error())
		switch {
		case call.Actor == "" && !call.Writes():
			continue
		case call.Actor == "":
			line = "meanwhile: " + line
		case len(s.drivers) > 1 || s.steps != nil:
			line = call.Actor + ": " + line
		}
		lines = append(lines, line)
	}
	return append(lines, s.hooksBefore(s.printed)...)
}

// newDelays prints what the controller wants to come back to and did not the last time.
func (a *actor) newDelays() []string {
	delays := a.Delayed()
	var lines []string
	for _, delay := range delays {
		if !slices.Contains(a.delays, delay) {
			lines = append(lines, fmt.Sprintf("again %s after %s", delay.Key, delay.After))
		}
	}
	a.delays = delays
	return lines
}
