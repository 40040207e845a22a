package model_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/scenario"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// scenarioWriter writes a path down as a scenario file, by running it.
type scenarioWriter struct {
	*model
	runner *scenario.Runner
	text   strings.Builder
	uids   map[string][]string // of each name, in the order of creation
	last   string              // header of the table that was written last

	comparison comparison
}

var leaderNames = [2]string{"old", "new"}

// scenario returns the path as a file for binding/internal/scenario/testdata: it can be dropped in and told again. Where something goes
// wrong in telling it, as with a controller that only a test breaks, the file ends with what that was.
func (m *model) scenario(title string, path []move) string {
	s := &scenarioWriter{model: m, runner: scenario.NewRunner(context.Background()), uids: map[string][]string{}}
	s.comparison = comparison{large: s.runner.Server, uids: map[string]string{}}
	s.runner.Rules = Unprotected(m.rules)
	s.runner.Rules.Hooks = hooks.Names{} // told by a command
	fmt.Fprintf(&s.text, "# %s\n", strings.ReplaceAll(title, "\n", "; "))
	if err := s.write(path); err != nil {
		fmt.Fprintf(&s.text, "# but: %v\n", err)
	}
	return s.text.String()
}

func (s *scenarioWriter) write(path []move) error {
	if s.rules.Protection == decision.ProtectionOn {
		s.text.WriteString("\n> rules protection=On\n")
	}
	if s.hooked() {
		if err := s.command(s.hooksCommand()); err != nil {
			return err
		}
	}
	for _, name := range s.model.start {
		if err := s.create(name); err != nil {
			return err
		}
	}
	s.text.WriteString("\n")
	if err := s.command("step " + strings.Join(leaderNames[:s.leaders], " ")); err != nil {
		return err
	}
	s.effect = effect{}
	now, first := s.start()
	if s.settledFirst && s.claimsAtFirst() > 1 { // which of them gets a volume depends on the order
		path = slices.Concat(s.settle(now), path)
		s.effect = effect{}
		now, first = s.start()
	} else if s.settledFirst {
		s.settle(now)
		first = []string{"settle"}
	}
	if s.backedUpFirst {
		first = slices.Insert(first, 0, "snapshot")
	}
	if err := s.commands(first); err != nil {
		return err
	}
	if difference := s.compare(now); difference != "" {
		return errors.New(difference)
	}
	for _, mv := range path {
		next := s.apply(now, mv)
		if next == nil {
			return fmt.Errorf("%s cannot happen", s.commandFor(mv))
		}
		if err := s.move(mv, s.effect.observed); err != nil {
			return err
		}
		now = next
		if difference := s.compare(now); difference != "" {
			return errors.New(difference)
		}
	}
	return s.command("settle")
}

// start returns the first state, before it settles, and the commands for what the leaders were told of at once.
func (s *scenarioWriter) start() (now *state, first []string) {
	now = s.unsettled()
	return now, s.observed(s.effect.observed)
}

func (s *scenarioWriter) claimsAtFirst() (n int) {
	for _, name := range s.model.start {
		if strings.HasPrefix(name, "pvc/") {
			n++
		}
	}
	return n
}

// compare holds the model's server to the one of the scenario, unless somebody breaks things in the model alone.
func (s *scenarioWriter) compare(now *state) string {
	if s.sabotage != "" {
		return ""
	}
	s.comparison.tiny = &now.server
	return s.comparison.differ()
}

// move returns one of the path, with what the leaders were told of at once.
func (s *scenarioWriter) move(mv move, told []observed) error {
	if mv.kind == userActs {
		words := strings.Fields(s.actions[mv.at].text)
		if words[0] == "create" {
			if err := s.create(words[1]); err != nil {
				return err
			}
			s.text.WriteString("\n")
			return s.commands(s.observed(told))
		}
	}
	if mv.kind == observes {
		return s.commands(s.observed(told))
	}
	return s.commands(append([]string{s.commandFor(mv)}, s.observed(told)...))
}

func (s *scenarioWriter) observed(told []observed) (commands []string) {
	for _, o := range told {
		commands = append(commands, leaderNames[o.who]+": observe "+shortOf(watched[o.kind]))
	}
	return commands
}

func shortOf(kind obj.Kind) string {
	for _, table := range scenario.KindTables() {
		if table.Kind == kind {
			return table.Short
		}
	}
	return string(kind)
}

func (s *scenarioWriter) commands(all []string) error {
	for _, command := range all {
		if err := s.command(command); err != nil {
			return err
		}
	}
	return nil
}

// command writes down a command and what it prints.
func (s *scenarioWriter) command(text string) error {
	s.last = ""
	fmt.Fprintf(&s.text, "%s%s\n", scenario.Prompt, text)
	printed, err := s.runner.Do(text)
	for _, line := range printed {
		s.text.WriteString(strings.TrimRight(scenario.Indent+line, " ") + "\n")
	}
	return err
}

