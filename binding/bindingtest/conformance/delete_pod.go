package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
)

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
