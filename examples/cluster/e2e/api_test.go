package e2e

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// api is a real API server as bindingtest.Server is one in memory: one set of calls for all kinds.
type api struct {
	kubernetes.Interface
}

// endpoint is where objects of a kind are.
type endpoint struct {
	client   rest.Interface
	resource string
	empty    func() obj.Object
}

func (a api) at(kind obj.Kind) endpoint {
	core := a.CoreV1().RESTClient()
	switch kind {
	case obj.KindVolume:
		return endpoint{core, "persistentvolumes", func() obj.Object { return &corev1.PersistentVolume{} }}
	case obj.KindClaim:
		return endpoint{core, "persistentvolumeclaims", func() obj.Object { return &corev1.PersistentVolumeClaim{} }}
	case obj.KindPod:
		return endpoint{core, "pods", func() obj.Object { return &corev1.Pod{} }}
	case obj.KindNode:
		return endpoint{core, "nodes", func() obj.Object { return &corev1.Node{} }}
	case obj.KindClass:
		return endpoint{a.StorageV1().RESTClient(), "storageclasses", func() obj.Object { return &storagev1.StorageClass{} }}
	case obj.KindCSINode:
		return endpoint{a.StorageV1().RESTClient(), "csinodes", func() obj.Object { return &storagev1.CSINode{} }}
	case obj.KindAttachment:
		return endpoint{a.StorageV1().RESTClient(), "volumeattachments", func() obj.Object { return &storagev1.VolumeAttachment{} }}
	}
	panic(fmt.Sprintf("objects of kind %s are not tested", kind))
}

// answer is what the server says to a request.
func (e endpoint) answer(ctx context.Context, request *rest.Request) (obj.Object, error) {
	object := e.empty()
	if err := request.Do(ctx).Into(object); err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as from a typed client
	return object, nil
}

func (a api) Create(ctx context.Context, object obj.Object) (obj.Object, error) {
	return a.CreateWith(ctx, object, metav1.CreateOptions{})
}

func (a api) CreateWith(ctx context.Context, object obj.Object, options metav1.CreateOptions) (obj.Object, error) {
	key, err := bindingtest.KeyOf(object)
	if err != nil {
		return nil, err
	}
	e := a.at(key.Kind)
	request := e.client.Post().NamespaceIfScoped(key.Namespace, key.Namespace != "").Resource(e.resource)
	return e.answer(ctx, request.VersionedParams(&options, scheme.ParameterCodec).Body(object))
}

func (a api) Update(ctx context.Context, object obj.Object) (obj.Object, error) {
	return a.put(ctx, object)
}

func (a api) UpdateStatus(ctx context.Context, object obj.Object) (obj.Object, error) {
	return a.put(ctx, object, "status")
}

func (a api) put(ctx context.Context, object obj.Object, subresource ...string) (obj.Object, error) {
	key, err := bindingtest.KeyOf(object)
	if err != nil {
		return nil, err
	}
	e := a.at(key.Kind)
	request := e.request(e.client.Put(), key).SubResource(subresource...)
	return e.answer(ctx, request.Body(object))
}

func (a api) Get(ctx context.Context, key obj.Key) (obj.Object, error) {
	e := a.at(key.Kind)
	return e.answer(ctx, e.request(e.client.Get(), key))
}

func (a api) Delete(ctx context.Context, key obj.Key, options metav1.DeleteOptions) error {
	e := a.at(key.Kind)
	return e.request(e.client.Delete(), key).Body(&options).Do(ctx).Error()
}

func (e endpoint) request(verb *rest.Request, key obj.Key) *rest.Request {
	return verb.NamespaceIfScoped(key.Namespace, key.Namespace != "").Resource(e.resource).Name(key.Name)
}
