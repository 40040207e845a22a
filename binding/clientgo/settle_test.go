package clientgo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/internal/settling"
	"github.com/pvbind/pvbind/binding/obj"
)

// onClientset tells the stories on a clientset.
type onClientset struct{ kubernetes.Interface }

// endpoint is a typed client.
type endpoint[T obj.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (T, error)
}

// at returns the calls of the typed client for an object.
func (o onClientset) at(object obj.Object) anyEndpoint {
	core, storage, namespace := o.CoreV1(), o.StorageV1(), object.GetNamespace()
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		return of(core.PersistentVolumes(), object)
	case *corev1.PersistentVolumeClaim:
		return of(core.PersistentVolumeClaims(namespace), object)
	case *corev1.Pod:
		return of(core.Pods(namespace), object)
	case *corev1.Node:
		return of(core.Nodes(), object)
	case *storagev1.StorageClass:
		return of(storage.StorageClasses(), object)
	case *storagev1.CSINode:
		return of(storage.CSINodes(), object)
	case *storagev1.VolumeAttachment:
		return of(storage.VolumeAttachments(), object)
	}
	panic(fmt.Sprintf("no client for %T", object))
}

// anyEndpoint has the calls of a typed client for one object.
type anyEndpoint struct {
	create, update, delete func(context.Context) error
	get                    func(context.Context) (obj.Object, error)
}

func of[T obj.Object](at endpoint[T], object T) anyEndpoint {
	return anyEndpoint{
		create: func(ctx context.Context) error { return second(at.Create(ctx, object, metav1.CreateOptions{})) },
		update: func(ctx context.Context) error { return second(at.Update(ctx, object, metav1.UpdateOptions{})) },
		delete: func(ctx context.Context) error { return at.Delete(ctx, object.GetName(), metav1.DeleteOptions{}) },
		get: func(ctx context.Context) (obj.Object, error) {
			return at.Get(ctx, object.GetName(), metav1.GetOptions{})
		},
	}
}

func (o onClientset) Create(ctx context.Context, object obj.Object) error {
	return o.at(object).create(ctx)
}
func (o onClientset) Update(ctx context.Context, object obj.Object) error {
	return o.at(object).update(ctx)
}
func (o onClientset) Delete(ctx context.Context, object obj.Object) error {
	return o.at(object).delete(ctx)
}

func (o onClientset) Get(ctx context.Context, object obj.Object) (obj.Object, error) {
	return o.at(object).get(ctx)
}

func (o onClientset) Settle(ctx context.Context, options bindingtest.SettleOptions) (bindingtest.Outcome, error) {
	return clientgo.Settle(ctx, o.Interface, options)
}

func TestClaimsJustBindOnAClientset(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) kubernetes.Interface{
		"NewClientset":       func(*testing.T) kubernetes.Interface { return backed(fake.NewClientset()) },
		"NewSimpleClientset": func(*testing.T) kubernetes.Interface { return backed(fake.NewSimpleClientset()) },
		"HTTP":               func(t *testing.T) kubernetes.Interface { return clientset(t, newServer(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			settling.Run(t, func(t *testing.T) settling.Cluster { return onClientset{start(t)} })
		})
	}
}

func backed(set *fake.Clientset) *fake.Clientset {
	apitest.Back(set)
	return set
}

// What a test of one's own may look like.
func TestMustBind(t *testing.T) {
	class := bindingtest.Class("fast", func(class *class) { class.Provisioner = "csi.example.com" })
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	set := fake.NewClientset(class, bindingtest.Claim("default", "data", "5Gi"), bindingtest.Pod("default", "web", "", "data"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	apitest.Back(set)
	clientgo.MustBind(t, set)
	claim, err := set.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "data", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	pod, err := set.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "n1", pod.Spec.NodeName)
}

// failed is a test that notes its failure.
type failed struct {
	*testing.T
	message string
}

func (f *failed) Fatalf(format string, args ...any) { f.message = fmt.Sprintf(format, args...) }

func TestMustBindSaysWhatIsNotBound(t *testing.T) {
	set := fake.NewClientset(bindingtest.Claim("default", "data", "5Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("none") }))
	apitest.Back(set)
	test := &failed{T: t}
	clientgo.MustBind(test, set)
	assert.Contains(t, test.message, `pvc/default/data: `)
	assert.Contains(t, test.message, `the storage class "none" that could provision one does not exist`)
}

// A fake that is not backed is told how to be.
func TestSettleOnAFakeAsItComes(t *testing.T) {
	bare := bindingtest.Claim("default", "data", "5Gi")
	identified := bindingtest.Claim("default", "data", "5Gi")
	identified.UID = "mine"
	versioned := identified.DeepCopy()
	versioned.ResourceVersion = "7"
	for lack, claim := range map[string]runtime.Object{"no UID": bare, "no resourceVersion": identified, "no new resourceVersion": versioned} {
		t.Run(lack, func(t *testing.T) {
			_, err := clientgo.Settle(t.Context(), fake.NewClientset(claim), bindingtest.SettleOptions{})
			require.ErrorContains(t, err, "pvc/default/data ")
			require.ErrorContains(t, err, lack)
			require.ErrorContains(t, err, "call apitest.Back(clientset)")
		})
	}
	_, err := clientgo.Settle(t.Context(), nil, bindingtest.SettleOptions{})
	require.EqualError(t, err, "clientgo.Settle: no clientset")
}
