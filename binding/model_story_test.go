package binding_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// storyteller writes a path down as a scenario file, by playing it on a stage.
type storyteller struct {
	*model
	stage *stage
	text  strings.Builder
	uids  map[string][]string // of each name, in the order of creation
	last  string              // header of the table that was written last

	likeness likeness
}

var leaderNames = [2]string{"old", "new"}

// story is the path as a file for testdata/scenarios: it can be dropped in and told again. Where something goes
// wrong in telling it, as with a controller that only a test breaks, the file ends with what that was.
func (m *model) story(title string, path []move) string {
	s := &storyteller{model: m, stage: newStage(context.Background()), uids: map[string][]string{}}
	s.likeness = likeness{large: s.stage.server, uids: map[string]string{}}
	s.stage.rules = m.rules
	s.stage.rules.Hooks = binding.HookNames{} // told by a command
	fmt.Fprintf(&s.text, "# %s\n", strings.ReplaceAll(title, "\n", "; "))
	if err := s.tell(path); err != nil {
		fmt.Fprintf(&s.text, "# but: %v\n", err)
	}
	return s.text.String()
}

func (s *storyteller) tell(path []move) error {
	if s.rules.Protection == binding.ProtectionOn {
		s.text.WriteString("\n> rules protection=On\n")
	}
	if s.hooked() {
		if err := s.command(s.hooksCommand()); err != nil {
			return err
		}
	}
	for _, name := range s.start {
		if err := s.create(name); err != nil {
			return err
		}
	}
	s.text.WriteString("\n")
	if err := s.command("step " + strings.Join(leaderNames[:s.leaders], " ")); err != nil {
		return err
	}
	s.effect = effect{}
	now := s.beginning()
	first := s.observed(s.effect.observed)
	if s.settledFirst {
		first = []string{"settle"}
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

// compare holds the model's server to the one on the stage, unless somebody breaks things in the model alone.
func (s *storyteller) compare(now *moment) string {
	if s.sabotage != "" {
		return ""
	}
	s.likeness.tiny = &now.server
	return s.likeness.differ()
}

// move is one of the path, with what the leaders were told of at once.
func (s *storyteller) move(mv move, told []observed) error {
	if mv.verb == does {
		words := strings.Fields(s.deeds[mv.at].text)
		if words[0] == "create" {
			if err := s.create(words[1]); err != nil {
				return err
			}
			s.text.WriteString("\n")
			return s.commands(s.observed(told))
		}
	}
	if mv.verb == observes {
		return s.commands(s.observed(told))
	}
	return s.commands(append([]string{s.commandFor(mv)}, s.observed(told)...))
}

func (s *storyteller) observed(told []observed) (commands []string) {
	for _, o := range told {
		commands = append(commands, leaderNames[o.who]+": observe "+shortOf(watched[o.kind]))
	}
	return commands
}

func shortOf(kind obj.Kind) string {
	for _, table := range kindTables() {
		if table.kind == kind {
			return table.short
		}
	}
	return string(kind)
}

func (s *storyteller) commands(all []string) error {
	for _, command := range all {
		if err := s.command(command); err != nil {
			return err
		}
	}
	return nil
}

// command writes down a command and what it prints.
func (s *storyteller) command(text string) error {
	s.last = ""
	fmt.Fprintf(&s.text, "%s%s\n", prompt, text)
	printed, err := s.stage.do(text)
	for _, line := range printed {
		s.text.WriteString(strings.TrimRight(indent+line, " ") + "\n")
	}
	return err
}

// commandFor is a move as a command.
func (s *storyteller) commandFor(mv move) string {
	who := leaderNames[mv.who] + ": "
	suffering := map[verb]string{collides: ": conflict", misses: ": lost", deafens: ": answer lost", dallies: ": late"}[mv.verb]
	switch mv.verb {
	case observes:
		return who + "observe " + shortOf(watched[mv.at])
	case starts:
		return who + "begin " + s.display(s.keys[mv.at])
	case hears:
		return who + "hear " + s.display(s.keys[mv.at])
	case crashes:
		return who + "crash"
	case arrives:
		return "arrive"
	case does:
		return s.withUIDs(s.deeds[mv.at].text)
	}
	return who + "send " + s.display(s.keys[mv.at]) + suffering
}

// display is the key as this story names it, whose claims have UIDs of their own.
func (s *storyteller) display(key obj.Key) string {
	key.Name = s.likeness.larger(key.Name)
	return display(key)
}

// hooksCommand gives the controllers of the story the hooks of the world.
func (s *storyteller) hooksCommand() string {
	hooks := s.rules.Hooks
	deleters := slices.Concat(sets.List(hooks.Deleters), sets.List(hooks.SourceDeleters))
	command := "hooks"
	for _, registered := range []struct {
		what  string
		names []string
	}{{"provisioner", sets.List(hooks.Provisioners)}, {"deleter", deleters}, {"recycler", sets.List(hooks.Recyclers)}} {
		if len(registered.names) > 0 {
			command += " " + registered.what + "=" + strings.Join(registered.names, ",")
		}
	}
	return command
}

// display is the key as the stories name it.
func display(key obj.Key) string {
	return strings.TrimSuffix(shortOf(key.Kind)+"/"+key.Namespace, "/") + "/" + key.Name
}

// create writes a row of a table, under the header if the one before was another, and creates its object.
func (s *storyteller) create(name string) error {
	row := s.model.rows[name]
	cells := s.withUIDs(row.cells)
	if s.last != row.header {
		fmt.Fprintf(&s.text, "\n%s\n", row.header)
		s.last = row.header
	}
	fmt.Fprintf(&s.text, "%s\n", cells)
	err := s.stage.createAll(&script{}, block{kind: table, lines: []string{row.header, cells}})
	if err != nil {
		return err
	}
	_, key, _ := keyNamed(name)
	object, err := s.stage.server.Get(s.stage.ctx, key)
	s.stage.printed = len(s.stage.server.Calls())
	if err == nil {
		s.uids[name] = append(s.uids[name], string(object.GetUID()))
	}
	return err
}

// withUIDs puts in the UIDs that the other server has given.
func (s *storyteller) withUIDs(text string) string {
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
	_, key, _ := keyNamed(name)
	uid := "nobody"
	if object, err := s.stage.server.Get(s.stage.ctx, key); err == nil {
		uid = string(object.GetUID())
	}
	s.stage.printed = len(s.stage.server.Calls())
	return before + uid + after
}
