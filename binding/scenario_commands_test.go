package binding_test

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// do carries a command out and returns what it prints. What people do prints nothing unless the server
// refuses it.
func (s *stage) do(text string) ([]string, error) {
	if done, err := s.person(text); done || err != nil {
		return s.refusal(err)
	}
	if rest, ok := strings.CutPrefix(text, "rules "); ok {
		return nil, s.setRules(strings.Fields(rest))
	}
	if rest, ok := strings.CutPrefix(text, "hooks "); ok {
		return nil, s.setHooks(strings.Fields(rest))
	}
	if names, ok := strings.CutPrefix(text, "step "); ok {
		s.step(strings.Fields(names))
		return nil, nil
	}
	if printed, done, err := s.steps.do(text); done {
		return printed, err
	}
	switch text {
	case "show":
		return s.show()
	case "snapshot":
		s.snapshot = s.server.Snapshot()
		return nil, nil
	case "restore":
		s.server.Restore(s.snapshot)
		for _, a := range s.drivers {
			clear(a.written) // nobody can tell it of that
		}
		return nil, nil
	}
	name, rest, found := strings.Cut(text, ": ")
	if found && !strings.Contains(name, " ") {
		a := s.actor(name)
		return s.direct(a, rest, []*actor{a})
	}
	all := s.drivers
	if len(all) == 0 {
		all = []*actor{s.actor(defaultActor)}
	}
	return s.direct(all[0], text, all)
}

// direct is a command to a controller; those that drive are to all of them if none was named.
func (s *stage) direct(a *actor, text string, all []*actor) ([]string, error) {
	words := strings.Fields(text)
	switch {
	case text == "settle":
		return s.settle(all...), nil
	case text == "resync":
		a.Resync()
		return s.settle(all...), nil
	case text == "fall due":
		err := a.FallDue(s.ctx)
		return s.report(err, all), nil
	case text == "down" || text == "up":
		a.down = text == "down"
		return nil, nil
	case text == "restart":
		a.Restart()
		a.Controller.Hooks = a.hooks
		clear(a.written)
		a.delays = nil
		return nil, nil
	case words[0] == "hold" || words[0] == "release" || words[0] == "deliver":
		return nil, s.lag(a, words)
	}
	return nil, s.fault(a, text)
}

// lag is about how much of the cluster a controller has been told.
func (s *stage) lag(a *actor, words []string) error {
	for _, word := range words[1:] {
		kind, ok := kindNamed(word)
		if !ok {
			return fmt.Errorf("unknown kind %q", word)
		}
		switch words[0] {
		case "hold":
			a.Hold(kind.kind)
		case "release":
			a.Release(kind.kind)
		case "deliver":
			if a.Deliver(kind.kind, 1) == 0 {
				return fmt.Errorf("no change of a %s is left to deliver", word)
			}
		}
	}
	return nil
}

// setRules sets the rules of the controllers that start after it.
func (s *stage) setRules(words []string) error {
	if len(s.drivers) > 0 {
		return errors.New("a controller has started; set the rules before")
	}
	for _, word := range words {
		switch word {
		case "protection=On":
			s.rules.Protection = binding.ProtectionOn
		case "migrations=none":
			s.rules.Migrations = storageclass.Migrations{}
		default:
			return fmt.Errorf("unknown rule %q", word)
		}
	}
	return nil
}

// refusal prints what the server said to a person. Any other error is about the script.
func (s *stage) refusal(err error) ([]string, error) {
	s.printed = len(s.server.Calls())
	if reason := apierrors.ReasonForError(err); err != nil && reason != "" {
		return []string{"refused " + string(reason)}, nil
	}
	return nil, err
}

// show prints volumes and claims as kubectl get does.
func (s *stage) show() ([]string, error) {
	var lines []string
	for _, kind := range []obj.Kind{obj.KindVolume, obj.KindClaim} {
		list, err := s.server.List(s.ctx, kind, "")
		if err != nil {
			return nil, err
		}
		s.printed = len(s.server.Calls())
		lines = append(lines, tableOf(kind, list)...)
	}
	return lines, nil
}
