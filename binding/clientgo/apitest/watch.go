package apitest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pvbind/pvbind/binding/obj"
)

// pollPeriod is how often a watch looks for changes: the server behind does not announce them.
const pollPeriod = 2 * time.Millisecond

// read brings the journal of a kind up to date and lets the function look at it.
func (s *Server) read(kind obj.Kind, look func(*journal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	journal := s.journals[kind]
	journal.catchUp()
	look(journal)
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, request Request) {
	kind := kinds()[request.Resource]
	if err := s.mayList(r.Context(), request); err != nil {
		answerError(w, err)
		return
	}
	s.read(kind, func(j *journal) {
		items := j.objects(request.Namespace)
		if items == nil {
			items = []obj.Object{}
		}
		version := "v1"
		if request.Group != "" {
			version = request.Group + "/v1"
		}
		answer(w, http.StatusOK, map[string]any{
			"apiVersion": version,
			"kind":       string(kind) + "List",
			"metadata":   metav1.ListMeta{ResourceVersion: strconv.FormatUint(j.version, 10)},
			"items":      items,
		})
	})
}

// mayList returns the error that a fault of the client injects, and logs the list.
func (s *Server) mayList(ctx context.Context, request Request) error {
	_, err := s.Client.List(ctx, request.key().Kind, request.Namespace)
	return err
}

// serveWatch streams changes from a version on or, as informers request, all objects first.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, request Request) {
	stream := &stream{server: s, kind: request.key().Kind, namespace: request.Namespace, out: json.NewEncoder(w)}
	from := r.URL.Query().Get("resourceVersion")
	stream.version, _ = strconv.ParseUint(from, 10, 64)
	initial := r.URL.Query().Get("sendInitialEvents") == "true"
	if !initial && stream.expired() {
		answerError(w, apierrors.NewResourceExpired("too old resource version: "+from))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	if initial {
		stream.begin()
	}
	ended := s.connected()
	ticker := time.NewTicker(pollPeriod)
	defer ticker.Stop()
	for stream.more() {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-ended:
			return
		case <-ticker.C:
		}
	}
}

// stream is one watch.
type stream struct {
	server    *Server
	kind      obj.Kind
	namespace string
	version   uint64 // what was sent
	out       *json.Encoder
}

func (s *stream) send(kind watch.EventType, object any) bool {
	return s.out.Encode(map[string]any{"type": kind, "object": object}) == nil
}

func (s *stream) expired() (yes bool) {
	s.server.read(s.kind, func(j *journal) { yes = s.version < j.floor })
	return yes
}

// begin sends all objects and then the bookmark that ends the initial list.
func (s *stream) begin() {
	var objects []obj.Object
	s.server.read(s.kind, func(j *journal) { objects, s.version = j.objects(s.namespace), j.version })
	for _, object := range objects {
		s.send(watch.Added, object)
	}
	s.send(watch.Bookmark, map[string]any{
		"apiVersion": "v1",
		"kind":       string(s.kind),
		"metadata": metav1.ObjectMeta{
			ResourceVersion: strconv.FormatUint(s.version, 10),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	})
}

// more sends what is new; false if the client is gone, or has missed a change.
func (s *stream) more() bool {
	var later []change
	missed := false
	s.server.read(s.kind, func(j *journal) { later, missed = j.since(s.version, s.namespace), s.version < j.floor })
	for _, change := range later {
		if !s.send(change.Type, change.Object) {
			return false
		}
		s.version = change.version
	}
	return !missed
}
