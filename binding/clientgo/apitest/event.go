package apitest

import (
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Published returns the events that were created, in order.
func (s *Server) Published() []corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// serveEvents adds an event to the log of the server, or lists what is there. No stored event is changed, so a client that
// would count up an older one gets an error, and creates another.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request, request Request) {
	switch {
	case request.Group != corev1.GroupName:
		answerError(w, missing(r.URL.Path))
	case request.Verb == "list":
		s.listEvents(w, r, request)
	case request.Verb == "create":
		s.takeEvent(w, r)
	default:
		answerError(w, missing(r.URL.Path))
	}
}

func (s *Server) listEvents(w http.ResponseWriter, r *http.Request, request Request) {
	selector, err := fields.ParseSelector(listOptions(r).FieldSelector)
	if err != nil {
		answerError(w, badRequest(err))
		return
	}
	events := slices.DeleteFunc(s.Published(), func(event corev1.Event) bool {
		return request.Namespace != "" && event.Namespace != request.Namespace || !selector.Matches(fieldsOfEvent(event))
	})
	answerList(w, "", "Event", "1", events)
}

func fieldsOfEvent(event corev1.Event) fields.Set {
	return fields.Set{
		"metadata.name":            event.Name,
		"involvedObject.kind":      event.InvolvedObject.Kind,
		"involvedObject.namespace": event.InvolvedObject.Namespace,
		"involvedObject.name":      event.InvolvedObject.Name,
		"involvedObject.uid":       string(event.InvolvedObject.UID),
		"reason":                   event.Reason,
		"type":                     event.Type,
	}
}

func (s *Server) takeEvent(w http.ResponseWriter, r *http.Request) {
	decoded, err := decode(r)
	event, ok := decoded.(*corev1.Event)
	if err != nil || !ok {
		answerError(w, missing(r.URL.Path))
		return
	}
	s.mu.Lock()
	s.events = append(s.events, *event)
	s.mu.Unlock()
	on := event.InvolvedObject
	s.Client.Record(decision.Event{
		On:      obj.Key{Kind: obj.Kind(on.Kind), Namespace: on.Namespace, Name: on.Name},
		UID:     on.UID,
		Type:    event.Type,
		Reason:  decision.EventReason(event.Reason),
		Message: event.Message,
	})
	answer(w, http.StatusCreated, event)
}
