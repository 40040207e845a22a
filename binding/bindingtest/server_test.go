package bindingtest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/conformance"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestTheServerIsAnAPIServer(t *testing.T) {
	conformance.Run(t, func(*testing.T) conformance.API { return bindingtest.NewServer() })
}

func TestKindsThatAreNotStored(t *testing.T) {
	server := bindingtest.NewServer()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	_, err := server.Create(t.Context(), secret)
	assert.ErrorContains(t, err, "Secret")
	key := obj.Key{Kind: "Secret", Namespace: "default", Name: "s"}
	_, err = server.Get(t.Context(), key)
	assert.ErrorContains(t, err, "Secret")
	assert.ErrorContains(t, server.Delete(t.Context(), key, metav1.DeleteOptions{}), "Secret")
}

func TestConcurrentUse(t *testing.T) {
	const workers, rounds = 8, 20
	server := bindingtest.NewServer()
	must.Create(t, server, bindingtest.Volume("shared", "1Gi"))
	watch := server.Watch(obj.KindVolume)
	var won atomic.Int64
	var all sync.WaitGroup
	for worker := range workers {
		client := server.NewClient(fmt.Sprint("worker ", worker))
		client.Use(func(_ *bindingtest.Call, do func() error) error { return do() })
		all.Go(func() {
			for round := range rounds {
				won.Add(relabel(t, client, fmt.Sprint(worker, "-", round)))
				client.Record(decision.Event{On: keyA})
				server.Calls()
				server.Clone().Volume("shared")
				changesOf(server.Watch(obj.KindVolume))
			}
		})
	}
	all.Wait()
	assert.Equal(t, won.Load()+1, int64(len(changesOf(watch))), "one Added, and one Modified for each success")
	assert.Len(t, server.Calls(), 1+3*workers*rounds)
}

// relabel reads and updates the shared volume, and returns how many times that succeeded.
func relabel(t *testing.T, client *bindingtest.Client, label string) int64 {
	volume, err := client.GetVolume(t.Context(), "shared")
	if !assert.NoError(t, err) {
		return 0
	}
	volume.Labels = map[string]string{"last": label}
	if _, err = client.UpdateVolume(t.Context(), volume); err != nil {
		assert.True(t, apierrors.IsConflict(err), "%v", err)
		return 0
	}
	return 1
}

// A list of pods is the newest, however often it was asked for, and on a copy of the server too.
func TestPodsAreListedAsTheyAre(t *testing.T) {
	server := bindingtest.NewServer()
	names := func(of *bindingtest.Server, namespace string) (names []string) {
		pods, err := of.ListPods(t.Context(), namespace)
		require.NoError(t, err)
		for _, pod := range pods {
			names = append(names, pod.Name+" "+pod.Spec.NodeName)
		}
		return names
	}
	create := func(of *bindingtest.Server, namespace, name string) {
		_, err := of.Create(t.Context(), bindingtest.Pod(namespace, name, ""))
		require.NoError(t, err)
	}
	assert.Empty(t, names(server, "shop"))
	create(server, "shop", "b")
	create(server, "shop", "a")
	create(server, "bank", "c")
	assert.Equal(t, []string{"a ", "b "}, names(server, "shop"))
	assert.Equal(t, []string{"c ", "a ", "b "}, names(server, ""))

	clone := server.Clone()
	create(clone, "shop", "d")
	assert.Equal(t, []string{"a ", "b ", "d "}, names(clone, "shop"))
	assert.Equal(t, []string{"a ", "b "}, names(server, "shop"))

	_, err := server.Update(t.Context(), bindingtest.Pod("shop", "a", "node-1"))
	require.NoError(t, err)
	require.NoError(t, server.Delete(t.Context(), bindingtest.PodKey("shop", "b"), metav1.DeleteOptions{}))
	assert.Equal(t, []string{"a node-1"}, names(server, "shop"))
	require.NoError(t, server.Load(bindingtest.Pod("shop", "e", "")))
	assert.Equal(t, []string{"a node-1", "e "}, names(server, "shop"))
}

func TestAPodIsMarkedBeforeItGoes(t *testing.T) {
	server := bindingtest.NewServer()
	must.Create(t, server, bindingtest.Pod("default", "web", "n1"))
	watch := server.Watch(obj.KindPod)
	require.NoError(t, server.FinishPod(t.Context(), "default", "web"))
	watch.Next()
	change, _ := watch.Next()
	assert.Equal(t, bindingtest.Modified, change.Type, "F2 a pod that is shut down can be seen")
	assert.Zero(t, *change.Object.GetDeletionGracePeriodSeconds())
	change, _ = watch.Next()
	assert.Equal(t, bindingtest.Deleted, change.Type)
	assert.NotNil(t, change.Object.GetDeletionTimestamp())
}

func TestAPodIsScheduledByAnUpdate(t *testing.T) {
	server := bindingtest.NewServer()
	pod := must.Create(t, server, bindingtest.Pod("default", "web", "", "data"))
	pod = must.Update(t, server, pod, func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	assert.Equal(t, "n1", pod.Spec.NodeName)
}

// What else Validate finds fault with is tested by creating it: see conformance.
func TestValidateWhatNoClientCanSend(t *testing.T) {
	for field, object := range map[string]obj.Object{
		"metadata.namespace": bindingtest.Claim("", "data", "1Gi"),
		"kind":               &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}},
	} {
		errs := bindingtest.Validate(object)
		if assert.Len(t, errs, 1) {
			assert.Equal(t, field, errs[0].Field)
		}
	}
}

type (
	pv  = *corev1.PersistentVolume
	pvc = *corev1.PersistentVolumeClaim
	sc  = *storagev1.StorageClass
)

var keyA = obj.VolumeKey("a")

func TestManagedFieldsStayWhereAnUpdateBringsNone(t *testing.T) {
	server := bindingtest.NewServer()
	owned := []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{"f:a":{}}}}`)}}}
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi", func(v pv) { v.ManagedFields = owned }))
	volume = must.Update(t, server, volume, func(v pv) { v.ManagedFields, v.Labels = nil, map[string]string{"a": "b"} })
	assert.Equal(t, owned, volume.ManagedFields)
}
