package bindingtest

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/obj"
)

func (s *Server) update(call *Call) error {
	found, ok := s.objects[call.Key.Kind][call.Key]
	if !ok {
		return notFound(call.Key)
	}
	call.Before, call.After = found.object, found.object
	old := topOf(found.object)
	SetDefaults(old) // as whenever it reads from its storage (A6)
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
	if equality.Semantic.DeepEqual(found.object, object) {
		return nil
	}
	s.tick()
	s.store(call.Key, object, Modified)
	call.After = object
	return nil
}

// merge returns the object to store in place of old, if the call may do that.
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

// dropNamespace takes the namespace from an object that is in none, as the API does.
func dropNamespace(object obj.Object) {
	if key, err := KeyOf(object); err == nil && key.Namespace == "" {
		object.SetNamespace("")
	}
}

// keepMetadata puts back what is the server's own, as the API does before it checks an update: what
// may be left out, and what may not be undone.
func keepMetadata(object, old obj.Object) {
	if object.GetUID() == "" {
		object.SetUID(old.GetUID())
	}
	object.SetResourceVersion(old.GetResourceVersion())
	object.SetGeneration(old.GetGeneration())
	object.SetCreationTimestamp(old.GetCreationTimestamp())
	if object.GetManagedFields() == nil {
		object.SetManagedFields(old.GetManagedFields())
	}
	if deleted := old.GetDeletionTimestamp(); deleted != nil {
		object.SetDeletionTimestamp(deleted.DeepCopy())
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && object.GetDeletionGracePeriodSeconds() == nil {
		seconds := *grace
		object.SetDeletionGracePeriodSeconds(&seconds)
	}
}

// checkMetadata refuses a deletion by update, and new finalizers on an object being deleted (A5).
func checkMetadata(object, old obj.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessorUpdate(object, old, metadata())
	return append(errs, validation.ValidateFinalizers(object.GetFinalizers(), metadata("finalizers"))...)
}

func checkStatus(object obj.Object) field.ErrorList {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	var errs field.ErrorList
	for name, quantity := range claim.Status.Capacity {
		if quantity.Sign() < 0 {
			path := field.NewPath("status", "capacity").Key(string(name))
			errs = append(errs, field.Invalid(path, quantity.String(), "must not be negative"))
		}
	}
	return errs
}

// checkImmutable refuses changes of what an update may not change (A3, A4).
func checkImmutable(object, old obj.Object) field.ErrorList {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		return checkVolumeChange(o, old.(*corev1.PersistentVolume))
	case *corev1.PersistentVolumeClaim:
		return checkClaimChange(o, old.(*corev1.PersistentVolumeClaim))
	case *storagev1.StorageClass:
		return checkClassChange(o, old.(*storagev1.StorageClass))
	case *storagev1.VolumeAttachment:
		return unchanged(field.NewPath("spec"), o.Spec, old.(*storagev1.VolumeAttachment).Spec)
	}
	return nil
}

// checkVolumeChange holds a volume to A4.
func checkVolumeChange(volume, old *corev1.PersistentVolume) field.ErrorList {
	var errs field.ErrorList
	source, oldSource := volume.Spec.PersistentVolumeSource.DeepCopy(), old.Spec.PersistentVolumeSource
	if source.CSI != nil && oldSource.CSI != nil && oldSource.CSI.ControllerExpandSecretRef == nil {
		source.CSI.ControllerExpandSecretRef = nil // may be set once
	}
	errs = append(errs, unchanged(spec("persistentvolumesource"), *source, oldSource)...)
	errs = append(errs, unchanged(spec("volumeMode"), volume.Spec.VolumeMode, old.Spec.VolumeMode)...)
	if old.Spec.NodeAffinity != nil {
		errs = append(errs, unchanged(spec("nodeAffinity"), volume.Spec.NodeAffinity, old.Spec.NodeAffinity)...)
	}
	if old.Spec.VolumeAttributesClassName != nil && volume.Spec.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(spec("volumeAttributesClassName"), "cannot be removed"))
	}
	return errs
}

func checkClassChange(class, old *storagev1.StorageClass) field.ErrorList {
	errs := unchanged(field.NewPath("parameters"), class.Parameters, old.Parameters)
	errs = append(errs, unchanged(field.NewPath("provisioner"), class.Provisioner, old.Provisioner)...)
	errs = append(errs, unchanged(field.NewPath("reclaimPolicy"), class.ReclaimPolicy, old.ReclaimPolicy)...)
	return append(errs, unchanged(field.NewPath("volumeBindingMode"), class.VolumeBindingMode, old.VolumeBindingMode)...)
}

