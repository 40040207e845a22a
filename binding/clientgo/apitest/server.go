// Package apitest has a clientset answer from a bindingtest.Server in the manner of kube-apiserver, so that what uses clientsets,
// informers or a whole program with a kubeconfig can be tested without a cluster. It serves over HTTP, or makes client-go's
// fake clientset honest:
//
//	server := apitest.New(bindingtest.NewServer())
//	clientset := kubernetes.NewForConfigOrDie(server.Start(t))
//
//	clientset := fake.NewClientset(objects...)
//	server := apitest.Back(clientset)
//
// Both answer every verb for volumes, claims, classes, nodes, CSINodes, pods and attachments, with the conflicts, the defaults
// and the finalizers of bindingtest, and bind pods. Over HTTP there are also events, to be created and listed, leases, and
// CSIDrivers and CSIStorageCapacities, to be listed and watched, but no discovery and no paging; on a fake these and all other
// kinds stay with the fake itself.
//
// server.go and fake.go have the two surfaces, with watch.go and fakewatch.go for their watches, and fixed.go for what never
// changes. operation.go, patch.go,
// selection.go, stream.go and journal.go are what they share.
package apitest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Server is an http.Handler in front of a bindingtest.Server. Both may be used at the same time: what a test does on the
// one behind it is seen by those that watch.
type Server struct {
	*bindingtest.Server
	// Client makes the requests to the server behind; faults are injected here. An error that is not one of the API breaks
	// the connection.
	Client *bindingtest.Client
	// Drivers and Capacities are listed and watched over HTTP, and never change.
	Drivers    []*storagev1.CSIDriver
	Capacities []*storagev1.CSIStorageCapacity

	leases leases

	mu       sync.Mutex
	journals map[obj.Kind]*journal
	connects chan struct{} // closed when all watches end
	denied   func(Request) bool
	events   []corev1.Event
}

// New returns a Server in front of another, from the state that it is in.
func New(behind *bindingtest.Server) *Server {
	s := &Server{
		Server:   behind,
		Client:   behind.NewClient("http"),
		journals: map[obj.Kind]*journal{},
		connects: make(chan struct{}),
	}
	for _, kind := range bindingtest.Kinds() {
		s.journals[kind] = newJournal(behind.Watch(kind))
	}
	return s
}

// Start listens until the test ends, and returns how to connect, without limits.
func (s *Server) Start(t testing.TB) *rest.Config {
	t.Helper()
	config, stop := s.Listen()
	t.Cleanup(stop)
	return config
}

// Listen listens until stop is called, and returns how to connect, without limits.
func (s *Server) Listen() (config *rest.Config, stop func()) {
	listening := httptest.NewServer(s)
	return &rest.Config{Host: listening.URL, QPS: -1}, func() {
		s.Disconnect()
		listening.CloseClientConnections()
		listening.Close()
	}
}

// Disconnect ends all watches, as a server does that restarts. Clients watch again from the version that they had.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.connects)
	s.connects = make(chan struct{})
}

// Compact forgets all changes so far, as etcd does after some minutes. A client that would watch from an older version has
// to list again, and only the list shows what was deleted meanwhile.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, journal := range s.journals {
		journal.compact()
	}
}

// Forget does what Compact does, and drops the log of calls and events too: a server that runs for long needs memory for its
// objects alone.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, journal := range s.journals {
		journal.compact()
	}
	s.events = nil
	s.Server.Forget()
}

// Restore takes the server back to a snapshot, as an etcd that is restored from a backup, and ends all watches. A
// watch that goes on from a later version gets nothing until the server has reached that once more, as with kube-apiserver.
func (s *Server) Restore(snapshot *bindingtest.Server) {
	s.mu.Lock() // so that no watch reads the change itself
	s.Server.Restore(snapshot)
	for kind := range s.journals {
		s.journals[kind] = newJournal(s.Server.Watch(kind))
	}
	s.mu.Unlock()
	s.Disconnect()
}

// Deny rejects from now on, as Forbidden, the requests that the function returns true for; nil rejects none.
func (s *Server) Deny(these func(Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = these
}

// connected returns a channel that is closed when the watches that begin now are to end.
func (s *Server) connected() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connects
}

func (s *Server) forbids(request Request) bool {
	s.mu.Lock()
	denied := s.denied
	s.mu.Unlock()
	return denied != nil && denied(request)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := parse(r)
	if err == nil && s.forbids(request) {
		err = forbidden(request)
	}
	if err != nil {
		answerError(w, err)
		return
	}
	switch {
	case request.Resource == "events":
		s.serveEvents(w, r, request)
	case request.Resource == "leases":
		s.leases.serve(w, r, request)
	case request.Resource == csiDrivers:
		serveFixed(s, w, r, request, "CSIDriver", s.Drivers)
	case request.Resource == csiStorageCapacities:
		serveFixed(s, w, r, request, "CSIStorageCapacity", s.Capacities)
	case request.Verb == "watch":
		s.serveWatch(w, r, request)
	case request.Verb == "list":
		s.serveList(w, r, request)
	default:
		s.serveObject(w, r, request)
	}
}
