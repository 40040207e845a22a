package bindingtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/obj"
)

// changesOf reads all changes that a watch has: type, name and resourceVersion.
func changesOf(watch *bindingtest.Watch) []string {
	var lines []string
	for {
		change, ok := watch.Next()
		if !ok {
			return lines
		}
		lines = append(lines, string(change.Type)+" "+change.Object.GetName()+" "+change.Object.GetResourceVersion())
	}
}

func TestWatchTellsEveryChangeOnceInOrder(t *testing.T) {
	server := bindingtest.NewServer()
	must.Create(t, server, bindingtest.Volume("b", "1Gi"))                                                // 1
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))                                      // 2
	early := server.Watch(obj.KindVolume)                                                                 //
	must.Create(t, server, bindingtest.Claim("default", "data", "1Gi"))                                   // 3
	volume = must.UpdateStatus(t, server, volume, func(v pv) { v.Status.Phase = corev1.VolumeAvailable }) // 4
	must.Update(t, server, volume.DeepCopy())                                                             // no change
	late := server.Watch(obj.KindVolume)
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{})) // 5
	volume = must.Get(t, server, volume)
	assert.Equal(t, 3, late.Pending())
	must.Update(t, server, volume, func(v pv) { v.Finalizers = nil }) // 6

	assert.Equal(t, []string{"ADDED b 1", "ADDED a 2", "MODIFIED a 4", "MODIFIED a 5", "DELETED a 6"}, changesOf(early))
	assert.Equal(t, []string{"ADDED b 1", "ADDED a 4", "MODIFIED a 5", "DELETED a 6"}, changesOf(late))
	assert.Empty(t, changesOf(early))
	assert.Zero(t, late.Pending())
	assert.Equal(t, []string{"ADDED data 3"}, changesOf(server.Watch(obj.KindClaim)))
}

func TestDeletedCarriesTheLastState(t *testing.T) {
	server := bindingtest.NewServer()
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi", func(v pv) { v.Spec.StorageClassName = "fast" }))
	must.Update(t, server, volume, func(v pv) { v.Finalizers = nil })
	watch := server.Watch(obj.KindVolume)
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
	watch.Next()
	change, ok := watch.Next()
	require.True(t, ok)
	assert.Equal(t, bindingtest.Deleted, change.Type)
	assert.Equal(t, "fast", change.Object.(pv).Spec.StorageClassName)
	assert.Equal(t, "3", change.Object.GetResourceVersion())
}

func TestNothingHandedOutIsShared(t *testing.T) {
	server := bindingtest.NewServer()
	sent := bindingtest.Volume("a", "1Gi", func(v pv) { v.Labels = map[string]string{"l": "kept"} })
	watch := server.Watch(obj.KindVolume)
	created := must.Create(t, server, sent)
	pristine := server.Volume("a")
	change, _ := watch.Next()
	listed, err := server.List(t.Context(), obj.KindVolume, "")
	require.NoError(t, err)
	for _, object := range []obj.Object{sent, created, change.Object, listed[0], must.Get(t, server, created), server.Calls()[0].After} {
		object.GetLabels()["l"] = "spoilt"
	}
	assert.Equal(t, pristine, server.Volume("a"))
	change, _ = server.Watch(obj.KindVolume).Next()
	assert.Equal(t, "kept", change.Object.GetLabels()["l"])
}

func TestListIsSorted(t *testing.T) {
	server := bindingtest.NewServer()
	for _, name := range []string{"b", "a"} {
		for _, namespace := range []string{"y", "x"} {
			must.Create(t, server, bindingtest.Pod(namespace, name, "n1"))
		}
	}
	all, err := server.List(t.Context(), obj.KindPod, "")
	require.NoError(t, err)
	var names []string
	for _, pod := range all {
		names = append(names, pod.GetNamespace()+"/"+pod.GetName())
	}
	assert.Equal(t, []string{"x/a", "x/b", "y/a", "y/b"}, names)
	pods, err := server.ListPods(t.Context(), "x")
	require.NoError(t, err)
	assert.Len(t, pods, 2)
	_, err = server.List(t.Context(), "Secret", "")
	assert.Error(t, err)
}

func TestClonesGoTheirOwnWays(t *testing.T) {
	first := bindingtest.NewServer()
	must.Create(t, first, bindingtest.Volume("a", "1Gi"))
	watch := first.Watch(obj.KindVolume)
	second := first.Clone()
	must.Create(t, first, bindingtest.Volume("b", "1Gi"))
	must.Create(t, second, bindingtest.Volume("c", "1Gi"))

	assert.Nil(t, first.Volume("c"))
	assert.Nil(t, second.Volume("b"))
	assert.Equal(t, []string{"ADDED a 1", "ADDED c 2"}, changesOf(watch.On(second)))
	assert.Equal(t, []string{"ADDED a 1", "ADDED b 2"}, changesOf(watch))
	assert.Len(t, first.Calls(), 2)
	assert.Equal(t, "create pv/c", second.Calls()[1].String())
	assert.Equal(t, first.Now(), second.Now())
}

func TestWatchGoesOnAfterTheServerForgot(t *testing.T) {
	server := bindingtest.NewServer()
	watch := server.Watch(obj.KindVolume)
	for _, name := range []string{"a", "b"} {
		_, err := server.Create(t.Context(), bindingtest.Volume(name, "1Gi"))
		require.NoError(t, err)
		require.Equal(t, 1, watch.Pending())
		change, ok := watch.Next()
		require.True(t, ok)
		assert.Equal(t, name, change.Object.GetName())
		server.Forget()
		assert.Zero(t, watch.Pending())
		assert.Empty(t, server.Calls())
	}
}

func TestChangedEndsAWait(t *testing.T) {
	server := bindingtest.NewServer()
	first, other := server.Changed(), server.Changed()
	select {
	case <-first:
		t.Fatal("nothing has changed")
	default:
	}
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	<-first
	<-other
	next := server.Changed()
	must.Update(t, server, volume)
	select {
	case <-next:
		t.Fatal("an update that changes nothing is none")
	default:
	}
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
	<-next
}
