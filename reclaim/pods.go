package reclaim

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// References reports whether the pod names the claim in one of its volumes, by
// name or as a generic ephemeral volume. It does not ask whether the pod runs, nor
// whether an ephemeral volume's claim is really the pod's own.
func References(pod *corev1.Pod, namespace, claimName string) bool {
	return pod.Namespace == namespace && slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		name := claimOf(pod, volume)
		return name != "" && name == claimName
	})
}

// ClaimNames returns the names of the claims that the pod's volumes name, in the
// order of the volumes, each once. They are all in the pod's namespace. An index
// from claims to pods is built from it.
func ClaimNames(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if name := claimOf(pod, volume); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// claimOf returns the name of the claim that the pod's volume stands for, "" if it
// is a volume of another kind.
func claimOf(pod *corev1.Pod, volume corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}

// Finished reports whether the pod is done with its volumes as far as its status
// tells: it succeeded or failed, or it is being deleted and none of its containers
// runs. It is what Kubernetes' own volume controller means by a terminated pod.
func Finished(pod *corev1.Pod) bool {
	status := pod.Status
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed {
		return true
	}
	return pod.DeletionTimestamp != nil &&
		!slices.ContainsFunc(status.InitContainerStatuses, running) &&
		!slices.ContainsFunc(status.ContainerStatuses, running) &&
		!slices.ContainsFunc(status.EphemeralContainerStatuses, running)
}

// running takes a container of which nothing is known to be running.
func running(container corev1.ContainerStatus) bool {
	return container.State.Waiting == nil && container.State.Terminated == nil
}

// BlockRecycling returns the pods that keep a volume from being recycled, in the
// order of their names: those not Finished that name its old claim, scheduled or
// not (rule R4). They count only while no claim of that name exists again, for
// then they may be using the new one.
func BlockRecycling(pods []*corev1.Pod, namespace, claimName string) []*corev1.Pod {
	var blocking []*corev1.Pod
	for _, pod := range pods {
		if !Finished(pod) && References(pod, namespace, claimName) {
			blocking = append(blocking, pod)
		}
	}
	slices.SortFunc(blocking, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return blocking
}
