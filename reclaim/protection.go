package reclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizers that protect objects in use.
const (
	// ClaimProtection keeps a claim while a pod uses it.
	ClaimProtection = "kubernetes.io/pvc-protection"
	// VolumeProtection keeps a volume while it is bound.
	VolumeProtection = "kubernetes.io/pv-protection"
)

// NeedsProtection reports whether the finalizer is to be added to the object: it
// is missing, and the object is not being deleted (rule F1).
func NeedsProtection(object metav1.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() == nil && !protected(object, finalizer)
}

// ClaimReleasable reports whether ClaimProtection may be taken off the claim: it
// is being deleted, has the finalizer, and none of the pods uses it (rule F2). The
// pods must be a live list of those in the claim's namespace: a pod missing from
// a cache may be about to start. Pods that do not name the claim may be left out.
func ClaimReleasable(claim *corev1.PersistentVolumeClaim, pods []*corev1.Pod) bool {
	return leaving(claim, ClaimProtection) &&
		!slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return UsesClaim(pod, claim) })
}

// VolumeReleasable reports whether VolumeProtection may be taken off the volume:
// it is being deleted, has the finalizer, and is not Bound (rule F3).
func VolumeReleasable(volume *corev1.PersistentVolume) bool {
	return leaving(volume, VolumeProtection) && volume.Status.Phase != corev1.VolumeBound
}

// UsesClaim reports whether the pod counts as using the claim in the sense of rule
// F2. Only a pod with a node does. One that names the claim uses it for as long
// as the pod exists, finished or not. One that has it as a generic ephemeral
// volume uses it only if the claim is the pod's own, and only until the pod is
// shut down: such a claim goes with its pod, and each would otherwise wait for
// the other.
func UsesClaim(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" || pod.Namespace != claim.Namespace {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return claimOf(pod, volume) == claim.Name &&
			(volume.Ephemeral == nil || metav1.IsControlledBy(claim, pod) && !shutDown(pod))
	})
}

// shutDown reports whether the kubelet is done with the pod, or it was deleted by
// force: in both cases nothing but its removal is left.
func shutDown(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && *grace == 0
}

func leaving(object metav1.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() != nil && protected(object, finalizer)
}

func protected(object metav1.Object, finalizer string) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}