// commandFor returns a move as a command.
func (s *scenarioWriter) commandFor(mv move) string {
	who := leaderNames[mv.who] + ": "
	suffering := map[moveKind]string{conflicts: ": conflict", losesRequest: ": lost", losesAnswer: ": answer lost", delays: ": late", goesOn: ": in progress",
		lies: ": told NotFound", proxies: ": proxied", recalls: ": told of before", bares: ": bare", repeats: ": as known"}[mv.kind]
	switch mv.kind {
	case observes:
		return who + "observe " + shortOf(watched[mv.at])
	case starts:
		return who + "begin " + s.display(s.keys[mv.at])
	case receives:
		return who + "hear " + s.display(s.keys[mv.at])
	case crashes:
		return who + "crash"
	case arrives:
		return "arrive"
	case resyncs:
		return who + "resync"
	case backsUp:
		return "snapshot"
	case goesBack:
		return "restore"
	case notices:
		return who + "observe restore"
	case outwaits, outlives, retries:
		return who + "outwait " + s.display(s.keys[mv.at])
	case userActs:
		return s.withUIDs(s.actions[mv.at].text)
	}
	return who + "send " + s.display(s.keys[mv.at]) + suffering
}

// display returns the key as this scenario names it, whose claims have UIDs of their own.
func (s *scenarioWriter) display(key obj.Key) string {
	key.Name = s.comparison.largeName(key.Name)
	return display(key)
}

// hooksCommand gives the controllers of the scenario the hooks of the world.
func (s *scenarioWriter) hooksCommand() string {
	registered := s.rules.Hooks
	deleters := slices.Concat(sets.List(registered.Deleters), sets.List(registered.SourceDeleters))
	command := "hooks"
	for _, hook := range []struct {
		what  string
		names []string
	}{{"provisioner", sets.List(registered.Provisioners)}, {"deleter", deleters}, {"recycler", sets.List(registered.Recyclers)}} {
		if len(hook.names) > 0 {
			command += " " + hook.what + "=" + strings.Join(hook.names, ",")
		}
	}
	return command
}

// display returns the key as the scenarios name it.
func display(key obj.Key) string {
	return strings.TrimSuffix(shortOf(key.Kind)+"/"+key.Namespace, "/") + "/" + key.Name
}

// create writes a row of a table, under the header if the one before was another, and creates its object.
func (s *scenarioWriter) create(name string) error {
	row := s.model.rows[name]
	cells := s.withUIDs(row.cells)
	if s.last != row.header {
		fmt.Fprintf(&s.text, "\n%s\n", row.header)
		s.last = row.header
	}
	fmt.Fprintf(&s.text, "%s\n", cells)
	if _, err := s.runner.CreateTable([]string{row.header, cells}); err != nil {
		return err
	}
	_, key, _ := scenario.KeyNamed(name)
	object, err := s.runner.Server.Get(s.runner.Ctx, key)
	s.runner.Printed = len(s.runner.Server.Calls())
	if err == nil {
		s.uids[name] = append(s.uids[name], string(object.GetUID()))
	}
	return err
}

// withUIDs puts in the UIDs that the other server has given.
func (s *scenarioWriter) withUIDs(text string) string {
	before, rest, found := strings.Cut(text, "{")
	if !found {
		return text
	}
	name, after, _ := strings.Cut(rest, "}")
	name, number, past := strings.Cut(name, "#")
	uids := s.uids[name]
	if at, _ := strconv.Atoi(number); past && at <= len(uids) {
		return before + uids[at-1] + after
	}
	_, key, _ := scenario.KeyNamed(name)
	uid := "nobody"
	if object, err := s.runner.Server.Get(s.runner.Ctx, key); err == nil {
		uid = string(object.GetUID())
	}
	s.runner.Printed = len(s.runner.Server.Calls())
	return before + uid + after
}

// TestModelScenariosCanBeReplayed walks at random through the worlds of the model and writes each path down as a
// scenario. Told again, on bindingtest.Server, it reads the same and breaks nothing: so a counterexample can be
// dropped into testdata. And after every move both servers have the same objects.
func TestModelScenariosCanBeReplayed(t *testing.T) {
	t.Parallel()
	const seed, length = 1, 60
	walks := map[RunMode]int{RunShort: 1, RunUsual: 12, RunFull: 30, RunLong: 30}[ModeOfRun()]
	worlds := modelWorlds()
	if testing.Short() {
		worlds = draw(worlds, len(worlds)/4)
	}
	for _, world := range worlds {
		if world.whileCalled {
			continue // a scenario has no leader that is paused in a call while the server is restored, and then calls
		}
		t.Run(world.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, seed))
			walks := walks
			if world.troubled { // they are many
				walks = (walks + 4) / 5
			}
			for range walks {
				m := newModel(world)
				m.faults++
				text := m.scenario("X8: a walk.", m.walk(random, length))
				require.NotContains(t, text, "# but:")
				again, violations, err := scenario.Run(t, text)
				require.NoError(t, err, text)
				if world.troubled { // people may force objects to go, and with them goes what is known of their storage
					violations = slices.DeleteFunc(violations, func(v string) bool { return strings.HasSuffix(v, " is left behind") })
				}
				require.Empty(t, violations, text)
				require.Equal(t, text, again)
			}
		})
	}
}

// walk takes moves at random.
func (m *model) walk(random *rand.Rand, length int) (path []move) {
	now := m.beginning()
	for range length {
		moves := m.moves(now)
		if len(moves) == 0 {
			break
		}
		mv := moves[random.IntN(len(moves))]
		if next := m.apply(now, mv); next != nil {
			path, now = append(path, mv), next
		}
	}
	return path
}
