package apitest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/conformance"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
)

// constructors are those of client-go's fake clientset.
func constructors() map[string]func(...runtime.Object) *fake.Clientset {
	return map[string]func(...runtime.Object) *fake.Clientset{"NewClientset": fake.NewClientset, "NewSimpleClientset": fake.NewSimpleClientset}
}

func TestABackedFakeIsAnAPIServer(t *testing.T) {
	for name, newClientset := range constructors() {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(*testing.T) conformance.API {
				clientset := newClientset()
				apitest.Back(clientset)
				return invoked{clientset}
			})
		})
	}
}

// invoked is a fake clientset on which actions are invoked as its typed clients do.
type invoked struct{ *fake.Clientset }

func resourceOf(kind obj.Kind) schema.GroupVersionResource {
	group := corev1.SchemeGroupVersion
	if kind == obj.KindClass || kind == obj.KindAttachment || kind == obj.KindCSINode {
		group = storagev1.SchemeGroupVersion
	}
	resource, _ := meta.UnsafeGuessKindToResource(group.WithKind(string(kind)))
	return resource
}

func keyOf(object obj.Object) (schema.GroupVersionResource, string) {
	key, err := bindingtest.KeyOf(object)
	if err != nil {
		panic(err)
	}
	return resourceOf(key.Kind), key.Namespace
}

func (i invoked) do(action clienttesting.Action) (obj.Object, error) {
	answer, err := i.Invokes(action, nil)
	if err != nil || answer == nil {
		return nil, err
	}
	return answer.(obj.Object), nil
}

func (i invoked) Create(_ context.Context, object obj.Object) (obj.Object, error) {
	resource, namespace := keyOf(object)
	return i.do(clienttesting.NewCreateAction(resource, namespace, object))
}

func (i invoked) Update(_ context.Context, object obj.Object) (obj.Object, error) {
	resource, namespace := keyOf(object)
	return i.do(clienttesting.NewUpdateAction(resource, namespace, object))
}

func (i invoked) UpdateStatus(_ context.Context, object obj.Object) (obj.Object, error) {
	resource, namespace := keyOf(object)
	return i.do(clienttesting.NewUpdateSubresourceAction(resource, "status", namespace, object))
}

func (i invoked) Get(_ context.Context, key obj.Key) (obj.Object, error) {
	return i.do(clienttesting.NewGetAction(resourceOf(key.Kind), key.Namespace, key.Name))
}

func (i invoked) Delete(_ context.Context, key obj.Key, options metav1.DeleteOptions) error {
	_, err := i.do(clienttesting.NewDeleteActionWithOptions(resourceOf(key.Kind), key.Namespace, key.Name, options))
	return err
}

func TestBackTakesWhatTheClientsetHas(t *testing.T) {
	claim := bindingtest.Claim("default", "data", "5Gi")
	claim.Status.Phase = corev1.ClaimLost
	known := bindingtest.Volume("known", "1Gi")
	known.UID, known.ResourceVersion, known.Finalizers = "mine", "41", []string{"example.com/mine"}
	incomplete := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "incomplete"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "secret"}}
	for name, newClientset := range constructors() {
		t.Run(name, func(t *testing.T) {
			set := newClientset(claim, known, incomplete, secret)
			server := apitest.Back(set)
			got, err := set.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "data", metav1.GetOptions{})
			require.NoError(t, err)
			assert.NotEmpty(t, got.UID)
			assert.NotEmpty(t, got.ResourceVersion)
			assert.Equal(t, corev1.ClaimLost, got.Status.Phase, "it is taken as it stands")
			assert.Equal(t, corev1.PersistentVolumeFilesystem, *got.Spec.VolumeMode, "A6")
			volume, err := set.CoreV1().PersistentVolumes().Get(t.Context(), "known", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, known.ObjectMeta, volume.ObjectMeta)
			_, err = set.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "incomplete", metav1.GetOptions{})
			require.NoError(t, err)
			_, err = set.CoreV1().Secrets("default").Get(t.Context(), "secret", metav1.GetOptions{})
			require.NoError(t, err, "other kinds stay where they are")
			assert.Same(t, server, apitest.Back(set), "it has a server already")
		})
	}
}

func TestWhatABackedFakeReturnsIsACopy(t *testing.T) {
	set := fake.NewClientset(bindingtest.Volume("a", "1Gi"))
	apitest.Back(set)
	volumes := set.CoreV1().PersistentVolumes()
	changes, err := volumes.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer changes.Stop()
	list, err := volumes.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	list.Items[0].Spec.Capacity["storage"] = bindingtest.Volume("a", "2Gi").Spec.Capacity["storage"]
	(<-changes.ResultChan()).Object.(*corev1.PersistentVolume).Spec.AccessModes[0] = "changed"
	got, err := volumes.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, bindingtest.Volume("a", "1Gi").Spec.Capacity, got.Spec.Capacity)
	assert.Equal(t, bindingtest.Volume("a", "1Gi").Spec.AccessModes, got.Spec.AccessModes)
	assert.Empty(t, got.Kind)
}

