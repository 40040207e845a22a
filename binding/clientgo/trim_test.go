package clientgo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/reclaim"
)

func volumeOf(source corev1.VolumeSource) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: source}
}

// pods are all combinations of what package reclaim may look at.
func allPods() []*corev1.Pod {
	var all []*corev1.Pod
	byName := volumeOf(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "web-v"}})
	own := volumeOf(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}})
	other := volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	states := []corev1.ContainerState{
		{}, {Running: &corev1.ContainerStateRunning{}}, {Waiting: &corev1.ContainerStateWaiting{Reason: "Crash"}},
		{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}
	for _, node := range []string{"", "node"} {
		for _, volumes := range [][]corev1.Volume{{byName}, {other, own}, {other}, nil} {
			for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed} {
				for _, deleted := range []*metav1.Time{nil, {}} {
					for _, grace := range []*int64{nil, new(int64), new(int64(30))} {
						for i, state := range states {
							pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid", ResourceVersion: "7"}}
							pod.Labels, pod.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
							pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = deleted, grace
							pod.Spec = corev1.PodSpec{NodeName: node, Volumes: volumes, Containers: []corev1.Container{{Image: "web"}}}
							pod.Status.Phase, pod.Status.StartTime = phase, &metav1.Time{Time: time.Unix(int64(i), 0)}
							statuses := []*[]corev1.ContainerStatus{&pod.Status.InitContainerStatuses, &pod.Status.ContainerStatuses, &pod.Status.EphemeralContainerStatuses}
							*statuses[i%3] = []corev1.ContainerStatus{{Name: "web", State: state}}
							all = append(all, pod)
						}
					}
				}
			}
		}
	}
	return all
}

func TestTrimmedPodsDecideTheSame(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-v"}}
	yes := true
	claim.OwnerReferences = []metav1.OwnerReference{{UID: "uid", Controller: &yes}}
	for _, pod := range allPods() {
		trimmed, err := trim(pod.DeepCopy())
		require.NoError(t, err)
		short := trimmed.(*corev1.Pod)
		assert.Equal(t, reclaim.ClaimNames(pod), reclaim.ClaimNames(short), "W5 %v", pod)
		assert.Equal(t, reclaim.Finished(pod), reclaim.Finished(short), "C3 R4 %v", pod)
		again := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(1, 0)}}
		assert.Equal(t, len(reclaim.BlockRecycling([]*corev1.Pod{pod}, "default", "web-v", again)), len(reclaim.BlockRecycling([]*corev1.Pod{short}, "default", "web-v", again)), "R4 %v", pod)
		assert.Equal(t, reclaim.UsesClaim(pod, claim), reclaim.UsesClaim(short, claim), "F2 %v", pod)
		assert.Equal(t, pod.Spec.NodeName, short.Spec.NodeName)
		assert.Less(t, short.Size(), pod.Size())
		twice, err := trim(short.DeepCopy())
		require.NoError(t, err)
		assert.Equal(t, short, twice, "trimming twice is trimming once")
	}
}

func TestTrimKeepsClaimsAndVolumesWhole(t *testing.T) {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", Annotations: map[string]string{"a": "b"}}}
	volume.Spec.MountOptions = []string{"ro"}
	want := volume.DeepCopy()
	volume.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	trimmed, err := trim(volume)
	require.NoError(t, err)
	assert.Equal(t, want, trimmed)
	assert.Nil(t, volume.ManagedFields, "an empty list would make the server forget its own")

	missed := cache.DeletedFinalStateUnknown{Key: "default/data"}
	trimmed, err = trim(missed)
	require.NoError(t, err)
	assert.Equal(t, missed, trimmed)
}

func TestTrimmedAttachmentsDecideTheSame(t *testing.T) {
	attachment := bindingtest.Attachment("disk", "n1")
	attachment.UID, attachment.ResourceVersion = "uid", "7"
	attachment.Annotations, attachment.Finalizers = map[string]string{"a": "b"}, []string{"external-attacher/csi-example-com"}
	attachment.Status.AttachmentMetadata = map[string]string{"device": "/dev/sdb"}
	short, err := trim(attachment.DeepCopy())
	require.NoError(t, err)
	trimmed := short.(*storagev1.VolumeAttachment)
	assert.Equal(t, attachment.Spec.Source, trimmed.Spec.Source)
	assert.Equal(t, attachment.Spec.NodeName, trimmed.Spec.NodeName)
	assert.Equal(t, [3]string{"disk-n1", "uid", "7"}, [3]string{trimmed.Name, string(trimmed.UID), trimmed.ResourceVersion})
	assert.Less(t, trimmed.Size(), attachment.Size())
	again, err := trim(trimmed.DeepCopy())
	require.NoError(t, err)
	assert.Equal(t, trimmed, again, "trimming twice is trimming once")
}
