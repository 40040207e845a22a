package bindingtest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/obj"
)

// mark is a moment in the history of the storage and its server.
type mark struct{ serverCalls, calls, restarts int }

func (s *Storage) now() mark {
	now := mark{calls: len(s.calls), restarts: s.restarts}
	if s.server != nil {
		now.serverCalls = len(s.server.callsFrom(0))
	}
	return now
}

// judgeRepetition notes a deletion of what is gone, if it is a double one.
func (s *Storage) judgeRepetition(volume *corev1.PersistentVolume) {
	before, answered := s.deleted[volume.Name]
	if !answered || s.restarts > before.restarts {
		return
	}
	for _, call := range s.calls[before.calls:len(s.calls)] {
		if call.Volume == volume.Name && !call.answered() {
			return
		}
	}
	if s.server == nil || !s.server.failedOn(volume, before.serverCalls) {
		s.problems = append(s.problems, fmt.Sprintf("double delete: the storage of %s was deleted, and is deleted again without a reason", volume.Name))
	}
}

// failedOn reports whether a call after the first n failed that a sync of the volume depends on.
func (s *Server) failedOn(volume *corev1.PersistentVolume, n int) bool {
	keys := []obj.Key{obj.VolumeKey(volume.Name), {Kind: KindAttachment}}
	if ref := volume.Spec.ClaimRef; ref != nil {
		keys = append(keys, obj.ClaimKey(ref.Namespace, ref.Name), obj.Key{Kind: KindPod, Namespace: ref.Namespace})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.calls[n:], func(call *Call) bool {
		absent := call.Verb == VerbGet && apierrors.IsNotFound(call.Err)
		return call.Err != nil && !absent && slices.Contains(keys, call.Key)
	})
}
