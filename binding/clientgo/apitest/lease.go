package apitest

import (
	"errors"
	"net/http"
	"strconv"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// leases stores the leases of leader election.
type leases struct {
	mu      sync.Mutex
	stored  map[string]*coordinationv1.Lease
	version int
}

// Lease returns a lease as it is stored; nil if there is none.
func (s *Server) Lease(namespace, name string) *coordinationv1.Lease {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	return s.leases.stored[namespace+"/"+name].DeepCopy()
}

func (l *leases) serve(w http.ResponseWriter, r *http.Request, request Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored, err := l.do(r, request)
	if err != nil {
		answerError(w, err)
		return
	}
	answer(w, http.StatusOK, typed(stored))
}

func (l *leases) do(r *http.Request, request Request) (*coordinationv1.Lease, error) {
	var sent *coordinationv1.Lease
	if request.Verb != "get" {
		decoded, err := decode(r)
		if err != nil {
			return nil, err
		}
		sent, _ = decoded.(*coordinationv1.Lease)
		if sent == nil {
			return nil, apierrors.NewBadRequest("the body has no Lease")
		}
		request.Name = sent.Name
	}
	old := l.stored[request.Namespace+"/"+request.Name]
	switch {
	case request.Verb == "create" && old != nil:
		return nil, apierrors.NewAlreadyExists(request.groupResource(), request.Name)
	case request.Verb != "create" && old == nil:
		return nil, apierrors.NewNotFound(request.groupResource(), request.Name)
	case request.Verb == "update" && sent.ResourceVersion != old.ResourceVersion:
		return nil, apierrors.NewConflict(request.groupResource(), request.Name, errors.New("it has changed"))
	case request.Verb == "get":
		return old, nil
	}
	return l.store(request, sent), nil
}

func (l *leases) store(request Request, sent *coordinationv1.Lease) *coordinationv1.Lease {
	l.version++
	sent.Namespace, sent.ResourceVersion = request.Namespace, strconv.Itoa(l.version)
	if l.stored == nil {
		l.stored = map[string]*coordinationv1.Lease{}
	}
	l.stored[request.Namespace+"/"+request.Name] = sent
	return sent
}
