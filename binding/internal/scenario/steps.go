package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/internal/history"
	"github.com/pvbind/pvbind/binding/obj"
)

// steps are the controllers of a scenario that take one step at a time, and only when told: what the model checker
// finds is told so. They are those of a random history, but nothing is random here.
type steps struct {
	*history.History
	runner *Runner
	lists  map[*history.Controller]map[obj.Kind][]bindingtest.Change // what each began with and has not seen yet
}

// step starts controllers that take single steps.
func (s *Runner) step(names []string) {
	s.steps = &steps{runner: s, lists: map[*history.Controller]map[obj.Kind][]bindingtest.Change{}}
	s.steps.History = history.Directed(s.Server)
	for _, name := range names {
		c := &history.Controller{Name: name, Rules: s.Rules, Hooks: s.hooksOf(&controller{name: name, made: map[string]int{}})}
		c.Rules.Hooks = c.Hooks.Names()
		s.steps.Add(c)
		s.steps.readLists(c)
	}
}

// readLists reads what a controller begins with at once, so that it comes in the order of names.
func (s *steps) readLists(c *history.Controller) {
	s.lists[c] = map[obj.Kind][]bindingtest.Change{}
	for i, kind := range bindingtest.Kinds() {
		for range c.Watches[i].Pending() {
			change, _ := c.Watches[i].Next()
			s.lists[c][kind] = append(s.lists[c][kind], change)
		}
		slices.SortFunc(s.lists[c][kind], func(a, b bindingtest.Change) int {
			return strings.Compare(a.Object.GetName(), b.Object.GetName())
		})
	}
}

// faults are what may follow the key in "send KEY".
var faults = map[string]history.Fault{"conflict": history.Conflicts, "lost": history.Fails, "answer lost": history.LosesAnswer, "late": history.ArrivesLate,
	"in progress": history.GoesOn, "told NotFound": history.SaysNotFound, "proxied": history.SaysProxyNotFound, "told of before": history.SaysOldNotFound, "bare": history.AnswersBare,
	"as known": history.AnswersAsKnown}

// do takes one step. It reports whether the command is one.
func (s *steps) do(text string) (printed []string, done bool, err error) {
	if s == nil {
		return nil, false, nil
	}
	s.Judged = len(s.Server.Calls())
	switch text {
	case "settle":
		return s.finish(), true, nil
	case "arrive":
		return s.arriveNow()
	}
	name, rest, _ := strings.Cut(text, ": ")
	i := slices.IndexFunc(s.Controllers, func(c *history.Controller) bool { return c.Name == name })
	if i < 0 {
		return nil, false, nil
	}
	printed, err = s.direct(s.Controllers[i], rest)
	return printed, true, err
}

func (s *steps) direct(c *history.Controller, text string) ([]string, error) {
	verb, rest, _ := strings.Cut(text, " ")
	if verb == "crash" {
		s.Restart(c)
		s.readLists(c)
		return nil, nil
	}
	if verb == "resync" {
		s.ResyncAfterRestore(c)
		return nil, nil
	}
	if verb == "observe" {
		return nil, s.observe(c, rest)
	}
	name, suffers, _ := strings.Cut(rest, ": ")
	_, key, err := KeyNamed(name)
	if err != nil {
		return nil, err
	}
	c.Enqueue(c.Failed) // their delay is over
	c.Failed = nil
	if verb == "outwait" {
		c.State.Outwait(key)
		c.State.OutwaitCalls()
		c.Enqueue([]obj.Key{key})
		return nil, nil
	}
	running := c.Running[key]
	due := running == nil && slices.Contains(c.Queue, key)
	asked := running != nil && running.Reply == nil
	answered := running != nil && running.Reply != nil
	if verb == "begin" && !due || verb == "send" && !asked || verb == "hear" && !answered {
		return nil, fmt.Errorf("%s cannot %s", c.Name, text)
	}
	s.Work(c, key, faults[suffers])
	return s.came(c, key, verb), nil
}

// came returns what a step came to.
func (s *steps) came(c *history.Controller, key obj.Key, verb string) []string {
	lines := s.runner.newCalls()
	running := c.Running[key]
	switch {
	case verb == "send":
	case running != nil:
		lines = append(lines, "asks "+running.Action.String())
	default:
		lines = append(lines, "done")
	}
	return lines
}

// restored has the controllers held to what the server has after a restore.
func (s *steps) restored() {
	if s != nil {
		s.Restored()
	}
}

// observe tells a controller of the next change of a kind, or that the server went back in time.
func (s *steps) observe(c *history.Controller, short string) error {
	if short == "restore" {
		s.ObserveRestore(c)
		return nil
	}
	kind, ok := kindNamed(short)
	if !ok {
		return fmt.Errorf("unknown kind %q", short)
	}
	if list := s.lists[c][kind.Kind]; len(list) > 0 {
		s.lists[c][kind.Kind] = list[1:]
		c.Enqueue(c.State.Observe(list[0].Object))
		return nil
	}
	if !s.Deliver(c, c.Watches[slices.Index(bindingtest.Kinds(), kind.Kind)]) {
		return fmt.Errorf("no change of a %s is left to observe", short)
	}
	return nil
}

// arriveNow lets the write arrive whose sender has given up.
func (s *steps) arriveNow() ([]string, bool, error) {
	if len(s.Late) == 0 {
		return nil, true, fmt.Errorf("no write is late")
	}
	call := s.Late[0]
	s.Late = s.Late[1:]
	switch {
	case call.Verb == bindingtest.VerbCreate:
		_, _ = s.Server.Create(s.runner.Ctx, call.Sent)
	case call.Verb == bindingtest.VerbDelete:
		_ = s.Server.Delete(s.runner.Ctx, call.Key, call.Options)
	case call.Subresource == bindingtest.Status:
		_, _ = s.Server.UpdateStatus(s.runner.Ctx, call.Sent)
	default:
		_, _ = s.Server.Update(s.runner.Ctx, call.Sent)
	}
	return s.runner.newCalls(), true, nil
}

// finish lets the controllers go on until none has anything left to do.
func (s *steps) finish() []string {
	for _, c := range s.Controllers {
		for kind, list := range s.lists[c] {
			for _, told := range list {
				c.Enqueue(c.State.Observe(told.Object))
			}
			delete(s.lists[c], kind)
		}
	}
	s.Late = nil
	if !s.Settle() {
		s.Broke("X8: they do not settle")
	}
	return orNothing(s.runner.newCalls())
}

// check holds the end of the scenario to what every history is held to.
func (s *steps) check() []string {
	if s == nil {
		return nil
	}
	s.finish()
	s.JudgeEnd()
	s.PassAgain()
	return s.Broken
}

func orNothing(lines []string) []string {
	if len(lines) == 0 {
		return []string{"nothing"}
	}
	return lines
}
