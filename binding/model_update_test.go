package binding_test

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// deletionTime is when everything is deleted: the model has no clock, and no decision asks for the time.
var deletionTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// half is the part of an object that a write is about (A2).
type half string

const (
	specHalf   half = "Spec"
	statusHalf half = "Status"
)

// write makes the write of a controller.
func (s *tinyServer) write(at int, action binding.Action) answer {
	switch action.Kind {
	case binding.CreateVolume:
		return s.create(action.Volume)
	case binding.DeleteVolume:
		return s.deleteExactly(at, action.Volume)
	case binding.UpdateVolumeStatus, binding.UpdateClaimStatus:
		return s.update(subject(action), statusHalf)
	}
	return s.update(subject(action), specHalf)
}

// update stores metadata and one half of an object (A2 to A5). An empty version overwrites anything.
func (s *tinyServer) update(sent obj.Object, part half) answer {
	at := s.things.place(keyOfAny(sent))
	stored := s.objects[at]
	if stored == nil {
		return answer{fail: notFound}
	}
	old := stored.object
	version := sent.GetResourceVersion()
	if version != "" && version != strconv.Itoa(int(stored.version)) || sent.GetUID() != "" && sent.GetUID() != old.GetUID() {
		return answer{fail: conflict}
	}
	object := merged(sent, old, part)
	if !allowed(object, old) {
		return answer{fail: invalid}
	}
	switch {
	case old.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0:
		last := s.things.keep(at, object, stored.version)
		s.remove(at)
		return answer{got: last}
	case s.things.contentOf(object) == stored.content:
		return answer{got: stored}
	}
	return answer{got: s.store(at, object)}
}

// merged is the object to store: the half that was sent, and the rest as it was. It shares with both.
func merged(sent, old obj.Object, part half) obj.Object {
	var object obj.Object
	switch o := sent.(type) {
	case *corev1.PersistentVolume:
		volume, was := *o, old.(*corev1.PersistentVolume)
		keepOther(part, &volume.Spec, was.Spec, &volume.Status, was.Status)
		object = &volume
	case *corev1.PersistentVolumeClaim:
		claim, was := *o, old.(*corev1.PersistentVolumeClaim)
		keepOther(part, &claim.Spec, was.Spec, &claim.Status, was.Status)
		object = &claim
	default:
		panic("the model updates volumes and claims only")
	}
	object.SetUID(old.GetUID())
	object.SetDeletionTimestamp(old.GetDeletionTimestamp())
	object.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	return object
}

func keepOther[Spec, Status any](part half, spec *Spec, oldSpec Spec, status *Status, oldStatus Status) {
	if part == specHalf {
		*status = oldStatus
	} else {
		*spec = oldSpec
	}
}

// allowed holds an update to A3 and A5, as far as anybody in the model tries.
func allowed(object, old obj.Object) bool {
	if old.GetDeletionTimestamp() != nil {
		for _, finalizer := range object.GetFinalizers() {
			if !slices.Contains(old.GetFinalizers(), finalizer) {
				return false
			}
		}
	}
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return true
	}
	was := old.(*corev1.PersistentVolumeClaim)
	class, oldClass := claim.Spec.StorageClassName, was.Spec.StorageClassName
	return (was.Spec.VolumeName == "" || claim.Spec.VolumeName == was.Spec.VolumeName) &&
		(oldClass == nil || equality.Semantic.DeepEqual(class, oldClass))
}
