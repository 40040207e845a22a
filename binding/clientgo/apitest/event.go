package apitest

import (
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// Published are the events that were created, as they came.
func (s *Server) Published() []corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// takeEvent keeps an event in the log of the server. It cannot change one that it has, so a client that wants to count
// up an older event is sent to create another.
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
	s.Client.Record(binding.Event{
		On:      obj.Key{Kind: obj.Kind(on.Kind), Namespace: on.Namespace, Name: on.Name},
		UID:     on.UID,
		Type:    event.Type,
		Reason:  binding.EventReason(event.Reason),
		Message: event.Message,
	})
	answer(w, http.StatusCreated, event)
}
