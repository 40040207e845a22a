package bindingtest

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/obj"
)

func (s *Server) get(call *Call) error {
	if err := knownKind(call.Key.Kind); err != nil {
		return err
	}
	found, ok := s.objects[call.Key.Kind][call.Key]
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
	for key, stored := range s.objects[call.Key.Kind] {
		if call.Key.Namespace == "" || call.Key.Namespace == key.Namespace {
			call.list = append(call.list, stored.object)
		}
	}
	slices.SortFunc(call.list, byName)
	return nil
}

// byName is the order of the objects of a kind.
func byName(a, b obj.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func knownKind(kind obj.Kind) error {
	if _, ok := infoOf(kind); !ok {
		return apierrors.NewBadRequest("bindingtest: the server has no kind " + string(kind))
	}
	return nil
}

func notFound(key obj.Key) error {
	info, _ := infoOf(key.Kind)
	return apierrors.NewNotFound(info.groupResource(), key.Name)
}

// compareKeys orders keys as they are printed: volumes before claims.
func compareKeys(a, b obj.Key) int { return cmp.Compare(a.String(), b.String()) }

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects.len()
}
