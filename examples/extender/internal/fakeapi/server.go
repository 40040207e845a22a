// Package fakeapi is an API server for tests that serves all that the extender requests: what apitest has, and besides
// CSIDrivers and CSIStorageCapacities.
package fakeapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
)

// Server is an API server. Drivers and capacities never change.
type Server struct {
	*apitest.Server
	Drivers    []*storagev1.CSIDriver
	Capacities []*storagev1.CSIStorageCapacity
}

// New returns an empty Server.
func New() *Server { return &Server{Server: apitest.New(bindingtest.NewServer())} }

// Start listens until the test ends, and returns how to connect, without limits.
func (s *Server) Start(t testing.TB) *rest.Config {
	t.Helper()
	listening := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Disconnect()
		listening.CloseClientConnections()
		listening.Close()
	})
	return &rest.Config{Host: listening.URL, QPS: -1}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/apis/storage.k8s.io/v1/csidrivers":
		serveAll(w, r, "CSIDriver", s.Drivers)
	case path == "/apis/storage.k8s.io/v1/csistoragecapacities":
		serveAll(w, r, "CSIStorageCapacity", s.Capacities)
	default:
		s.Server.ServeHTTP(w, r)
	}
}

// serveAll answers a list, or a watch on which nothing happens after the beginning.
func serveAll[T any](w http.ResponseWriter, r *http.Request, kind string, items []*T) {
	out := json.NewEncoder(w)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		if items == nil {
			items = []*T{}
		}
		_ = out.Encode(map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, item := range items {
			_ = out.Encode(map[string]any{"type": "ADDED", "object": item})
		}
		_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": kind,
			"metadata": metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}})
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}