func unchanged(path *field.Path, value, old any) field.ErrorList {
	if equality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "cannot be changed")}
}

// checkClaimChange holds a claim to A3. What is left of the spec after the changes that are allowed
// must be as it was.
func checkClaimChange(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	errs := checkClassMove(claim, old)
	if old.Spec.VolumeName != "" && claim.Spec.VolumeName != old.Spec.VolumeName {
		errs = append(errs, field.Forbidden(spec("volumeName"), "once set, it cannot be changed"))
	}
	errs = append(errs, checkRequests(claim, old)...)
	errs = append(errs, checkAttributesClass(claim, old)...)
	rest, oldRest := claim.Spec.DeepCopy(), old.Spec.DeepCopy()
	for _, s := range []*corev1.PersistentVolumeClaimSpec{rest, oldRest} {
		s.VolumeName, s.StorageClassName, s.VolumeAttributesClassName, s.VolumeMode = "", nil, nil, nil
		delete(s.Resources.Requests, corev1.ResourceStorage)
	}
	errs = append(errs, unchanged(spec("volumeMode"), claim.Spec.VolumeMode, old.Spec.VolumeMode)...)
	return append(errs, unchanged(spec(), rest, oldRest)...)
}

// checkClassMove lets a class be given where there was none, and the beta annotation, otherwise
// immutable, be moved into the field.
func checkClassMove(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	class, oldClass := claim.Spec.StorageClassName, old.Spec.StorageClassName
	beta, hasBeta := claim.Annotations[betaClass]
	oldBeta, hadBeta := old.Annotations[betaClass]
	given := oldClass == nil && class != nil && (!hadBeta || *class == oldBeta)
	var errs field.ErrorList
	if !given && !equality.Semantic.DeepEqual(class, oldClass) {
		errs = append(errs, field.Forbidden(spec("storageClassName"), "cannot be changed, only given where it was nil"))
	}
	if moved := given && hadBeta && !hasBeta; beta != oldBeta && !moved {
		errs = append(errs, field.Forbidden(metadata("annotations").Key(betaClass), "cannot be changed"))
	}
	return errs
}

func checkRequests(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	size, oldSize := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	path := spec("resources", "requests").Key(string(corev1.ResourceStorage))
	has := old.Status.Capacity[corev1.ResourceStorage]
	switch {
	case size.Cmp(oldSize) == 0:
		return nil
	case old.Status.Phase != corev1.ClaimBound:
		return field.ErrorList{field.Forbidden(path, "can be changed only while the claim is Bound")}
	case size.Cmp(oldSize) < 0 && size.Cmp(has) <= 0:
		return field.ErrorList{field.Forbidden(path, "cannot be less than status.capacity, nor shrink to it")}
	}
	return nil
}

func checkAttributesClass(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	name, oldName := claim.Spec.VolumeAttributesClassName, old.Spec.VolumeAttributesClassName
	path := spec("volumeAttributesClassName")
	switch {
	case equality.Semantic.DeepEqual(name, oldName):
		return nil
	case old.Status.Phase != corev1.ClaimBound:
		return field.ErrorList{field.Forbidden(path, "can be changed only while the claim is Bound")}
	case old.Status.CurrentVolumeAttributesClassName != nil && (name == nil || *name == ""):
		return field.ErrorList{field.Forbidden(path, "cannot be removed while status.currentVolumeAttributesClassName is set")}
	}
	return nil
}

// checkResize returns what the admission plugin PersistentVolumeClaimResize does: only a class with
// allowVolumeExpansion lets a claim grow (A3).
func (s *Server) checkResize(call *Call, object, old obj.Object) error {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok || call.Subresource == Status {
		return nil
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if size.Cmp(old.(*corev1.PersistentVolumeClaim).Spec.Resources.Requests[corev1.ResourceStorage]) <= 0 {
		return nil
	}
	class, ok := s.objects.get(obj.Key{Kind: obj.KindClass, Name: className(claim)}).object.(*storagev1.StorageClass)
	if ok && class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion {
		return nil
	}
	info, _ := infoOf(call.Key.Kind)
	return apierrors.NewForbidden(info.groupResource(), call.Key.Name, errors.New("its class does not allow volume expansion"))
}

func className(claim *corev1.PersistentVolumeClaim) string {
	if beta, ok := claim.Annotations[betaClass]; ok {
		return beta
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}
