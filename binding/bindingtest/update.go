package bindingtest

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/obj"
)

func (s *Server) update(call *Call) error {
	found, ok := s.objects[call.Key.Kind][call.Key]
	if !ok {
		return notFound(call.Key)
	}
	old := found.object
	call.Before, call.After = old, old
	object, err := s.merge(call, old)
	if err != nil {
		return err
	}
	call.answer = object
	if old.GetDeletionTimestamp() != nil && !finalizersLeft(object) && graceIsOver(old) {
		s.tick()
		s.remove(call.Key)
		call.After = nil
		return nil
	}
	if equality.Semantic.DeepEqual(old, object) {
		return nil
	}
	s.tick()
	s.store(call.Key, object, Modified)
	call.After = object
	return nil
}

// merge is the object to store in place of old, if the call may do that.
func (s *Server) merge(call *Call, old obj.Object) (obj.Object, error) {
	if err := checkIdentity(call, old); err != nil {
		return nil, err
	}
	object := topOf(call.Sent) // both are only read from here on
	dropNamespace(object)
	SetDefaults(object)
	if err := s.takeOver(call, old, object); err != nil {
		return nil, err
	}
	keepMetadata(object, old)
	errs := checkMetadata(object, old)
	if call.Subresource == Status {
		errs = append(errs, checkStatus(object)...)
	} else {
		errs = append(errs, Validate(object)...)
		errs = append(errs, checkImmutable(object, old)...)
	}
	if len(errs) > 0 {
		return nil, invalid(call.Key.Kind, call.Key.Name, errs)
	}
	return object, s.checkResize(call, object, old)
}

// checkIdentity refuses a write that was meant for another object or an older state of this one (A2).
func checkIdentity(call *Call, old obj.Object) error {
	info, _ := infoOf(call.Key.Kind)
	conflict := func(err error) error {
		return apierrors.NewConflict(info.groupResource(), call.Key.Name, err)
	}
	if uid := call.Sent.GetUID(); uid != "" && uid != old.GetUID() {
		return conflict(fmt.Errorf("the UID sent (%s) is not that of the object (%s)", uid, old.GetUID()))
	}
	if version := call.Sent.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return conflict(errors.New("the object has been modified; read it again and apply your changes to the latest version"))
	}
	return nil
}

// takeOver puts back the half of the object that this call does not write (A2). The object shares it with
// old, for what is stored is never modified.
func (s *Server) takeOver(call *Call, old, object obj.Object) error {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		was := old.(*corev1.PersistentVolume)
		keepHalf(call.Subresource, &o.Spec, was.Spec, &o.Status, was.Status)
		s.stampPhase(o, was)
	case *corev1.PersistentVolumeClaim:
		was := old.(*corev1.PersistentVolumeClaim)
		keepHalf(call.Subresource, &o.Spec, was.Spec, &o.Status, was.Status)
	case *corev1.Pod:
		was := old.(*corev1.Pod)
		keepHalf(call.Subresource, &o.Spec, was.Spec, &o.Status, was.Status)
	case *corev1.Node:
		was := old.(*corev1.Node)
		keepHalf(call.Subresource, &o.Spec, was.Spec, &o.Status, was.Status)
	case *storagev1.VolumeAttachment:
		was := old.(*storagev1.VolumeAttachment)
		keepHalf(call.Subresource, &o.Spec, was.Spec, &o.Status, was.Status)
	case *storagev1.StorageClass:
		if call.Subresource == Status {
			info, _ := infoOf(call.Key.Kind)
			return apierrors.NewMethodNotSupported(info.groupResource(), "update status")
		}
	}
	return nil
}

func keepHalf[Spec, Status any](sub Subresource, spec *Spec, oldSpec Spec, status *Status, oldStatus Status) {
	if sub == "" {
		*status = oldStatus
	} else {
		*spec = oldSpec
	}
}

// stampPhase sets the time of the transition with each change of phase, unless the writer sent one (A1).
func (s *Server) stampPhase(volume, old *corev1.PersistentVolume) {
	sent, was := volume.Status.LastPhaseTransitionTime, old.Status.LastPhaseTransitionTime
	switch {
	case volume.Status.Phase == old.Status.Phase && sent == nil:
		volume.Status.LastPhaseTransitionTime = was
	case volume.Status.Phase != old.Status.Phase && (sent == nil || sent.Equal(was)):
		volume.Status.LastPhaseTransitionTime = s.next()
	}
}
