package reclaim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newPod(name string, volumes ...corev1.Volume) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace = "shop"
	pod.Name = name
	pod.UID = "uid-of-web"
	pod.Spec.NodeName = "node-1"
	pod.Spec.Volumes = volumes
	return pod
}

func byName(volumeName, claimName string) corev1.Volume {
	volume := corev1.Volume{Name: volumeName}
	volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName}
	return volume
}

func generic(volumeName string) corev1.Volume {
	volume := corev1.Volume{Name: volumeName}
	volume.Ephemeral = &corev1.EphemeralVolumeSource{}
	return volume
}

func scratch(volumeName string) corev1.Volume {
	volume := corev1.Volume{Name: volumeName}
	volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	return volume
}

func TestClaimNames(t *testing.T) {
	for _, test := range []struct {
		name    string
		volumes []corev1.Volume
		claims  []string
	}{
		{"R4 F2 no volumes", nil, nil},
		{"R4 F2 no claims", []corev1.Volume{scratch("tmp")}, nil},
		{"R4 F2 by name", []corev1.Volume{byName("data", "orders")}, []string{"orders"}},
		{"R4 F2 S1 generic ephemeral", []corev1.Volume{generic("data")}, []string{"web-data"}},
		{"R4 F2 in order of the volumes", []corev1.Volume{byName("b", "orders"), scratch("tmp"), generic("a"), byName("c", "carts")},
			[]string{"orders", "web-a", "carts"}},
		{"R4 F2 each once", []corev1.Volume{byName("a", "orders"), byName("b", "web-c"), byName("c", "orders"), generic("c")},
			[]string{"orders", "web-c"}},
		{"R4 F2 a nameless claim is none", []corev1.Volume{byName("a", "")}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := newPod("web", test.volumes...)
			assert.Equal(t, test.claims, ClaimNames(pod))
			for _, claim := range []string{"orders", "carts", "web-a", "web-c", "web-data", "data", "tmp", "web-tmp", ""} {
				assert.Equal(t, slices.Contains(test.claims, claim), slices.Contains(PodsOf([]*corev1.Pod{pod}, "shop", claim), pod), claim)
				assert.Empty(t, PodsOf([]*corev1.Pod{pod}, "bank", claim), claim)
			}
		})
	}
}

func containerIn(state corev1.ContainerState) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, {State: state}}
}

func TestFinished(t *testing.T) {
	waiting := containerIn(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}})
	runs := containerIn(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	unknown := containerIn(corev1.ContainerState{})

	for _, test := range []struct {
		name     string
		status   corev1.PodStatus
		finished bool // as it is
		deleted  bool // being deleted
	}{
		{"no status", corev1.PodStatus{}, false, true},
		{"pending", corev1.PodStatus{Phase: corev1.PodPending}, false, true},
		{"running", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: runs}, false, false},
		{"init container runs", corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: runs}, false, false},
		{"ephemeral container runs", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: waiting, EphemeralContainerStatuses: runs}, false, false},
		{"all wait or are done", corev1.PodStatus{Phase: corev1.PodRunning, InitContainerStatuses: waiting, ContainerStatuses: waiting, EphemeralContainerStatuses: waiting}, false, true},
		{"a state not reported", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: unknown}, false, false},
		{"unknown", corev1.PodStatus{Phase: corev1.PodUnknown, ContainerStatuses: runs}, false, false},
		{"succeeded", corev1.PodStatus{Phase: corev1.PodSucceeded}, true, true},
		{"failed", corev1.PodStatus{Phase: corev1.PodFailed}, true, true},
		{"failed, a container runs still", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: runs}, true, true},
	} {
		t.Run("R4 "+test.name, func(t *testing.T) {
			pod := newPod("web", byName("data", "orders"))
			pod.Status = test.status
			assert.Equal(t, test.finished, Finished(pod))
			assert.Equal(t, !test.finished, len(BlockRecycling([]*corev1.Pod{pod}, "shop", "orders", nil)) == 1)

			pod.DeletionTimestamp = &metav1.Time{}
			assert.Equal(t, test.deleted, Finished(pod), "being deleted")
			assert.Equal(t, test.finished, len(BlockRecycling([]*corev1.Pod{pod}, "shop", "orders", nil)) == 0, "a kubelet that is cut off may start a container")
			pod.Spec.NodeName = ""
			assert.Equal(t, test.deleted, len(BlockRecycling([]*corev1.Pod{pod}, "shop", "orders", nil)) == 0, "no kubelet has it")
		})
	}
}

func TestBlockRecycling(t *testing.T) {
	unscheduled := newPod("c", byName("data", "orders"))
	unscheduled.Spec.NodeName = ""
	finished := newPod("b", byName("data", "orders"))
	finished.Status.Phase = corev1.PodSucceeded
	elsewhere := newPod("e", byName("data", "orders"))
	elsewhere.Namespace = "bank"
	pods := []*corev1.Pod{
		newPod("d", scratch("tmp"), byName("data", "orders")),
		unscheduled,
		newPod("f", byName("data", "carts")),
		finished,
		elsewhere,
		newPod("a", byName("one", "orders"), byName("two", "orders")),
	}
	before := append([]*corev1.Pod(nil), pods...)

	var names []string
	for _, pod := range BlockRecycling(pods, "shop", "orders", nil) {
		names = append(names, pod.Name)
	}
	assert.Equal(t, []string{"a", "c", "d"}, names, "R4")
	assert.Equal(t, before, pods, "X6 the caller's list keeps its order")
	assert.Empty(t, BlockRecycling(pods, "shop", "nobody", nil), "R4")
	assert.Empty(t, BlockRecycling(nil, "shop", "orders", nil), "R4")

	again := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "orders", CreationTimestamp: metav1.Unix(1_000, 0)}}
	names = nil
	for _, pod := range BlockRecycling(pods, "shop", "orders", again) {
		names = append(names, pod.Name)
	}
	assert.Equal(t, []string{"a", "d"}, names, "R4 c has no node")
	for seconds, blocks := range map[int64]int{999: 1, 1_000: 1, 1_002: 1, 1_300: 1, 1_301: 0} {
		pods[0].Status.StartTime = new(metav1.Unix(seconds, 0))
		assert.Len(t, BlockRecycling(pods[:1], "shop", "orders", again), blocks, "R4 started at %d", seconds)
	}
	again.CreationTimestamp = metav1.Time{}
	assert.Len(t, BlockRecycling(pods[:1], "shop", "orders", again), 1, "R4 nobody knows which came first")

	ephemeral := newPod("web", generic("data"))
	assert.Len(t, BlockRecycling([]*corev1.Pod{ephemeral}, "shop", "web-data", nil), 1, "R4 as a generic ephemeral volume")
}
