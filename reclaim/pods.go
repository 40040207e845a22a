package reclaim

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodsOf returns those among all pods that name the claim in one of their volumes, by
// name or as a generic ephemeral volume. They count whether or not they run, and
// whether or not they own an ephemeral volume's claim.
func PodsOf(all []*corev1.Pod, namespace, claimName string) []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range all {
		names := func(volume corev1.Volume) bool { return ClaimName(pod, &volume) == claimName }
		if claimName != "" && pod.Namespace == namespace && slices.ContainsFunc(pod.Spec.Volumes, names) {
			found = append(found, pod)
		}
	}
	return found
}

// ClaimNames returns the names of the claims that the pod's volumes name, in the
// order of the volumes, each once. They are all in the pod's namespace.
func ClaimNames(pod *corev1.Pod) []string {
	var names []string
	seen := make(map[string]struct{}, len(pod.Spec.Volumes)) // a pod may have very many
	for i := range pod.Spec.Volumes {
		name := ClaimName(pod, &pod.Spec.Volumes[i])
		if _, again := seen[name]; name != "" && !again {
			seen[name] = struct{}{}
			names = append(names, name)
		}
	}
	return names
}

// ClaimName returns the name of the claim that one of the pod's volumes stands for, ""
// if it is a volume of another kind. A claim that the volume does not name itself
// must be the pod's own (S1).
func ClaimName(pod *corev1.Pod, volume *corev1.Volume) string {
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
// runs. Kubernetes' own volume controller calls such a pod terminated.
func Finished(pod *corev1.Pod) bool {
	status := pod.Status
	if succeededOrFailed(pod) {
		return true
	}
	return pod.DeletionTimestamp != nil &&
		!slices.ContainsFunc(status.InitContainerStatuses, running) &&
		!slices.ContainsFunc(status.ContainerStatuses, running) &&
		!slices.ContainsFunc(status.EphemeralContainerStatuses, running)
}

// Ended reports whether the pod is Finished, and no kubelet starts one of its
// containers again: one that waits may be started by a kubelet that is cut off, and
// does not know that the pod is being deleted.
func Ended(pod *corev1.Pod) bool {
	return Finished(pod) && (pod.Spec.NodeName == "" || succeededOrFailed(pod))
}

func succeededOrFailed(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// running reports true for a container of which no state is known, too.
func running(container corev1.ContainerStatus) bool {
	return container.State.Waiting == nil && container.State.Terminated == nil
}

// UsesClaim reports whether the pod uses the claim, so that ClaimProtection stays.
// Only a pod with a node does. One that names the claim uses it for as long as the
// pod exists, finished or not. One that has it as a generic ephemeral volume uses it
// only if it owns the claim, and only until the pod is shut down: such a claim is
// deleted with its pod, and each deletion would otherwise block the other (F2).
func UsesClaim(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" || pod.Namespace != claim.Namespace {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return ClaimName(pod, &volume) == claim.Name && (volume.Ephemeral == nil || OwnsEphemeral(pod, claim))
	})
}

// OwnsEphemeral reports whether a pod that has the claim as a generic ephemeral volume
// owns it, and is not shut down yet.
func OwnsEphemeral(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return metav1.IsControlledBy(claim, pod) && !shutDown(pod)
}

// shutDown reports whether the kubelet has ended the pod, or it was deleted by force:
// in both cases only its removal is left.
func shutDown(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0
}

// BlockRecycling returns the pods that keep a volume from being recycled, in the
// order of their names: those that name its old claim and have not ended. While no
// claim of that name exists, scheduled or not. Where one exists again, only those with
// a node count, and not one that was certainly started after it was created: that one
// uses it. A pod started before may still have the old volume mounted (R4).
func BlockRecycling(pods []*corev1.Pod, namespace, claimName string, again *corev1.PersistentVolumeClaim) []*corev1.Pod {
	blocking := slices.DeleteFunc(PodsOf(pods, namespace, claimName), func(pod *corev1.Pod) bool { return !BlocksRecycling(pod, again) })
	slices.SortFunc(blocking, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return blocking
}

// BlocksRecycling reports whether a pod is among those that BlockRecycling returns, if it names the old claim. Of
// pods with a node that have not ended, those that do started before those that do not, or their start is not known.
func BlocksRecycling(pod *corev1.Pod, again *corev1.PersistentVolumeClaim) bool {
	return !Ended(pod) && (again == nil || pod.Spec.NodeName != "" && !startedAfter(pod, again))
}

// clockMargin is how far the clock of a node, which tells when a pod was started, may
// be ahead of the API server's, which tells when a claim was created. A tenant chooses
// the moment of both, so that without a margin a second would do. A new pod that is
// taken for one of before only delays the recycling until it ends.
const clockMargin = 5 * time.Minute

// startedAfter reports whether a kubelet certainly started the pod after the claim was
// created.
func startedAfter(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	started, created := pod.Status.StartTime, claim.CreationTimestamp
	return started != nil && !created.IsZero() && started.After(created.Add(clockMargin))
}
