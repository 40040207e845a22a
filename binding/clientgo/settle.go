package clientgo

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Settle does in one call what a cluster would have done by now, on any clientset: it binds claims, plays the CSI drivers that make
// and delete their storage, places pods, releases volumes, and removes the protection finalizers from what nobody uses. It returns
// what is not bound or not placed, and the errors that remain. See bindingtest.SettleOn for what it does, and
// bindingtest.SettleOptions for what it leaves to others; the zero value suits most tests.
//
// A fake clientset of client-go needs one more line before, apitest.Back(clientset), for it has neither UIDs nor versions of its
// own. Without that line Settle returns an error that says so.
func Settle(ctx context.Context, set kubernetes.Interface, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	if set == nil {
		return bindingtest.Outcome{}, errors.New("clientgo.Settle: no clientset")
	}
	on := &api{Client: &Client{Clientset: set}}
	outcome, err := bindingtest.SettleOn(ctx, on, options)
	if on.notBacked != nil {
		err = fmt.Errorf("clientgo.Settle: %w", on.notBacked)
	}
	return outcome, err
}

// MustBind settles, and fails the test unless every claim is Bound and every pod placed; the message says why. Call it again
// whenever the test has changed something.
func MustBind(t bindingtest.TB, set kubernetes.Interface) {
	t.Helper()
	outcome, err := Settle(t.Context(), set, bindingtest.SettleOptions{})
	if err := errors.Join(outcome.Err(), err); err != nil {
		t.Fatalf("not everything is bound:\n%v", err)
	}
}

var _ bindingtest.API = (*api)(nil)

// api is a clientset as bindingtest settles on it. It is used from one goroutine.
type api struct {
	*Client
	notBacked error // what shows that this is a fake clientset as it comes
}

// lacks notes and returns that an object lacks what every API server sets.
func (a *api) lacks(object obj.Object, what string) error {
	if a.notBacked != nil {
		return a.notBacked
	}
	key, _ := bindingtest.KeyOf(object)
	a.notBacked = fmt.Errorf("%s has no %s, which every API server sets and client-go's fake clientset does not: "+
		"call apitest.Back(clientset) once it is made", key, what)
	return a.notBacked
}

// List lists the objects of a kind.
func (a *api) List(ctx context.Context, kind obj.Kind, namespace string) ([]obj.Object, error) {
	if a.notBacked != nil {
		return nil, a.notBacked
	}
	core, storage := a.Clientset.CoreV1(), a.Clientset.StorageV1()
	switch kind {
	case obj.KindVolume:
		return listed(ctx, a, core.PersistentVolumes())
	case obj.KindClaim:
		return listed(ctx, a, core.PersistentVolumeClaims(namespace))
	case obj.KindPod:
		return listed(ctx, a, core.Pods(namespace))
	case obj.KindNode:
		return listed(ctx, a, core.Nodes())
	case obj.KindClass:
		return listed(ctx, a, storage.StorageClasses())
	case obj.KindCSINode:
		return listed(ctx, a, storage.CSINodes())
	case obj.KindAttachment:
		return listed(ctx, a, storage.VolumeAttachments())
	}
	return nil, fmt.Errorf("clientgo: %s is not listed", kind)
}

func listed[List runtime.Object](ctx context.Context, a *api, at Endpoint[List]) ([]obj.Object, error) {
	items, err := at.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var objects []obj.Object
	err = meta.EachListItem(items, func(item runtime.Object) error {
		object := item.(obj.Object)
		object.SetManagedFields(nil)
		objects = append(objects, object)
		switch {
		case object.GetUID() == "":
			return a.lacks(object, "UID")
		case object.GetResourceVersion() == "":
			return a.lacks(object, "resourceVersion")
		}
		return nil
	})
	return objects, err
}

// Create creates a claim.
func (a *api) Create(ctx context.Context, object obj.Object) (obj.Object, error) {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil, fmt.Errorf("clientgo: a %T is not created", object)
	}
	return a.Clientset.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
}

// Update writes an object that was put behind the back of the server without the defaults.
func (a *api) Update(ctx context.Context, object obj.Object) (obj.Object, error) {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		return a.UpdateVolume(ctx, object)
	case *corev1.PersistentVolumeClaim:
		return a.UpdateClaim(ctx, object)
	case *storagev1.StorageClass:
		return versioned(ctx, a, func(ctx context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
			return a.Clientset.StorageV1().StorageClasses().Update(ctx, class, metav1.UpdateOptions{})
		}, object)
	}
	return nil, fmt.Errorf("clientgo: a %T has no defaults", object)
}

// BindPod sets the node of a pod.
func (a *api) BindPod(ctx context.Context, pod *corev1.Pod, node string) error {
	return a.Clientset.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: string(obj.KindNode), Name: node},
	}, metav1.CreateOptions{})
}

// UpdateVolume, UpdateVolumeStatus, UpdateClaim and UpdateClaimStatus write as the Client does, and fail if there is no new version
// of what was written.

func (a *api) UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return versioned(ctx, a, a.Client.UpdateVolume, volume)
}

func (a *api) UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	return versioned(ctx, a, a.Client.UpdateVolumeStatus, volume)
}

func (a *api) UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return versioned(ctx, a, a.Client.UpdateClaim, claim)
}

func (a *api) UpdateClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return versioned(ctx, a, a.Client.UpdateClaimStatus, claim)
}

// versioned makes a write. Of what was stored as it was sent there has to be a new version, but for an object that ended with its
// last finalizer.
func versioned[T obj.Object](ctx context.Context, a *api, write func(context.Context, T) (T, error), object T) (T, error) {
	sent := object.DeepCopyObject()
	stored, err := write(ctx, object)
	if err != nil {
		return stored, err
	}
	ended := stored.GetDeletionTimestamp() != nil && len(stored.GetFinalizers()) == 0
	stored.GetObjectKind().SetGroupVersionKind(sent.GetObjectKind().GroupVersionKind())
	if stored.GetResourceVersion() == sent.(obj.Object).GetResourceVersion() && !ended && equality.Semantic.DeepEqual(runtime.Object(stored), sent) {
		return stored, a.lacks(stored, "new resourceVersion")
	}
	return stored, nil
}
