package controllerruntime

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/obj"
)

var (
	_ binding.Client           = Client{}
	_ binding.AttachmentLister = Client{}
	_ binding.Follower         = Client{}
)

// Client is a binding.Client on a client of controller-runtime. It needs an API server: the lists of controller-runtime's fake
// client have no resourceVersion, and are taken for none. Settle works on that too.
//
// That of a Reconciler returns an error, once, for a list that is older than another of its kind that it has read, or than a claim or
// a volume that it was told of: see clientgo.Lists.
type Client struct {
	client.Client
	// Live reads from the server itself, as a manager's GetAPIReader does. Nil: Client does, because it has no cache.
	Live client.Reader
	// Timeout bounds each call; 30 s if zero. The outcome of a write that takes longer is found by a read (B6).
	Timeout time.Duration

	fake  bool            // Client may be a fake one, as in Settle
	lists *clientgo.Lists // nil: no list is compared with another
}

const defaultTimeout = 30 * time.Second

// call makes one call within the timeout: a reply that never comes would hold the object, and a worker, for ever.
func (c Client) call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, defaultTimeout))
	defer cancel()
	return do(ctx)
}

func (c Client) live() client.Reader {
	if c.Live == nil {
		return bounded{c.Client, c}
	}
	return bounded{c.Live, c}
}

// bounded makes each read a call of the Client.
type bounded struct {
	client.Reader
	by Client
}

func (b bounded) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return b.by.call(ctx, func(ctx context.Context) error { return b.Reader.Get(ctx, key, object, options...) })
}

func (b bounded) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return b.by.call(ctx, func(ctx context.Context) error { return b.Reader.List(ctx, list, options...) })
}

// answered returns the object that a call has filled in, or its error. That it is the object which was asked for is checked by the
// binding.Controller.
func answered[T metav1.Object](object T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	object.SetManagedFields(nil) // no decision needs them, and the server keeps its own
	return object, nil
}

// Reached notes how far the server was, by the resourceVersion of a claim or a volume, for the lists that are requested after that.
func (c Client) Reached(version string) { c.lists.Reached(version) }

// GetVolume reads a volume. One that is not found is listed, to confirm that: see obj.Confirm.
func (c Client) GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	key, volume := obj.VolumeKey(name), &corev1.PersistentVolume{}
	volume, err := answered(volume, c.live().Get(ctx, client.ObjectKey{Name: name}, volume))
	if c.fake || !obj.IsAbsent(err, key) {
		return volume, err
	}
	list := &corev1.PersistentVolumeList{}
	failed := c.live().List(ctx, list, named(name))
	return answered(obj.Confirm(key, err, list, pointers(list.Items), failed))
}

// GetClaim reads a claim. One that is not found is listed, to confirm that: see obj.Confirm.
func (c Client) GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	key, claim := obj.ClaimKey(namespace, name), &corev1.PersistentVolumeClaim{}
	claim, err := answered(claim, c.live().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim))
	if c.fake || !obj.IsAbsent(err, key) {
		return claim, err
	}
	list := &corev1.PersistentVolumeClaimList{}
	failed := c.live().List(ctx, list, client.InNamespace(namespace), named(name))
	return answered(obj.Confirm(key, err, list, pointers(list.Items), failed))
}

// named selects the object of a name alone.
func named(name string) client.MatchingFields {
	return client.MatchingFields{metav1.ObjectNameField: name}
}

// ListClaims lists the claims of all namespaces.
func (c Client) ListClaims(ctx context.Context) ([]*corev1.PersistentVolumeClaim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := c.list(ctx, obj.ClaimsKey(), list); err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

// ListPods lists the pods of a namespace.
func (c Client) ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.list(ctx, obj.PodsKey(namespace), list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

// ListAttachments lists all VolumeAttachments.
func (c Client) ListAttachments(ctx context.Context) ([]*storagev1.VolumeAttachment, error) {
	list := &storagev1.VolumeAttachmentList{}
	if err := c.list(ctx, obj.AttachmentsKey(), list); err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

// list reads the list of a key. One that is none of an API server's is an error. Those of a fake client have no resourceVersion.
func (c Client) list(ctx context.Context, key obj.Key, list client.ObjectList, options ...client.ListOption) error {
	if c.fake {
		return c.live().List(ctx, list, options...)
	}
	return c.lists.Read(key, func() (metav1.ListInterface, error) { return list, c.live().List(ctx, list, options...) })
}

func pointers[T any](items []T) []*T {
	found := make([]*T, len(items))
	for i := range items {
		found[i] = &items[i]
	}
	return found
}

// UpdateVolume writes metadata and spec of a volume.
func (c Client) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	volume = volume.DeepCopy()
	if ref := volume.Spec.ClaimRef; c.fake && ref != nil {
		ref.ResourceVersion = "" // each object has versions of its own there, and a claim that comes again has smaller ones
	}
	return answered(volume, c.call(ctx, func(ctx context.Context) error { return c.Update(ctx, volume) }))
}

// UpdateVolumeStatus writes metadata and status of a volume.
func (c Client) UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	volume = volume.DeepCopy()
	return answered(volume, c.call(ctx, func(ctx context.Context) error { return c.Status().Update(ctx, volume) }))
}

// UpdateClaim writes metadata and spec of a claim.
func (c Client) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	claim = claim.DeepCopy()
	return answered(claim, c.call(ctx, func(ctx context.Context) error { return c.Update(ctx, claim) }))
}

// UpdateClaimStatus writes metadata and status of a claim.
func (c Client) UpdateClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	claim = claim.DeepCopy()
	return answered(claim, c.call(ctx, func(ctx context.Context) error { return c.Status().Update(ctx, claim) }))
}

// CreateVolume creates a volume.
func (c Client) CreateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	volume = volume.DeepCopy()
	if c.fake && volume.UID == "" {
		volume.UID = uuid.NewUUID()
	}
	return answered(volume, c.call(ctx, func(ctx context.Context) error { return c.Create(ctx, volume) }))
}

// DeleteVolume deletes a volume, if the preconditions allow it.
func (c Client) DeleteVolume(ctx context.Context, name string, preconditions metav1.Preconditions) error {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return c.call(ctx, func(ctx context.Context) error { return c.Delete(ctx, volume, client.Preconditions(preconditions)) })
}
