package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// planned is a fault: "conflict on write 2", "before read 1: delete pv/a".
var planned = regexp.MustCompile(`^([a-z ]+) (write|read|hook) (\S+?)(?:: (.*))?$`)

var errTimedOut = errors.New("timed out")

// fault plans what goes wrong with the n-th write, read or call of a hook from now on.
func (s *Runner) fault(a *controller, text string) error {
	found := planned.FindStringSubmatch(text)
	if found == nil {
		return fmt.Errorf("unknown command %q", text)
	}
	what, kind, number, meanwhile := found[1], found[2], found[3], found[4]
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not the number of a write", number)
	}
	if what == "crash after" && kind == "write" {
		a.Client.CrashAfter(n)
		return nil
	}
	if kind == "hook" {
		fault, known := s.faultOfHook(a, what, meanwhile)
		if !known || (what == "before") != (meanwhile != "") {
			return fmt.Errorf("unknown fault %q", what)
		}
		fault.planAfter(a.hookFaults[a.made["hook"]+n])
		a.hookFaults[a.made["hook"]+n] = fault
		return nil
	}
	hook := s.hook(what, a.nth(kind, n), meanwhile)
	if hook == nil {
		return fmt.Errorf("unknown fault %q", what)
	}
	a.Client.Use(hook)
	return nil
}

// hook returns what happens to the call that matches; nil if no such fault is known.
func (s *Runner) hook(what string, match bindingtest.Match, meanwhile string) bindingtest.Hook {
	switch {
	case (what == "before") != (meanwhile != ""):
		return nil
	case what == "before":
		return bindingtest.Before(1, match, func() { s.meanwhile(meanwhile) })
	case what == "conflict on":
		return bindingtest.Conflict(1, match)
	case what == "lose answer of":
		return bindingtest.LoseAnswer(1, match)
	case what == "not found at", what == "proxy answers":
		return notFoundBy(what, match)
	case what == "empty answer of":
		return otherAnswer(match, func(key obj.Key) obj.Object { return emptyOf(key.Kind) })
	case what == "bare answer of":
		return otherAnswer(match, testkit.BareObject)
	case what == "earlier answer of":
		return otherAnswer(match, s.earlier)
	case what == "time out":
		return bindingtest.Fail(1, match, errTimedOut)
	case what == "forbid":
		return bindingtest.Fail(1, match, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not allowed")))
	}
	return nil
}

// notFoundBy answers a call by NotFound, whatever there is: as the server itself would, or as client-go understands a
// proxy that has no such page.
func notFoundBy(what string, match bindingtest.Match) bindingtest.Hook {
	return func(call *bindingtest.Call, do func() error) error {
		err := testkit.NotFoundError(call.Key)
		switch {
		case !match(call):
			return do()
		case what == "proxy answers":
			err = testkit.ProxyError(call.Key)
		}
		return err
	}
}

// otherAnswer answers a call with success and another object than the server did.
func otherAnswer(match bindingtest.Match, object func(obj.Key) obj.Object) bindingtest.Hook {
	return func(call *bindingtest.Call, do func() error) error {
		if !match(call) {
			return do()
		}
		return bindingtest.Answer(1, func(*bindingtest.Call) bool { return true }, object(call.Key))(call, do)
	}
}

// emptyOf returns an object without anything in it, as client-go makes it of {}.
func emptyOf(kind obj.Kind) obj.Object {
	if kind == obj.KindVolume {
		return &corev1.PersistentVolume{}
	}
	return &corev1.PersistentVolumeClaim{}
}

// earlier returns the last object that had the name of the one that there is, as a cache in front of the server may show it.
func (s *Runner) earlier(key obj.Key) (found obj.Object) {
	var current obj.Object
	for _, call := range slices.Backward(s.Server.Calls()) {
		switch {
		case call.Key != key || call.After == nil:
		case current == nil:
			current = call.After
		case call.After.GetUID() != current.GetUID():
			return call.After
		}
	}
	s.violate("%s had no object before", key)
	return current
}

// meanwhile returns what somebody else does while a controller works: a person, or another controller that
// settles. It is printed with what the controller does.
func (s *Runner) meanwhile(text string) {
	done, err := s.person(text)
	if name, ok := strings.CutSuffix(text, ": settle"); !done && ok {
		done, err = true, s.controller(name).Settle(s.Ctx)
	}
	if !done || err != nil {
		s.violate("%q cannot be done meanwhile: %v", text, err)
	}
}
