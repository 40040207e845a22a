package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Settle does in one call what a cluster would have done by now, on any client: it binds claims, plays the CSI drivers that make
// and delete their storage, places pods, releases volumes, and removes the protection finalizers from what nobody uses. It returns
// what is not bound or not placed, and the errors that remain. See bindingtest.SettleOn for what it does, and
// bindingtest.SettleOptions for what it leaves to others; the zero value suits most tests.
//
// The client must have no cache. Its scheme needs core/v1 and storage/v1, as the default one has.
func Settle(ctx context.Context, c client.Client, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	if c == nil {
		return bindingtest.Outcome{}, errors.New("controllerruntime.Settle: no client")
	}
	return bindingtest.SettleOn(ctx, api{Client{Client: c, fake: true}}, options)
}

// MustBind settles, and fails the test unless every claim is Bound and every pod placed; the message says why. Call it again
// whenever the test has changed something.
func MustBind(t bindingtest.TB, c client.Client) {
	t.Helper()
	bindingtest.MustBindOn(t, api{Client{Client: c, fake: true}}, bindingtest.SettleOptions{})
}

var _ bindingtest.API = api{}

// api is a client as bindingtest settles on it.
type api struct{ Client }

// List lists the objects of a kind.
func (a api) List(ctx context.Context, kind obj.Kind, namespace string) ([]obj.Object, error) {
	list := listOf(kind)
	if list == nil {
		return nil, fmt.Errorf("controllerruntime: %s is not listed", kind)
	}
	if err := a.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, explained(kind, err)
	}
	var objects []obj.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		object.SetManagedFields(nil)
		objects = append(objects, object)
		return nil
	})
	return objects, err
}

func listOf(kind obj.Kind) client.ObjectList {
	switch kind {
	case obj.KindVolume:
		return &corev1.PersistentVolumeList{}
	case obj.KindClaim:
		return &corev1.PersistentVolumeClaimList{}
	case obj.KindPod:
		return &corev1.PodList{}
	case obj.KindNode:
		return &corev1.NodeList{}
	case obj.KindClass:
		return &storagev1.StorageClassList{}
	case obj.KindCSINode:
		return &storagev1.CSINodeList{}
	case obj.KindAttachment:
		return &storagev1.VolumeAttachmentList{}
	}
	return nil
}

// explained says what to do about a scheme that lacks a kind.
func explained(kind obj.Kind, err error) error {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if !runtime.IsNotRegisteredError(cause) {
			continue
		}
		group := "corev1"
		switch kind {
		case obj.KindClass, obj.KindCSINode, obj.KindAttachment:
			group = "storagev1"
		}
		return fmt.Errorf("%w: add %s.AddToScheme to the client's scheme", err, group)
	}
	return err
}

// Create creates an object.
func (a api) Create(ctx context.Context, object obj.Object) (obj.Object, error) {
	return answeredCopy(object, func(copied client.Object) error { return a.Client.Create(ctx, copied) })
}

// Update writes metadata and spec of an object.
func (a api) Update(ctx context.Context, object obj.Object) (obj.Object, error) {
	return answeredCopy(object, func(copied client.Object) error { return a.Client.Update(ctx, copied) })
}

func answeredCopy(object obj.Object, call func(client.Object) error) (obj.Object, error) {
	copied := object.DeepCopyObject().(client.Object)
	return answered(copied, call(copied))
}

// BindPod sets the node of a pod by the subresource binding, for an API server does not let an update do that. The fake client has
// no such subresource, and lets it.
func (a api) BindPod(ctx context.Context, pod *corev1.Pod, node string) error {
	err := a.SubResource("binding").Create(ctx, pod.DeepCopy(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: string(obj.KindNode), Name: node},
	})
	if err == nil || !lacksBinding(err) {
		return err
	}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	return a.Client.Update(ctx, bound)
}

// lacksBinding reports whether a server may have no subresource binding: it says so, or it is a fake whose error is none of the API.
func lacksBinding(err error) bool {
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
