package clientgo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

var _ binding.Recorder = (*recorder)(nil)

// recorder sends events one after the other. The controller says each once (N), so what is dropped is told to nobody: the queue of
// client-go's broadcaster is a thousand events long for all together, and full once a tenant makes them faster than they are sent.
type recorder struct {
	clientset  kubernetes.Interface
	correlator *record.EventCorrelator
	more       chan struct{} // has one item if there may be events to send
	ended      chan struct{} // is closed once none is sent any more

	mu     sync.Mutex
	unsent map[string]*unsent // by namespace, the claim's or that of the volume's claimRef, of those that have any
	turns  []string           // the namespaces that have some to be sent now, the one to be served next first
}

// unsent is what there is to be sent for one namespace.
type unsent struct {
	order  []subjectOfEvent                // of what is to be sent now
	events map[subjectOfEvent]*eventToSend // these, and what was refused and is to be sent again after a while
}

// subjectOfEvent is what an event is about. Of two such events the later one counts.
type subjectOfEvent struct {
	on     obj.Key
	uid    types.UID
	reason decision.EventReason
}

// eventToSend is an event and, once it was tried to send it, what of it is to be sent.
type eventToSend struct {
	about  subjectOfEvent
	tenant string // the namespace in whose turn it is sent
	event  *corev1.Event
	result *record.EventCorrelateResult
}

const (
	unsentAtMost          = 10_000 // of a namespace, with what was refused
	sendWithin            = 30 * time.Second
	sendAgainAfter        = 10 * time.Second
	sendRefusedAgainAfter = 5 * time.Minute
	forgottenAfter        = time.Hour               // by the server, as its --event-ttl is
	sendRestWithin        = 10 * time.Second        // after the controller's end
	eventsNamespace       = metav1.NamespaceDefault // where those of objects without a namespace are
)

// Record has an event sent.
func (r *recorder) Record(event decision.Event) {
	now := metav1.Now()
	in := cmp.Or(event.On.Namespace, eventsNamespace)
	r.add(&eventToSend{about: subjectOfEvent{event.On, event.UID, event.Reason}, tenant: cmp.Or(event.Tenant, event.On.Namespace), event: &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: in, Name: nameOfEvent(event.On.Name, now)},
		InvolvedObject:      reference(event),
		Type:                event.Type,
		Reason:              string(event.Reason),
		Message:             event.Message,
		Source:              corev1.EventSource{Component: decision.EventSource},
		ReportingController: decision.EventSource,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
	}})
}

// nameOfEvent returns a name for an event that the server takes, also where the object's name is as long as names may be.
func nameOfEvent(on string, at metav1.Time) string {
	suffix := fmt.Sprintf(".%x", at.UnixNano())
	return strings.TrimRight(on[:min(len(on), validation.DNS1123SubdomainMaxLength-len(suffix))], "-.") + suffix
}

// add adds an event to the queue of its namespace, in the place of one of the same subject.
func (r *recorder) add(event *eventToSend) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keep(event) {
		r.queue(event.tenant, event.about)
	}
}

// addAfter does so after a while. The event counts among those of its namespace meanwhile.
func (r *recorder) addAfter(event *eventToSend, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.keep(event) {
		return
	}
	in, about := event.tenant, event.about // not the event, in whose place another one may come
	time.AfterFunc(after, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue(in, about)
	})
}

// keep keeps an event for its namespace, and reports whether it has a place there of its own, not that of one of the same subject.
func (r *recorder) keep(event *eventToSend) bool {
	waiting := r.unsent[event.tenant]
	switch {
	case waiting == nil:
		waiting = &unsent{events: map[subjectOfEvent]*eventToSend{}}
		if r.unsent == nil {
			r.unsent = map[string]*unsent{}
		}
		r.unsent[event.tenant] = waiting
	case waiting.events[event.about] != nil:
		if event.result == nil { // one that is sent again is the earlier one
			waiting.events[event.about] = event
		}
		return false
	case len(waiting.events) >= unsentAtMost:
		slog.Warn("too many events of a namespace are to be sent, one is dropped", "on", event.about.on.String(), "reason", event.about.reason, "message", event.event.Message)
		return false
	}
	waiting.events[event.about] = event
	return true
}

// queue has the event that is kept about a subject sent in the turn of its namespace.
func (r *recorder) queue(in string, about subjectOfEvent) {
	waiting := r.unsent[in]
	if len(waiting.order) == 0 {
		r.turns = append(r.turns, in)
	}
	waiting.order = append(waiting.order, about)
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// take removes the first event of the namespace whose turn it is; nil if there is none.
func (r *recorder) take() *eventToSend {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) == 0 {
		return nil
	}
	in := r.turns[0]
	r.turns = r.turns[1:]
	waiting := r.unsent[in]
	about := waiting.order[0]
	event := waiting.events[about]
	waiting.order = waiting.order[1:]
	delete(waiting.events, about)
	if len(waiting.order) > 0 {
		r.turns = append(r.turns, in)
	}
	if len(waiting.events) == 0 {
		delete(r.unsent, in)
	}
	return event
}

// run sends events until the context ends, and then for a while what is there to be sent: the next controller does not say it again (N).
func (r *recorder) run(ctx context.Context) {
	defer close(r.ended)
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(sendRestWithin, cancel) })()
	for sending.Err() == nil {
		event := r.take()
		if event == nil {
			select {
			case <-ctx.Done():
				return
			case <-r.more:
			}
			continue
		}
		err := r.send(sending, event)
		if err == nil {
			continue
		}
		after := retryAfter(err)
		if after == 0 || ctx.Err() != nil || time.Since(event.event.FirstTimestamp.Time) > forgottenAfter {
			slog.WarnContext(ctx, "the server does not take an event", "on", event.about.on.String(), "reason", event.about.reason, "message", event.event.Message, "error", err)
			continue
		}
		r.addAfter(event, after) // others go on meanwhile
	}
}

// send creates an event, or counts up an earlier one that is like it.
func (r *recorder) send(ctx context.Context, event *eventToSend) error {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	if event.result == nil {
		result, err := r.correlator.EventCorrelate(event.event)
		if err != nil {
			return err
		}
		event.result = result
	}
	if event.result.Skip {
		return nil
	}
	sent := event.result.Event
	events := r.clientset.CoreV1().Events(sent.Namespace)
	var stored *corev1.Event
	err := errNotThere
	if sent.Count > 1 {
		stored, err = events.Patch(ctx, sent.Name, types.StrategicMergePatchType, event.result.Patch, metav1.PatchOptions{})
	}
	if errors.Is(err, errNotThere) || apierrors.IsNotFound(err) {
		sent.ResourceVersion = ""
		stored, err = events.Create(ctx, sent, metav1.CreateOptions{})
	}
	switch {
	case err == nil:
		r.correlator.UpdateState(stored)
	case apierrors.IsAlreadyExists(err): // the answer to an earlier request was lost
		return nil
	}
	return err
}

var errNotThere = errors.New("there is no earlier event")

// retryAfter returns when the server may take an event that it has not taken; zero if it never will, for it is malformed or too large, or its
// namespace goes. What it refuses otherwise, for rights or a quota, somebody has to change.
func retryAfter(err error) time.Duration {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return 0
	case apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), !errors.As(err, &status), status.Status().Code >= 500:
		return sendAgainAfter
	}
	return sendRefusedAgainAfter
}
