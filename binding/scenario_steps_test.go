package binding_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// steps are the controllers of a story that take one step at a time, and only when told: what the model checker
// finds is told so. They are those of a random history, but nothing is random here.
type steps struct {
	*history
	stage *stage
	lists map[*member]map[obj.Kind][]bindingtest.Change // what each began with and has not seen yet
}

// step starts controllers that take single steps.
func (s *stage) step(names []string) {
	s.steps = &steps{stage: s, lists: map[*member]map[obj.Kind][]bindingtest.Change{}}
	s.steps.history = &history{Rand: rand.New(rand.NewPCG(0, 0)), extent: small, server: s.server}
	for _, name := range names {
		m := &member{name: name, rules: s.rules, client: s.server.NewClient(name)}
		m.hooks = s.hooksOf(&actor{name: name, made: map[string]int{}})
		m.rules.Hooks = m.hooks.Names()
		m.client.Use(func(call *bindingtest.Call, do func() error) error { return s.steps.suffer(m, call, do) })
		s.steps.members = append(s.steps.members, m)
		s.steps.restart(m)
	}
}

// restart reads the lists at once, so that they come in the order of names.
func (s *steps) restart(m *member) {
	s.history.restart(m)
	s.lists[m] = map[obj.Kind][]bindingtest.Change{}
	for i, kind := range bindingtest.Kinds() {
		for range m.watches[i].Pending() {
			change, _ := m.watches[i].Next()
			s.lists[m][kind] = append(s.lists[m][kind], change)
		}
		slices.SortFunc(s.lists[m][kind], func(a, b bindingtest.Change) int {
			return strings.Compare(a.Object.GetName(), b.Object.GetName())
		})
	}
}

// sufferings are what may follow the key in "send KEY".
var sufferings = map[string]fault{"conflict": conflicts, "lost": fails, "answer lost": loses, "late": lags}

// do takes one step. It reports whether the command is one.
func (s *steps) do(text string) (printed []string, done bool, err error) {
	if s == nil {
		return nil, false, nil
	}
	s.calls = len(s.server.Calls())
	switch text {
	case "settle":
		return s.finish(), true, nil
	case "arrive":
		return s.arriveNow()
	}
	name, rest, _ := strings.Cut(text, ": ")
	i := slices.IndexFunc(s.members, func(m *member) bool { return m.name == name })
	if i < 0 {
		return nil, false, nil
	}
	printed, err = s.direct(s.members[i], rest)
	return printed, true, err
}

func (s *steps) direct(m *member, text string) ([]string, error) {
	verb, rest, _ := strings.Cut(text, " ")
	if verb == "crash" {
		s.restart(m)
		return nil, nil
	}
	if verb == "observe" {
		return nil, s.observe(m, rest)
	}
	name, suffers, _ := strings.Cut(rest, ": ")
	_, key, err := keyNamed(name)
	if err != nil {
		return nil, err
	}
	m.enqueue(m.failed) // their delay is over
	m.failed = nil
	running := m.running[key]
	due := running == nil && slices.Contains(m.queue, key)
	asked := running != nil && running.reply == nil
	answered := running != nil && running.reply != nil
	if verb == "begin" && !due || verb == "send" && !asked || verb == "hear" && !answered {
		return nil, fmt.Errorf("%s cannot %s", m.name, text)
	}
	s.work(m, key, sufferings[suffers])
	return s.came(m, key, verb), nil
}

// came is what a step came to.
func (s *steps) came(m *member, key obj.Key, verb string) []string {
	lines := s.stage.calls()
	running := m.running[key]
	switch {
	case verb == "send":
	case running != nil:
		lines = append(lines, "asks "+running.action.String())
	default:
		lines = append(lines, "done")
	}
	return lines
}

// observe tells a controller of the next change of a kind.
func (s *steps) observe(m *member, short string) error {
	kind, ok := kindNamed(short)
	if !ok {
		return fmt.Errorf("unknown kind %q", short)
	}
	if list := s.lists[m][kind.kind]; len(list) > 0 {
		s.lists[m][kind.kind] = list[1:]
		m.enqueue(m.state.Observe(list[0].Object))
		return nil
	}
	if !s.deliver(m, m.watches[slices.Index(bindingtest.Kinds(), kind.kind)]) {
		return fmt.Errorf("no change of a %s is left to observe", short)
	}
	return nil
}

// arriveNow lets the write arrive whose sender has given up.
func (s *steps) arriveNow() ([]string, bool, error) {
	if len(s.late) == 0 {
		return nil, true, fmt.Errorf("no write is late")
	}
	call := s.late[0]
	s.late = s.late[1:]
	switch {
	case call.Verb == bindingtest.VerbCreate:
		_, _ = s.server.Create(s.stage.ctx, call.Sent)
	case call.Verb == bindingtest.VerbDelete:
		_ = s.server.Delete(s.stage.ctx, call.Key, call.Options)
	case call.Subresource == bindingtest.Status:
		_, _ = s.server.UpdateStatus(s.stage.ctx, call.Sent)
	default:
		_, _ = s.server.Update(s.stage.ctx, call.Sent)
	}
	return s.stage.calls(), true, nil
}

// finish lets the controllers go on until none has anything left to do.
func (s *steps) finish() []string {
	for _, m := range s.members {
		for kind, list := range s.lists[m] {
			for _, told := range list {
				m.enqueue(m.state.Observe(told.Object))
			}
			delete(s.lists[m], kind)
		}
	}
	s.late = nil
	if !s.settle() {
		s.broke("X8: they do not settle")
	}
	return orNothing(s.stage.calls())
}

// check holds the end of the story to what every history is held to.
func (s *steps) check() []string {
	if s == nil {
		return nil
	}
	s.finish()
	s.judgeEnd()
	s.passAgain()
	return s.broken
}

func orNothing(lines []string) []string {
	if len(lines) == 0 {
		return []string{"nothing"}
	}
	return lines
}
