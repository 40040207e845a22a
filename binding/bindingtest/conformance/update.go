package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
)

func testUpdateIgnoresStatus(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	volume = must.Update(t, server, volume, func(v pv) {
		v.Status.Phase, v.Labels = corev1.VolumeBound, map[string]string{"disk": "fast"}
	})
	assert.Equal(t, corev1.VolumePending, volume.Status.Phase, "A2")
	assert.Equal(t, "fast", volume.Labels["disk"])

	claim := must.Create(t, server, bindingtest.Claim("default", "data", "1Gi"))
	claim = must.Update(t, server, claim, func(c pvc) { c.Status.Phase, c.Spec.VolumeName = corev1.ClaimBound, "a" })
	assert.Equal(t, corev1.ClaimPending, claim.Status.Phase, "A2")
	assert.Equal(t, "a", claim.Spec.VolumeName)
}

func testUpdateStatusIgnoresSpecAndKeepsMetadata(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	volume = must.UpdateStatus(t, server, volume, func(v pv) {
		v.Spec.StorageClassName = "other"
		v.Status.Phase, v.Status.Message = corev1.VolumeAvailable, "free"
		v.Annotations, v.Labels = map[string]string{"a": "1"}, map[string]string{"b": "2"}
		v.Finalizers = append(v.Finalizers, "example.com/mine")
	})
	assert.Empty(t, volume.Spec.StorageClassName, "A2")
	assert.Equal(t, corev1.VolumeAvailable, volume.Status.Phase)
	stored := must.Get(t, server, volume)
	assert.Equal(t, "1", stored.Annotations["a"], "A2")
	assert.Equal(t, "2", stored.Labels["b"], "A2")
	assert.Contains(t, stored.Finalizers, "example.com/mine", "A2")

	claim := must.Create(t, server, bindingtest.Claim("default", "data", "1Gi"))
	claim = must.UpdateStatus(t, server, claim, func(c pvc) {
		c.Spec.VolumeName, c.Status.Phase = "a", corev1.ClaimLost
		c.Annotations = map[string]string{"a": "1"}
	})
	assert.Empty(t, claim.Spec.VolumeName, "A2")
	assert.Equal(t, "1", claim.Annotations["a"], "A2")
	assert.Equal(t, corev1.ClaimLost, claim.Status.Phase)
}

func testResourceVersions(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	first := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	second := must.Update(t, server, first.DeepCopy(), func(v pv) { v.Spec.StorageClassName = "x" })
	require.NotEqual(t, first.ResourceVersion, second.ResourceVersion)

	_, err := server.Update(t.Context(), first)
	assert.True(t, apierrors.IsConflict(err), "A2 stale: %v", err)
	_, err = server.UpdateStatus(t.Context(), first)
	assert.True(t, apierrors.IsConflict(err), "A2 stale: %v", err)

	first.ResourceVersion = ""
	third := must.Update(t, server, first, func(v pv) { v.Labels = map[string]string{"l": "1"} })
	assert.Empty(t, third.Spec.StorageClassName, "A2 an empty resourceVersion overwrites")
	assert.Equal(t, "1", third.Labels["l"])
	third.ResourceVersion = ""
	must.UpdateStatus(t, server, third, func(v pv) { v.Status.Phase = corev1.VolumeAvailable })

	missing := bindingtest.Volume("none", "1Gi")
	_, err = server.Update(t.Context(), missing)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func testUpdateMeantForAnEarlierObject(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	claim := must.Create(t, server, bindingtest.Claim("default", "data", "1Gi"))
	claim.UID, claim.ResourceVersion = "another", ""
	_, err := server.Update(t.Context(), claim)
	assert.True(t, apierrors.IsConflict(err), "A2 the UID is another object's: %v", err)
}

func testUpdateWithoutChangeWritesNothing(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	same := must.Update(t, server, volume.DeepCopy())
	assert.Equal(t, volume.ResourceVersion, same.ResourceVersion, "A2")
	same = must.UpdateStatus(t, server, volume.DeepCopy(), func(v pv) { v.Spec.StorageClassName = "ignored" })
	assert.Equal(t, volume.ResourceVersion, same.ResourceVersion, "A2")
}

func testTransitionTime(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	pending := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	tick(t, server)
	available := must.UpdateStatus(t, server, pending.DeepCopy(), func(v pv) { v.Status.Phase = corev1.VolumeAvailable })
	assert.True(t, available.Status.LastPhaseTransitionTime.After(pending.Status.LastPhaseTransitionTime.Time), "A1 restamped")

	same := must.UpdateStatus(t, server, available.DeepCopy(), func(v pv) {
		v.Status.Message, v.Status.LastPhaseTransitionTime = "still", nil
	})
	assert.Equal(t, available.Status.LastPhaseTransitionTime, same.Status.LastPhaseTransitionTime, "A1 the phase is the same")

	chosen := pending.CreationTimestamp
	bound := must.UpdateStatus(t, server, same, func(v pv) { v.Status.Phase, v.Status.LastPhaseTransitionTime = corev1.VolumeBound, &chosen })
	assert.Equal(t, chosen.Time, bound.Status.LastPhaseTransitionTime.Time, "A1 a time that the writer chose")
}

func testMetadataThatMayBeLeftOut(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	created := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	bare := bindingtest.Volume("a", "1Gi", func(v pv) { v.Labels = map[string]string{"l": "1"} })
	updated := must.Update(t, server, bare)
	assert.Equal(t, created.UID, updated.UID, "A2")
	assert.Equal(t, created.CreationTimestamp, updated.CreationTimestamp, "A2")
	assert.Empty(t, updated.Finalizers, "A2 what an update does not send goes")
}

func testNodesAndPods(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	node := must.Create(t, server, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status:     corev1.NodeStatus{Phase: corev1.NodeRunning},
	})
	assert.Equal(t, corev1.NodeRunning, node.Status.Phase, "A1 a node keeps its status")
	node = must.UpdateStatus(t, server, node, func(n *corev1.Node) { n.Spec.Unschedulable, n.Status.Phase = true, corev1.NodeTerminated })
	assert.False(t, node.Spec.Unschedulable, "A2")
	assert.Equal(t, corev1.NodeTerminated, node.Status.Phase)

	pod := must.Create(t, server, bindingtest.Pod("default", "web", "", "data"))
	assert.Equal(t, corev1.PodPending, pod.Status.Phase, "A1")
	pod = must.Update(t, server, pod, func(p *corev1.Pod) { p.Labels, p.Status.Phase = map[string]string{"a": "1"}, corev1.PodRunning })
	assert.Equal(t, "1", pod.Labels["a"])
	assert.Equal(t, corev1.PodPending, pod.Status.Phase, "A2")
}
