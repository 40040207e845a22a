package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/obj"
)

var keyA = obj.VolumeKey("a")

func absent(t *testing.T, server API, key obj.Key) {
	t.Helper()
	_, err := server.Get(t.Context(), key)
	assert.True(t, apierrors.IsNotFound(err), "%s is still there: %v", key, err)
}

// deleting creates a volume and deletes it, so that its finalizers hold it.
func deleting(t *testing.T, server API) pv {
	t.Helper()
	must.Create(t, server, bindingtest.Volume("a", "1Gi", func(v pv) { v.Finalizers = []string{"example.com/mine"} }))
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
	return must.Get(t, server, bindingtest.Volume("a", "1Gi"))
}

func testDeleteWithoutFinalizers(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	must.Update(t, server, volume, func(v pv) { v.Finalizers = nil })
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}), "A5")
	absent(t, server, keyA)
	err := server.Delete(t.Context(), keyA, metav1.DeleteOptions{})
	assert.True(t, apierrors.IsNotFound(err), "A5 %v", err)
}

func testDeleteWithFinalizers(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := deleting(t, server)
	require.NotNil(t, volume.DeletionTimestamp, "A5")

	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
	assert.Equal(t, volume, must.Get(t, server, volume), "A5 a second delete changes nothing")

	more := volume.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.com/more")
	_, err := server.Update(t.Context(), more)
	refused(t, "metadata.finalizers", err)
	_, err = server.UpdateStatus(t.Context(), more)
	refused(t, "metadata.finalizers", err)

	undead := must.Update(t, server, volume.DeepCopy(), func(v pv) { v.DeletionTimestamp = nil })
	assert.Equal(t, volume.DeletionTimestamp, undead.DeletionTimestamp, "A5 a deletion is not undone")

	one := must.Update(t, server, undead, func(v pv) { v.Finalizers = v.Finalizers[:1] })
	must.Update(t, server, one, func(v pv) { v.Finalizers = nil })
	absent(t, server, keyA)
}

func testLastFinalizerRemovedThroughStatus(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	must.UpdateStatus(t, server, deleting(t, server), func(v pv) { v.Finalizers = nil })
	absent(t, server, keyA)
}

func testAnUpdateDoesNotDelete(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	now := metav1.Now()
	volume.DeletionTimestamp = &now
	_, err := server.Update(t.Context(), volume)
	refused(t, "metadata.deletionTimestamp", err)
}

func testDeletePreconditions(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	volume = must.Update(t, server, volume, func(v pv) { v.Finalizers = nil })
	uid, version := volume.UID, volume.ResourceVersion
	for name, stale := range map[string]*metav1.Preconditions{
		"uid":     {UID: new(types.UID("another"))},
		"version": {UID: &uid, ResourceVersion: new("1000000")},
	} {
		err := server.Delete(t.Context(), keyA, metav1.DeleteOptions{Preconditions: stale})
		assert.True(t, apierrors.IsConflict(err), "A5 %s: %v", name, err)
	}
	fresh := &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
	require.NoError(t, server.Delete(t.Context(), keyA, metav1.DeleteOptions{Preconditions: fresh}), "A5")
	absent(t, server, keyA)
}

func testRecreatedObjectIsAnother(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	first := deleting(t, server)
	must.Update(t, server, first, func(v pv) { v.Finalizers = nil })
	second := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	assert.NotEqual(t, first.UID, second.UID, "A1")
}

var (
	keyWeb = bindingtest.PodKey("default", "web")
	// atOnce is how a kubelet ends a pod.
	atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
)

func testDeletePod(t *testing.T, newAPI NewAPI) {
	grace := metav1.DeleteOptions{GracePeriodSeconds: new(int64(30))}
	tests := map[string]struct {
		node    string
		phase   corev1.PodPhase
		options metav1.DeleteOptions
		stays   bool
	}{
		"no grace":     {"n1", corev1.PodRunning, metav1.DeleteOptions{}, false},
		"grace":        {"n1", corev1.PodRunning, grace, true},
		"runs nowhere": {"", corev1.PodPending, grace, false},
		"finished":     {"n1", corev1.PodSucceeded, grace, false},
	}
	for name, test := range tests {
		t.Run("A5 "+name, func(t *testing.T) {
			server := newAPI(t)
			pod := must.Create(t, server, bindingtest.Pod("default", "web", test.node, "data"))
			must.UpdateStatus(t, server, pod, func(p *corev1.Pod) { p.Status.Phase = test.phase })
			require.NoError(t, server.Delete(t.Context(), keyWeb, test.options))
			if !test.stays {
				absent(t, server, keyWeb)
				return
			}
			ending := must.Get(t, server, pod)
			assert.Equal(t, int64(30), *ending.DeletionGracePeriodSeconds)
			require.NoError(t, server.Delete(t.Context(), keyWeb, metav1.DeleteOptions{GracePeriodSeconds: new(int64(60))}))
			assert.Equal(t, ending, must.Get(t, server, pod), "a grace period is not prolonged")
			require.NoError(t, server.Delete(t.Context(), keyWeb, atOnce))
			absent(t, server, keyWeb)
		})
	}
}

func testGracePeriods(t *testing.T, newAPI NewAPI) {
	tests := map[string]struct {
		own, asked, want *int64
	}{
		"the pod's own":  {new(int64(20)), nil, new(int64(20))},
		"the caller's":   {new(int64(20)), new(int64(10)), new(int64(10))},
		"negative is 1":  {nil, new(int64(-5)), new(int64(1))},
		"A6 the default": {nil, nil, new(int64(30))},
		"at once":        {new(int64(20)), new(int64(0)), nil},
	}
	for name, test := range tests {
		t.Run("A5 "+name, func(t *testing.T) {
			server := newAPI(t)
			pod := bindingtest.Pod("default", "web", "n1")
			pod.Spec.TerminationGracePeriodSeconds = test.own
			pod = must.Create(t, server, pod)
			require.NoError(t, server.Delete(t.Context(), keyWeb, metav1.DeleteOptions{GracePeriodSeconds: test.asked}))
			if test.want == nil {
				absent(t, server, keyWeb)
				return
			}
			assert.Equal(t, test.want, must.Get(t, server, pod).DeletionGracePeriodSeconds)
		})
	}
}

func testAPodWithAFinalizerStays(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	pod := bindingtest.Pod("default", "web", "n1")
	pod.Finalizers = []string{"example.com/mine"}
	pod = must.Create(t, server, pod)
	require.NoError(t, server.Delete(t.Context(), keyWeb, atOnce))
	pod = must.Get(t, server, pod)
	assert.Zero(t, *pod.DeletionGracePeriodSeconds, "A5")
	require.NoError(t, server.Delete(t.Context(), keyWeb, atOnce))
	assert.Equal(t, pod, must.Get(t, server, pod), "A5 a second delete changes nothing")
	must.Update(t, server, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	absent(t, server, keyWeb)
}
