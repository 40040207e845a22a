package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// Runner carries out the commands of a scenario on a server and the controllers on it.
type Runner struct {
	Ctx         context.Context
	Server      *bindingtest.Server
	Rules       decision.Options // of the controllers that start from now on
	controllers []*controller
	Printed     int // calls of the server printed so far

	snapshot *bindingtest.Server // a backup

	versions   map[string]obj.Object // every state of every object, see checkInputs
	recorded   int                   // calls of the server in versions so far
	violations []string

	hooks     map[string][]string // the names that a controller that starts now has hooks under
	madeBy    map[string]string   // the provisioner that made it
	tokens    map[string]int64    // the largest that the storage has seen, by the name of the volume
	stored    map[string]bool     // the storage that was made, by the name of its volume: whether it is there
	hookLines []hookLine          // not printed yet
	steps     *steps              // controllers that take single steps; nil if there are none
}

// controller is a controller with a name.
type controller struct {
	*bindingtest.Driver
	name    string
	delays  []bindingtest.Delay // printed last
	written map[obj.Key]uint64
	made    map[string]int // writes, reads and hooks so far
	down    bool           // the server answers it nothing

	hooks      hooks.Set
	hookFaults map[int]hookFault
}

const defaultController = "controller"

// NewRunner returns a runner on an empty server.
func NewRunner(ctx context.Context) *Runner {
	return &Runner{Ctx: ctx, Rules: testkit.Unprotected(decision.Options{}), Server: bindingtest.NewServer(), versions: map[string]obj.Object{}, stored: map[string]bool{}, madeBy: map[string]string{}, tokens: map[string]int64{}}
}

// controller returns the controller of that name, which starts now if it has not.
func (s *Runner) controller(name string) *controller {
	for _, a := range s.controllers {
		if a.name == name {
			return a
		}
	}
	a := &controller{name: name, written: map[obj.Key]uint64{}, made: map[string]int{}, hookFaults: map[int]hookFault{}}
	a.Driver = bindingtest.NewDriver(s.Server, bindingtest.DriverOptions{Name: name, BindingOptions: s.Rules})
	a.hooks = s.hooksOf(a)
	a.Controller.Hooks = a.hooks
	a.Client.Use(s.guard(a))
	s.controllers = append(s.controllers, a)
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
func (a *controller) nth(kind string, n int) bindingtest.Match {
	at := a.made[kind] + n
	return func(call *bindingtest.Call) bool { return kindOf(call) == kind && a.made[kind] == at }
}

// settle drives the controllers and prints what they did.
func (s *Runner) settle(controllers ...*controller) []string {
	drivers := make([]*bindingtest.Driver, len(controllers))
	for i := range controllers {
		drivers[i] = controllers[i].Driver
	}
	err := bindingtest.Settle(s.Ctx, drivers...)
	return s.report(err, controllers)
}

// report prints the calls since the last report, the error and the delays that there are now.
func (s *Runner) report(err error, controllers []*controller) []string {
	lines := s.newCalls()
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
	for _, a := range controllers {
		lines = append(lines, a.newDelays()...)
		s.checkInputs(a)
	}
	if len(lines) == 0 {
		return []string{"nothing"}
	}
	return lines
}

// newCalls prints what the controllers did since the last time, and what others did meanwhile.
func (s *Runner) newCalls() []string {
	calls := s.Server.CallsSince(s.Printed)
	var lines []string
	for _, call := range calls {
		lines = append(lines, s.hooksBefore(s.Printed)...)
		s.Printed++
		line := strings.TrimSuffix(call.String(), ", but answered: "+bindingtest.ErrCrashed.Error())
		switch {
		case call.Actor == "" && !call.Writes():
			continue
		case call.Actor == "":
			line = "meanwhile: " + line
		case len(s.controllers) > 1 || s.steps != nil:
			line = call.Actor + ": " + line
		}
		lines = append(lines, line)
	}
	return append(lines, s.hooksBefore(s.Printed)...)
}

// newDelays prints what the controller wants to come back to and did not the last time.
func (a *controller) newDelays() []string {
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
