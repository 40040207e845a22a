package clientgo

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// trimPod is what package reclaim looks at in a pod. There may be a hundred thousand of them.
func trimPod(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			ResourceVersion:            pod.ResourceVersion,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: claimVolumes(pod.Spec.Volumes)},
		Status: corev1.PodStatus{
			Phase:                      pod.Status.Phase,
			InitContainerStatuses:      trimContainers(pod.Status.InitContainerStatuses),
			ContainerStatuses:          trimContainers(pod.Status.ContainerStatuses),
			EphemeralContainerStatuses: trimContainers(pod.Status.EphemeralContainerStatuses),
		},
	}
}

// claimVolumes are the volumes that stand for a claim.
func claimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, volume := range volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			kept = append(kept, volume)
		case volume.Ephemeral != nil:
			kept = append(kept, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		}
	}
	return kept
}

// trimContainers keeps whether a container runs.
func trimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, status := range statuses {
		var state corev1.ContainerState
		switch {
		case status.State.Waiting != nil:
			state.Waiting = &corev1.ContainerStateWaiting{}
		case status.State.Terminated != nil:
			state.Terminated = &corev1.ContainerStateTerminated{}
		}
		kept = append(kept, corev1.ContainerStatus{State: state})
	}
	return kept
}
