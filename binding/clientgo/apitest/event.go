package apitest

import (
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Published returns the events that were created, in order.
func (s *Server) Published() []corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// takeEvent adds an event to the log of the server. It changes no stored event, so a client that would count up an older
// one gets an error, and creates another.
func (s *Server) takeEvent(w http.ResponseWriter, r *http.Request, request Request) {
	decoded, err := decode(r)
	event, ok := decoded.(*corev1.Event)
	if err != nil || !ok || request.Verb != "create" {
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
