package bindingtest

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pvbind/pvbind/binding/obj"
)

// What admission adds to new objects (A6).
const (
	claimProtection  = "kubernetes.io/pvc-protection"
	volumeProtection = "kubernetes.io/pv-protection"
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
	betaClass        = corev1.BetaStorageClassAnnotation
)

// maxGenerateName leaves room in a name of 63 characters for a suffix of five.
const maxGenerateName = 58

func (s *Server) create(call *Call) error {
	object := copyOf(call.Sent)
	info, _ := infoOf(call.Key.Kind)
	if object.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	dropNamespace(object)
	s.fillIn(object)
	s.startStatus(object)
	SetDefaults(object)
	s.admit(object)
	if errs := Validate(object); len(errs) > 0 {
		return invalid(call.Key.Kind, object.GetName(), errs)
	}
	call.Key.Name = object.GetName()
	if existing, ok := s.objects[call.Key.Kind][call.Key]; ok {
		call.Before, call.After = existing.object, existing.object
		return apierrors.NewAlreadyExists(info.groupResource(), call.Key.Name)
	}
	s.tick()
	s.store(call.Key, object, Added)
	call.After, call.answer = object, object
	return nil
}

// fillIn sets the metadata that is the server's own. The next write, if this one is valid, is what
// numbers the object.
func (s *Server) fillIn(object obj.Object) {
	number := s.version + 1
	if base := object.GetGenerateName(); object.GetName() == "" && base != "" {
		object.SetName(fmt.Sprintf("%s%05d", base[:min(len(base), maxGenerateName)], number%100000))
	}
	object.SetUID(types.UID(fmt.Sprintf("uid-%d", number)))
	object.SetCreationTimestamp(*s.next())
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
}

// startStatus drops the status sent (A1). A node keeps it, as in the API.
func (s *Server) startStatus(object obj.Object) {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		o.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending, LastPhaseTransitionTime: s.next()}
	case *corev1.PersistentVolumeClaim:
		o.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending}
	case *storagev1.VolumeAttachment:
		o.Status = storagev1.VolumeAttachmentStatus{}
	}
}

// admit returns what the admission plugins StorageObjectInUseProtection and DefaultStorageClass do.
func (s *Server) admit(object obj.Object) {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		o.Finalizers = including(o.Finalizers, volumeProtection)
	case *corev1.PersistentVolumeClaim:
		o.Finalizers = including(o.Finalizers, claimProtection)
		if _, beta := o.Annotations[betaClass]; o.Spec.StorageClassName == nil && !beta {
			o.Spec.StorageClassName = s.defaultClassName()
		}
	}
}

func including(finalizers []string, finalizer string) []string {
	if slices.Contains(finalizers, finalizer) {
		return finalizers
	}
	return append(finalizers, finalizer)
}

// defaultClassName returns that of the newest default class, then of the first by name; nil if there is none.
func (s *Server) defaultClassName() *string {
	var best *storagev1.StorageClass
	for _, stored := range s.objects[obj.KindClass] {
		class := stored.object.(*storagev1.StorageClass)
		if isDefault(class) && (best == nil || before(class, best)) {
			best = class
		}
	}
	if best == nil {
		return nil
	}
	name := best.Name
	return &name
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[defaultClass] == "true" || class.Annotations[betaDefaultClass] == "true"
}

func before(a, b *storagev1.StorageClass) bool {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

func invalid(kind obj.Kind, name string, errs field.ErrorList) error {
	info, _ := infoOf(kind)
	return apierrors.NewInvalid(schema.GroupKind{Group: info.group, Kind: string(kind)}, name, errs)
}

// SetDefaults fills in what was left out of an object as an API server does, on create, on every update and whenever it
// reads from its storage (A6). Server.Create and Server.Update do it; Server.Load does not: what a cluster hands out
// has all this already, what was written by hand need not.
//
// It replaces fields of the object, and writes to nothing that they point to.
func SetDefaults(object obj.Object) {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		setDefault(&o.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		setDefaultPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		setDefault(&o.Status.Phase, corev1.VolumePending)
	case *corev1.PersistentVolumeClaim:
		setDefaultPointer(&o.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		setDefault(&o.Status.Phase, corev1.ClaimPending)
	case *storagev1.StorageClass:
		setDefaultPointer(&o.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		setDefaultPointer(&o.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	case *corev1.Pod:
		if o.Spec.TerminationGracePeriodSeconds == nil {
			o.Spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
		}
	}
}

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setDefaultPointer[T ~string](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
