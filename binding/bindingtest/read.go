package bindingtest

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding"
)

func (s *Server) get(call *Call) error {
	if err := knownKind(call.Key.Kind); err != nil {
		return err
	}
	found, ok := s.objects[call.Key]
	if !ok {
		return notFound(call.Key)
	}
	call.answer = found.object
	return nil
}

func (s *Server) list(call *Call) error {
	if err := knownKind(call.Key.Kind); err != nil {
		return err
	}
	for key, stored := range s.objects {
		if key.Kind == call.Key.Kind && (call.Key.Namespace == "" || call.Key.Namespace == key.Namespace) {
			call.list = append(call.list, stored.object)
		}
	}
	slices.SortFunc(call.list, func(a, b binding.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return nil
}

func knownKind(kind binding.Kind) error {
	if _, ok := infoOf(kind); !ok {
		return apierrors.NewBadRequest("bindingtest: the server has no kind " + string(kind))
	}
	return nil
}

func notFound(key binding.Key) error {
	info, _ := infoOf(key.Kind)
	return apierrors.NewNotFound(info.groupResource(), key.Name)
}

// keys are those of the stored objects of a kind, in order.
func (s *Server) keys(kind binding.Kind) []binding.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []binding.Key
	for key := range s.objects {
		if key.Kind == kind {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b binding.Key) int { return cmp.Compare(a.String(), b.String()) })
	return keys
}

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}
