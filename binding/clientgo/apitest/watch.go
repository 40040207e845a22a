package apitest

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// read brings the journal of a kind up to date and lets the function look at it.
func (s *Server) read(kind obj.Kind, look func(*journal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	journal := s.journals[kind]
	journal.catchUp()
	look(journal)
}

// list returns the objects that a request selects, which are not to be modified, and the resourceVersion of the list: as etcd's, that of
// the last change of any kind.
func (s *Server) list(ctx context.Context, request Request, options metav1.ListOptions) (items []obj.Object, version string, err error) {
	selected, err := selectionOf(request, options)
	if err != nil {
		return nil, "", err
	}
	// Faults of the client are injected here, and the call is logged.
	if _, err := s.Client.List(ctx, request.kind(), request.Namespace); err != nil {
		return nil, "", err
	}
	var newest uint64
	for _, kind := range bindingtest.Kinds() {
		s.read(kind, func(j *journal) { newest = max(newest, j.version) })
	}
	s.read(request.kind(), func(j *journal) { // after that, so that it has all up to the newest
		items, version = j.objects(selected), strconv.FormatUint(max(newest, j.version), 10)
	})
	return items, version, nil
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, request Request) {
	items, version, err := s.list(r.Context(), request, listOptions(r))
	if err != nil {
		answerError(w, err)
		return
	}
	answerList(w, request.Group, string(request.kind()), version, items)
}

// answerList answers with the items, of which there may be none.
func answerList[T any](w http.ResponseWriter, group, kind, version string, items []T) {
	if items == nil {
		items = []T{}
	}
	apiVersion := "v1"
	if group != "" {
		apiVersion = group + "/v1"
	}
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind + "List",
		"metadata":   metav1.ListMeta{ResourceVersion: version},
		"items":      items,
	})
}

func listOptions(r *http.Request) metav1.ListOptions {
	query := r.URL.Query()
	options := metav1.ListOptions{
		LabelSelector:   query.Get("labelSelector"),
		FieldSelector:   query.Get("fieldSelector"),
		ResourceVersion: query.Get("resourceVersion"),
	}
	if initial, err := strconv.ParseBool(query.Get("sendInitialEvents")); err == nil {
		options.SendInitialEvents = &initial
	}
	return options
}

// serveWatch streams changes until the client is gone, has missed a change or is disconnected.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, request Request) {
	out := json.NewEncoder(w)
	stream, err := s.newStream(request, listOptions(r), func(event watch.Event) bool {
		return out.Encode(map[string]any{"type": event.Type, "object": event.Object}) == nil
	})
	if err != nil {
		answerError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	ended := s.connected()
	for {
		changed := s.Server.Changed()
		if stream.more() != upToDate {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-ended:
			return
		case <-changed:
		}
	}
}
