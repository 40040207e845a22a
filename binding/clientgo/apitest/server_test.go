package apitest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
)

func start(t *testing.T) (*apitest.Server, kubernetes.Interface) {
	t.Helper()
	server := apitest.New(bindingtest.NewServer())
	set, err := kubernetes.NewForConfig(server.Start(t))
	require.NoError(t, err)
	return server, set
}

func TestWatchGoesOnFromAList(t *testing.T) {
	server, set := start(t)
	volumes := set.CoreV1().PersistentVolumes()
	_, err := server.Create(t.Context(), bindingtest.Volume("a", "1Gi"))
	require.NoError(t, err)
	list, err := volumes.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)

	created, err := volumes.Create(t.Context(), bindingtest.Volume("b", "1Gi"), metav1.CreateOptions{})
	require.NoError(t, err)
	created.Finalizers = nil
	_, err = volumes.Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, volumes.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	changes, err := volumes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		change := <-changes.ResultChan()
		assert.Equal(t, want, change.Type)
		assert.Equal(t, "b", change.Object.(*corev1.PersistentVolume).Name)
	}
	server.Disconnect()
	_, open := <-changes.ResultChan()
	assert.False(t, open)
}

func TestWatchFromTheFuture(t *testing.T) {
	server, set := start(t)
	volumes := set.CoreV1().PersistentVolumes()
	_, err := volumes.Create(t.Context(), bindingtest.Volume("a", "1Gi"), metav1.CreateOptions{})
	require.NoError(t, err)
	snapshot := server.Snapshot()
	late, err := volumes.Create(t.Context(), bindingtest.Volume("late", "1Gi"), metav1.CreateOptions{})
	require.NoError(t, err)
	server.Restore(snapshot)
	list, err := volumes.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	blind, err := volumes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: late.ResourceVersion})
	require.NoError(t, err)
	sees, err := volumes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	_, err = volumes.Create(t.Context(), bindingtest.Volume("b", "1Gi"), metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, "b", (<-sees.ResultChan()).Object.(*corev1.PersistentVolume).Name)
	server.Disconnect()
	_, told := <-blind.ResultChan()
	assert.False(t, told)
}

func TestWatchFromWhatIsForgotten(t *testing.T) {
	server, set := start(t)
	_, err := server.Create(t.Context(), bindingtest.Volume("a", "1Gi"))
	require.NoError(t, err)
	list, err := set.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = server.Create(t.Context(), bindingtest.Volume("b", "1Gi"))
	require.NoError(t, err)
	server.Compact()
	_, err = set.CoreV1().PersistentVolumes().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

func TestInitialEvents(t *testing.T) {
	server, set := start(t)
	_, err := server.Create(t.Context(), bindingtest.Claim("shop", "a", "1Gi"))
	require.NoError(t, err)
	_, err = server.Create(t.Context(), bindingtest.Claim("other", "b", "1Gi"))
	require.NoError(t, err)
	yes := true
	changes, err := set.CoreV1().PersistentVolumeClaims("shop").Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	require.NoError(t, err)
	first := <-changes.ResultChan()
	assert.Equal(t, watch.Added, first.Type)
	assert.Equal(t, "a", first.Object.(*corev1.PersistentVolumeClaim).Name)
	then := <-changes.ResultChan()
	assert.Equal(t, watch.Bookmark, then.Type)
	assert.Equal(t, "true", then.Object.(*corev1.PersistentVolumeClaim).Annotations[metav1.InitialEventsAnnotationKey])
}

func TestWhatIsNotServed(t *testing.T) {
	server, set := start(t)
	for what, err := range map[string]error{
		"another resource": second(set.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})),
		"a subresource":    second(set.CoreV1().Pods("default").UpdateEphemeralContainers(t.Context(), "a", bindingtest.Pod("default", "a", ""), metav1.UpdateOptions{})),
	} {
		assert.True(t, apierrors.IsNotFound(err), "%s: %v", what, err)
	}
	selected := second(set.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.hostname=b"}))
	assert.True(t, apierrors.IsBadRequest(selected), "%v", selected)
	server.Deny(func(request apitest.Request) bool {
		return request == apitest.Request{Verb: "get", Group: "storage.k8s.io", Resource: "storageclasses", Name: "a"}
	})
	denied := second(set.StorageV1().StorageClasses().Get(t.Context(), "a", metav1.GetOptions{}))
	assert.True(t, apierrors.IsForbidden(denied), "%v", denied)
	missing := second(set.StorageV1().StorageClasses().Get(t.Context(), "b", metav1.GetOptions{}))
	assert.True(t, apierrors.IsNotFound(missing), "%v", missing)
}

func second[T any](_ T, err error) error { return err }

func TestAnAnswerThatIsLost(t *testing.T) {
	server, set := start(t)
	server.Client.Use(bindingtest.LoseAnswer(1, bindingtest.AnyWrite))
	_, err := set.CoreV1().PersistentVolumes().Create(t.Context(), bindingtest.Volume("a", "1Gi"), metav1.CreateOptions{})
	require.Error(t, err)
	assert.Empty(t, apierrors.ReasonForError(err), "nobody can tell what became of it")
	assert.NotNil(t, server.Volume("a"))
}

func TestBodiesThatAreNone(t *testing.T) {
	server, _ := start(t)
	response, err := http.Post(server.Start(t).Host+"/api/v1/persistentvolumes", "application/json", http.NoBody)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
}
