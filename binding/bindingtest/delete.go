package bindingtest

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// delete removes an object, or marks it while finalizers or a pod's grace hold it (A5).
func (s *Server) delete(call *Call) error {
	if err := knownKind(call.Key.Kind); err != nil {
		return err
	}
	if len(call.Options.DryRun) > 0 {
		return apierrors.NewBadRequest("bindingtest: a dry run is not supported")
	}
	found, ok := s.objects[call.Key.Kind][call.Key]
	if !ok {
		return notFound(call.Key)
	}
	call.Before, call.After = found.object, found.object
	if err := checkPreconditions(call); err != nil {
		return err
	}
	if pod, ok := found.object.(*corev1.Pod); ok {
		s.deletePod(call, pod)
		return nil
	}
	if finalizersLeft(found.object) {
		s.mark(call, 0)
		return nil
	}
	s.tick()
	s.remove(call.Key)
	call.After = nil
	return nil
}

func checkPreconditions(call *Call) error {
	want, object := call.Options.Preconditions, call.Before
	if want == nil {
		return nil
	}
	info, _ := infoOf(call.Key.Kind)
	if want.UID != nil && *want.UID != object.GetUID() {
		return apierrors.NewConflict(info.groupResource(), call.Key.Name, errors.New("the precondition names another UID"))
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != object.GetResourceVersion() {
		return apierrors.NewConflict(info.groupResource(), call.Key.Name, errors.New("the precondition names another resourceVersion"))
	}
	return nil
}

// deletePod marks a pod first, as the API always does, and removes it if nothing holds it.
func (s *Server) deletePod(call *Call, pod *corev1.Pod) {
	grace := graceOf(pod, call.Options)
	running := pod.DeletionTimestamp != nil && !graceIsOver(pod)
	if running && (call.Options.GracePeriodSeconds == nil || grace >= *pod.DeletionGracePeriodSeconds) {
		return // a grace period can only be shortened
	}
	s.mark(call, grace)
	if grace == 0 && !finalizersLeft(pod) {
		s.tick()
		s.remove(call.Key)
		call.After = nil
	}
}

// graceOf returns how many seconds a pod has to end. One that runs nowhere has none.
func graceOf(pod *corev1.Pod, options metav1.DeleteOptions) int64 {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	grace := options.GracePeriodSeconds
	if grace == nil {
		grace = pod.Spec.TerminationGracePeriodSeconds
	}
	switch {
	case grace == nil:
		return 0
	case *grace < 0:
		return 1
	}
	return *grace
}

func graceIsOver(object metav1.Object) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// mark sets the deletionTimestamp: when the grace ends.
func (s *Server) mark(call *Call, grace int64) {
	was := call.Before
	if was.GetDeletionTimestamp() != nil && graceIsOver(was) {
		return
	}
	s.tick()
	object := copyOf(was)
	at := metav1.NewTime(s.now.Add(time.Duration(grace) * time.Second))
	object.SetDeletionTimestamp(&at)
	object.SetDeletionGracePeriodSeconds(&grace)
	s.store(call.Key, object, Modified)
	call.After = object
}

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

// garbage returns copies of the objects to be collected.
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

// gone returns the objects that have been deleted.
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
