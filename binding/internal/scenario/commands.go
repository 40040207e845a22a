package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// Do carries a command out and returns what it prints. What people do prints nothing unless the server
// refuses it.
func (s *Runner) Do(text string) ([]string, error) {
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
	case "restore":
		s.Server.Restore(s.snapshot)
		for _, a := range s.controllers {
			clear(a.written) // nobody can tell it of that
		}
		s.steps.restored()
		return nil, nil
	}
	name, rest, found := strings.Cut(text, ": ")
	if found && !strings.Contains(name, " ") {
		a := s.controller(name)
		return s.directController(a, rest, []*controller{a})
	}
	all := s.controllers
	if len(all) == 0 {
		all = []*controller{s.controller(defaultController)}
	}
	return s.directController(all[0], text, all)
}

// directController returns a command to a controller; those that drive are to all of them if none was named.
func (s *Runner) directController(a *controller, text string, all []*controller) ([]string, error) {
	words := strings.Fields(text)
	switch {
	case text == "settle":
		return s.settle(all...), nil
	case text == "resync":
		a.Resync()
		return s.settle(all...), nil
	case text == "observe restore":
		a.ObserveRestore()
		return nil, nil
	case text == "fall due":
		err := a.AdvanceClock(s.Ctx)
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

// lag holds changes of the cluster back from a controller, or lets them through.
func (s *Runner) lag(a *controller, words []string) error {
	for _, word := range words[1:] {
		kind, ok := kindNamed(word)
		if !ok {
			return fmt.Errorf("unknown kind %q", word)
		}
		switch words[0] {
		case "hold":
			a.Hold(kind.Kind)
		case "release":
			a.Release(kind.Kind)
		case "deliver":
			if a.Deliver(kind.Kind, 1) == 0 {
				return fmt.Errorf("no change of a %s is left to deliver", word)
			}
		}
	}
	return nil
}

// setRules sets the rules of the controllers that start after it.
func (s *Runner) setRules(words []string) error {
	if len(s.controllers) > 0 {
		return errors.New("a controller has started; set the rules before")
	}
	for _, word := range words {
		switch word {
		case "protection=On":
			s.Rules.Protection = decision.ProtectionOn
		case "migrations=none":
			s.Rules.Migrations = storageclass.Migrations{}
		default:
			return fmt.Errorf("unknown rule %q", word)
		}
	}
	return nil
}

// refusal prints what the server said to a person. Any other error is about the script.
func (s *Runner) refusal(err error) ([]string, error) {
	s.Printed = len(s.Server.Calls())
	if reason := apierrors.ReasonForError(err); err != nil && reason != "" {
		return []string{"refused " + string(reason)}, nil
	}
	return nil, err
}

// show prints volumes and claims as kubectl get does.
func (s *Runner) show() ([]string, error) {
	var lines []string
	for _, kind := range []obj.Kind{obj.KindVolume, obj.KindClaim} {
		list, err := s.Server.List(s.Ctx, kind, "")
		if err != nil {
			return nil, err
		}
		s.Printed = len(s.Server.Calls())
		lines = append(lines, tableOf(kind, list)...)
	}
	return lines, nil
}

// person does what somebody with kubectl, a scheduler, a provisioner or kube-controller-manager does, or who makes a backup. It reports
// whether the command is one of those.
func (s *Runner) person(text string) (done bool, err error) {
	if text == "snapshot" {
		s.snapshot = s.Server.Snapshot()
		return true, nil
	}
	words := strings.Fields(text)
	if len(words) < 2 {
		return false, nil
	}
	verb, args := words[0], words[2:]
	switch verb {
	case "delete", "remove", "unprotect", "set", "annotate", "label":
	default:
		return false, nil
	}
	kind, key, err := KeyNamed(words[1])
	if err != nil {
		return true, err
	}
	switch verb {
	case "delete":
		return true, s.Server.Delete(s.Ctx, key, metav1.DeleteOptions{})
	case "remove":
		return true, s.remove(key)
	case "unprotect":
		return true, s.unprotect(key)
	case "set":
		return true, s.set(kind, key, args)
	}
	return true, s.mark(key, verb, args)
}

// remove deletes an object and takes off whatever keeps it.
func (s *Runner) remove(key obj.Key) error {
	if err := s.Server.Delete(s.Ctx, key, metav1.DeleteOptions{}); err != nil {
		return err
	}
	object, err := s.Server.Get(s.Ctx, key)
	if err != nil {
		return nil // nothing kept it
	}
	object.SetFinalizers(nil)
	_, err = s.Server.Update(s.Ctx, object)
	return err
}

// unprotect does what kube-controller-manager's protection controller does to a volume: it lets it go if it is not Bound.
func (s *Runner) unprotect(key obj.Key) error {
	object, err := s.Server.Get(s.Ctx, key)
	if err != nil {
		return err
	}
	if Unprotect(object) {
		_, err = s.Server.Update(s.Ctx, object)
	}
	return err
}

// Unprotect takes the finalizer that protects a volume off one that is being deleted and not Bound.
func Unprotect(object obj.Object) (changed bool) {
	volume, ok := object.(*corev1.PersistentVolume)
	if !ok || !reclaim.VolumeReleasable(volume, reclaim.VolumeProtection) {
		return false
	}
	volume.Finalizers = slices.DeleteFunc(volume.Finalizers, func(finalizer string) bool { return finalizer == reclaim.VolumeProtection })
	return true
}

// set changes columns: "CLASS=fast".
func (s *Runner) set(kind KindTable, key obj.Key, args []string) error {
	object, err := s.Server.Get(s.Ctx, key)
	if err != nil {
		return err
	}
	status := false
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		column, ok := kind.Column(name)
		if !found || !ok {
			return fmt.Errorf("%q is not COLUMN=value; the columns are %s", arg, kind.names())
		}
		if err := column.Set(object, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		status = status || column.status
	}
	if status {
		_, err = s.Server.UpdateStatus(s.Ctx, object)
	} else {
		_, err = s.Server.Update(s.Ctx, object)
	}
	return err
}

// mark changes annotations or labels as kubectl does: "name=value", "name-".
func (s *Runner) mark(key obj.Key, verb string, args []string) error {
	object, err := s.Server.Get(s.Ctx, key)
	if err != nil {
		return err
	}
	marks := object.GetAnnotations()
	if verb == "label" {
		marks = object.GetLabels()
	}
	if marks == nil {
		marks = map[string]string{}
	}
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		gone, goes := strings.CutSuffix(arg, "-")
		switch {
		case found:
			marks[name] = value
		case goes:
			delete(marks, gone)
		default:
			return fmt.Errorf("%q is neither name=value nor name-", arg)
		}
	}
	if verb == "label" {
		object.SetLabels(marks)
	} else {
		object.SetAnnotations(marks)
	}
	_, err = s.Server.Update(s.Ctx, object)
	return err
}
