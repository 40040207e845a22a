package bindingtest

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// CollectGarbage does what the garbage collector of a cluster does: it deletes the objects whose owners were all here
// and have all gone, such as the claims of a pod's generic ephemeral volumes. It returns them as they were, sorted by
// kind, namespace and name; what they owned goes with the next call, when they are gone themselves.
//
// An owner that was never here may be of a kind that the server does not keep: what it owns stays.
func (s *Server) CollectGarbage(ctx context.Context) ([]obj.Object, error) {
	collector := s.NewClient("garbage-collector")
	garbage := s.garbage()
	for i, object := range garbage {
		key, err := KeyOf(object)
		if err != nil {
			return garbage[:i], err
		}
		uid := object.GetUID()
		if err := collector.Delete(ctx, key, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
			return garbage[:i], err
		}
	}
	return garbage, nil
}

// garbage are copies of the objects to be collected.
func (s *Server) garbage() []obj.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.gone()
	if len(gone) == 0 {
		return nil
	}
	var garbage []obj.Object
	for _, kind := range Kinds() {
		first := len(garbage)
		for _, stored := range s.objects[kind] {
			owners := stored.object.GetOwnerReferences()
			left := slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool { return !gone[owner.UID] })
			if len(owners) > 0 && !left && stored.object.GetDeletionTimestamp() == nil {
				garbage = append(garbage, copyOf(stored.object))
			}
		}
		slices.SortFunc(garbage[first:], byName)
	}
	return garbage
}

// gone are the objects that have been deleted.
func (s *Server) gone() map[types.UID]bool {
	gone := map[types.UID]bool{}
	for _, changes := range s.changes {
		for _, change := range changes {
			if change.Type == Deleted {
				gone[change.Object.GetUID()] = true
			}
		}
	}
	return gone
}