// Reactors of the test go first, from before and after.
func TestReactorsOfTheTest(t *testing.T) {
	set := fake.NewClientset(bindingtest.Volume("a", "1Gi"))
	failed := errors.New("injected")
	fail := func(verb string) {
		set.PrependReactor(verb, "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, failed })
	}
	seen := 0
	set.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { seen++; return false, nil, nil })
	fail("get")
	server := apitest.Back(set)
	fail("list")
	own := watch.NewFake()
	set.PrependWatchReactor("pods", clienttesting.DefaultWatchReactor(own, nil))
	volumes := set.CoreV1().PersistentVolumes()
	require.ErrorIs(t, second(volumes.Get(t.Context(), "a", metav1.GetOptions{})), failed)
	require.ErrorIs(t, second(volumes.List(t.Context(), metav1.ListOptions{})), failed)
	require.NoError(t, second(volumes.Create(t.Context(), bindingtest.Volume("b", "1Gi"), metav1.CreateOptions{})))
	pods, err := set.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Same(t, own, pods)
	assert.Equal(t, 1, seen, "of the volumes: the create; what fails before is not seen")
	assert.Len(t, set.Actions(), 4)
	server.Deny(func(request apitest.Request) bool { return request.Verb == "delete" })
	denied := volumes.Delete(t.Context(), "b", metav1.DeleteOptions{})
	assert.True(t, apierrors.IsForbidden(denied), "%v", denied)
	server.Client.Use(bindingtest.Conflict(1, bindingtest.AnyWrite))
	conflict := second(volumes.Create(t.Context(), bindingtest.Volume("c", "1Gi"), metav1.CreateOptions{}))
	assert.True(t, apierrors.IsConflict(conflict), "%v", conflict)
}

// As with the fake's own, what a write has changed is there when it returns.
func TestAWatchOfAFakeHasAChangeAtOnce(t *testing.T) {
	set := fake.NewClientset()
	server := apitest.Back(set)
	changes, err := set.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range 20 {
		require.NoError(t, second(set.CoreV1().PersistentVolumes().Create(t.Context(), bindingtest.Volume(fmt.Sprint("a", i), "1Gi"), metav1.CreateOptions{})))
		select {
		case change := <-changes.ResultChan():
			assert.Equal(t, fmt.Sprint("a", i), change.Object.(*corev1.PersistentVolume).Name)
		default:
			t.Fatal("the change is not there")
		}
	}
	_, err = server.Create(t.Context(), bindingtest.Volume("behind", "1Gi"))
	require.NoError(t, err)
	assert.Equal(t, "behind", (<-changes.ResultChan()).Object.(*corev1.PersistentVolume).Name, "what a test does on the server is seen as well")
	changes.Stop()
	changes.Stop()
	_, open := <-changes.ResultChan()
	assert.False(t, open)
	ended, err := set.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	server.Disconnect()
	for range ended.ResultChan() { // until it is closed
	}
}

func TestASlowReaderMissesNothing(t *testing.T) {
	const many = 3 * 100 // more than a channel has room for
	set := fake.NewClientset()
	apitest.Back(set)
	changes, err := set.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer changes.Stop()
	for i := range many {
		require.NoError(t, second(set.CoreV1().PersistentVolumes().Create(t.Context(), bindingtest.Volume(fmt.Sprint("a", i), "1Gi"), metav1.CreateOptions{})))
	}
	for i := range many {
		assert.Equal(t, fmt.Sprint("a", i), (<-changes.ResultChan()).Object.(*corev1.PersistentVolume).Name)
	}
}

func TestWhatABackedFakeLeavesToItself(t *testing.T) {
	set := fake.NewClientset(bindingtest.Pod("default", "web", "", "data"))
	apitest.Back(set)
	pods := set.CoreV1().Pods("default")
	logs, err := pods.GetLogs("web", &corev1.PodLogOptions{}).DoRaw(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "fake logs", string(logs))
	require.NoError(t, pods.EvictV1(t.Context(), eviction("web")))
	assert.True(t, apierrors.IsNotFound(pods.EvictV1(t.Context(), eviction("other"))))
	_, err = pods.Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err, "an eviction is noted only")
	_, err = set.CoreV1().Events("default").Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	events, err := set.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, events.Items, 1)
}
