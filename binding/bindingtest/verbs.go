package bindingtest

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// verbs are the calls that a Server and each of its Clients answer, all made of one function.
type verbs struct {
	perform func(*Call) error
}

func (v verbs) do(ctx context.Context, call *Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.perform(call)
}

func (v verbs) write(ctx context.Context, verb Verb, sub Subresource, object obj.Object) (obj.Object, error) {
	key, err := KeyOf(object)
	if err != nil {
		return nil, err
	}
	call := &Call{Verb: verb, Subresource: sub, Key: key, Sent: copyOf(object)}
	if err := v.do(ctx, call); err != nil {
		return nil, err
	}
	return copyOf(call.answer), nil
}

// Create stores a new object and returns it as stored (A1, A6).
func (v verbs) Create(ctx context.Context, object obj.Object) (obj.Object, error) {
	return v.write(ctx, VerbCreate, "", object)
}

// Update stores metadata and spec, and returns the object as stored (A2 to A5). With an empty
// resourceVersion it overwrites whatever is there, as the API does.
func (v verbs) Update(ctx context.Context, object obj.Object) (obj.Object, error) {
	return v.write(ctx, VerbUpdate, "", object)
}

// UpdateStatus stores metadata and status, and returns the object as stored (A2).
func (v verbs) UpdateStatus(ctx context.Context, object obj.Object) (obj.Object, error) {
	return v.write(ctx, VerbUpdate, Status, object)
}

// Delete deletes an object, or marks it as being deleted while it has finalizers (A5).
//
// A pod that runs on a node and has a grace period, from the options or from its own
// terminationGracePeriodSeconds, is only marked; FinishPod does what the kubelet does at the end.
func (v verbs) Delete(ctx context.Context, key obj.Key, options metav1.DeleteOptions) error {
	return v.do(ctx, &Call{Verb: VerbDelete, Key: key, Options: *options.DeepCopy()})
}

// FinishPod ends a pod as a kubelet does: it deletes it without grace.
func (v verbs) FinishPod(ctx context.Context, namespace, name string) error {
	return v.Delete(ctx, PodKey(namespace, name), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// Get reads one object.
func (v verbs) Get(ctx context.Context, key obj.Key) (obj.Object, error) {
	call := &Call{Verb: VerbGet, Key: key}
	if err := v.do(ctx, call); err != nil {
		return nil, err
	}
	return copyOf(call.answer), nil
}

// List reads the objects of a kind, sorted by namespace and name. An empty namespace means all.
func (v verbs) List(ctx context.Context, kind obj.Kind, namespace string) ([]obj.Object, error) {
	call := &Call{Verb: VerbList, Key: obj.Key{Kind: kind, Namespace: namespace}}
	if err := v.do(ctx, call); err != nil {
		return nil, err
	}
	list := make([]obj.Object, len(call.list))
	for i := range list {
		list[i] = copyOf(call.list[i])
	}
	return list, nil
}

// Record keeps an event in the log of calls.
func (v verbs) Record(event binding.Event) {
	_ = v.perform(&Call{Verb: VerbRecord, Key: event.On, Event: event})
}

// GetVolume reads a volume.
func (v verbs) GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.Get(ctx, obj.VolumeKey(name)))
}

// GetClaim reads a claim.
func (v verbs) GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return as[*corev1.PersistentVolumeClaim](v.Get(ctx, obj.ClaimKey(namespace, name)))
}

// ListPods lists the pods of a namespace, sorted by name.
func (v verbs) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	return allAs[*corev1.Pod](v.List(ctx, KindPod, namespace))
}

// ListAttachments lists the VolumeAttachments, sorted by name.
func (v verbs) ListAttachments(ctx context.Context) ([]*storagev1.VolumeAttachment, error) {
	return allAs[*storagev1.VolumeAttachment](v.List(ctx, KindAttachment, ""))
}

// UpdateVolume is Update for a volume.
func (v verbs) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.Update(ctx, volume))
}

// UpdateVolumeStatus is UpdateStatus for a volume.
func (v verbs) UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.UpdateStatus(ctx, volume))
}

// UpdateClaim is Update for a claim.
func (v verbs) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return as[*corev1.PersistentVolumeClaim](v.Update(ctx, claim))
}

// UpdateClaimStatus is UpdateStatus for a claim.
func (v verbs) UpdateClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return as[*corev1.PersistentVolumeClaim](v.UpdateStatus(ctx, claim))
}

// CreateVolume is Create for a volume.
func (v verbs) CreateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return as[*corev1.PersistentVolume](v.Create(ctx, volume))
}

// DeleteVolume is Delete for a volume, if the preconditions allow it.
func (v verbs) DeleteVolume(ctx context.Context, name string, preconditions metav1.Preconditions) error {
	return v.Delete(ctx, obj.VolumeKey(name), metav1.DeleteOptions{Preconditions: &preconditions})
}

// as gives an answer its type.
func as[T obj.Object](object obj.Object, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	typed, ok := object.(T)
	if !ok {
		return none, errors.New("bindingtest: a hook answered the call without an object")
	}
	return typed, nil
}

// allAs gives what is in a list its type.
func allAs[T obj.Object](list []obj.Object, err error) ([]T, error) {
	typed := make([]T, len(list))
	for i := range list {
		typed[i] = list[i].(T)
	}
	return typed, err
}
