package binding_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// effect is what a move did.
type effect struct {
	writes int      // of the controllers, that changed something
	events int      // sent
	said   string   // by a sync that ended with an error
	broken []string // rules, and how

	observed []observed
}

// observed is that a leader was told of a change of a kind.
type observed struct{ who, kind int }

func (m *model) broke(format string, args ...any) {
	m.effect.broken = append(m.effect.broken, fmt.Sprintf(format, args...))
}

// decided takes what a step of a sync came to.
func (m *model) decided(l *leader, at int, step binding.Step, reads places, failed bool) {
	m.effect.events += len(step.Published())
	l.running[at] = nil
	if !step.Done() {
		next := &errand{action: step.Action(), target: m.place(step.Action().Target()), reads: reads, failed: failed}
		if sent := subject(next.action); sent != nil {
			next.content, next.version = m.things.contentOf(sent), versionIn(sent)
		}
		m.judgeDecision(l, next)
		l.running[at] = next
		return
	}
	if step.Err() != nil {
		m.effect.said = step.Err().Error()
	}
	if step.After() > 0 && (failed || step.Err() != nil) {
		l.queue |= place(at)
	}
	if m.sabotage != wakesNobody {
		m.enqueue(l, step.Next())
	}
}

// send lets a call reach the server, or not.
func (m *model) send(now *moment, l *leader, at int, how verb) {
	running := *l.running[at]
	var got answer
	switch {
	case how == collides:
		got = answer{fail: conflict}
	case how == misses, how == dallies:
		got = answer{fail: noAnswer}
	default:
		got = m.sabotaged(now, l, running.action)
	}
	switch how {
	case deafens:
		got = answer{fail: noAnswer}
	case dallies:
		now.late = &running
	}
	answered := running
	answered.answer = &got
	l.running[at] = &answered
}

// perform does what a controller asks of the server.
func (m *model) perform(now *moment, action binding.Action) answer {
	s := &now.server
	switch {
	case action.RunsHook():
		return m.runHook(now, action)
	case !action.Writes():
		switch action.Key.Kind {
		case obj.KindPods:
			return s.list(bindingtest.KindPod)
		case obj.KindAttachments:
			return s.list(bindingtest.KindAttachment)
		}
		return s.get(m.place(action.Key))
	}
	at := m.place(action.Target())
	before, wrote := s.objects[at], s.written[at]
	got := s.write(at, action)
	if s.written[at] != wrote {
		m.effect.writes++
		m.judgeWrite(now, at, before)
		m.judgeEnd(now, action, before)
		m.leave(now, at, before)
		if action.Claim != nil {
			now.asked = now.asked || action.Claim.Annotations[provisioner] != ""
			m.use(now, action.Claim)
		}
	}
	return got
}

// hear lets a sync see its answer, and decide again.
func (m *model) hear(now *moment, l *leader, at int) {
	was := l.running[at]
	before := l.state.Known(m.keys[was.target])
	step := l.state.Proceed(m.keys[at], replyOf(was.action.Target(), was.answer))
	reads := was.reads
	target := place(was.target)
	switch fail := was.answer.fail; {
	case was.action.Kind == binding.Read && (fail == "" || fail == notFound):
		reads |= target
		l.doubts &^= target
	case was.action.Writes():
		reads = 0
		if fail != "" && fail != invalid || was.action.Kind == binding.DeleteVolume { // its finalizers may keep it
			l.doubts |= target
		}
	}
	if was.action.Writes() && was.answer.got != nil {
		m.judgeHeard(l, was.answer.got)
	}
	m.judgeKnown(l, was.target, before)
	m.decided(l, at, step, reads, was.failed || was.answer.fail != "" && (was.action.RunsHook() || was.action.Kind == binding.CreateVolume))
}

var (
	errNoAnswer    = errors.New("connection lost")
	errorsByReason = map[failure]error{
		alreadyExists: apierrors.NewAlreadyExists(schema.GroupResource{Resource: "things"}, "it"),
		conflict:      apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "it", errors.New("modified")),
		invalid:       apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "it", nil),
		noAnswer:      errNoAnswer,
	}
)

// replyOf is the answer as the controller sees it. Objects are shared: nobody may modify them (X6).
func replyOf(read obj.Key, a *answer) any {
	switch {
	case a.fail == notFound:
		return binding.Reply(nil, notFoundError(read))
	case a.fail != "":
		return binding.Reply(nil, errorsByReason[a.fail])
	case a.got != nil:
		return binding.Reply(a.got.object, nil)
	}
	if read.Kind == obj.KindAttachments {
		return binding.ReplyAttachments(objectsOf[*storagev1.VolumeAttachment](a.listed))
	}
	return binding.ReplyPods(objectsOf[*corev1.Pod](a.listed))
}

func objectsOf[T obj.Object](listed []*thing) []T {
	objects := make([]T, len(listed))
	for i, one := range listed {
		objects[i] = one.object.(T)
	}
	return objects
}
