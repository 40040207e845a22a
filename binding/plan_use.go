package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// PodVolume is a volume of a pod that stands for a claim, and what a kubelet needs to mount it.
type PodVolume struct {
	// Name is that of the volume in the pod's spec.
	Name string
	// Claim and Volume are what it stands for, as far as they are known.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// Mode is the mode of the volume.
	Mode corev1.PersistentVolumeMode
	// ReadOnly: the pod asks for it to be mounted read-only. Its containers may ask for it each for itself.
	ReadOnly bool
	// Wait is why it must not be mounted yet; none if its Cause is "".
	Wait PodReason
}

// Ready reports whether the volume may be mounted.
func (v PodVolume) Ready() bool { return v.Wait.Cause == "" }

// VolumesOf follows a pod's volumes to their claims and from there to the volumes that may be mounted, as a
// kubelet does: the claim is Bound, not being deleted unless protected by a finalizer, and the pod's own where
// the volume is ephemeral; and its volume exists, names the claim by UID, and is of the mode in which the pod's
// containers use it. Volumes of the pod that stand for no claim are left out.
func VolumesOf(pod *corev1.Pod, view PairView) []PodVolume {
	var volumes []PodVolume
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		if name, _ := claimNameOf(pod, source); name != "" {
			volumes = append(volumes, podVolume(pod, source, view))
		}
	}
	return volumes
}

func podVolume(pod *corev1.Pod, source *corev1.Volume, view PairView) PodVolume {
	name, owned := claimNameOf(pod, source)
	v := PodVolume{Name: source.Name}
	if source.PersistentVolumeClaim != nil {
		v.ReadOnly = source.PersistentVolumeClaim.ReadOnly
	}
	v.Claim, _ = view.Claim(pod.Namespace, name)
	if v.Claim != nil && v.Claim.Spec.VolumeName != "" {
		v.Volume, _ = view.Volume(v.Claim.Spec.VolumeName)
	}
	if v.Volume != nil {
		v.Mode = match.VolumeModeOf(v.Volume.Spec.VolumeMode)
	}
	cause, detail := v.claimNotReady(pod, owned)
	if cause == "" {
		cause, detail = v.volumeNotReady(pod)
	}
	if cause == "" {
		return v
	}
	v.Wait = PodReason{Cause: cause, Claim: obj.ClaimKey(pod.Namespace, name), Detail: detail}
	if v.Claim != nil {
		v.Wait.Volume = v.Claim.Spec.VolumeName
	}
	return v
}

func (v PodVolume) claimNotReady(pod *corev1.Pod, owned bool) (Cause, string) {
	switch {
	case v.Claim == nil:
		return CauseClaimAbsent, "the claim does not exist"
	case owned && !metav1.IsControlledBy(v.Claim, pod):
		return CauseClaimNotOwned, "the claim was not made for this pod"
	case v.Claim.DeletionTimestamp != nil && !slices.Contains(v.Claim.Finalizers, reclaim.ClaimProtection):
		return CauseClaimDeleting, "the claim is being deleted"
	case v.Claim.Status.Phase == corev1.ClaimLost:
		return CauseClaimLost, "the claim has lost its volume"
	case v.Claim.Status.Phase != corev1.ClaimBound || v.Claim.Spec.VolumeName == "":
		return CauseClaimUnbound, "the claim is not bound"
	}
	return "", ""
}

func (v PodVolume) volumeNotReady(pod *corev1.Pod) (Cause, string) {
	switch {
	case v.Volume == nil:
		return CauseVolumeAbsent, "the volume does not exist"
	case v.Volume.Spec.ClaimRef == nil || v.Volume.Spec.ClaimRef.UID != v.Claim.UID:
		return CauseVolumeTaken, "the volume is not bound to this claim"
	case v.Mode != corev1.PersistentVolumeFilesystem && usesMounted(pod, v.Name):
		return CauseVolumeMode, "a container mounts the volume, which is of mode " + string(v.Mode)
	case v.Mode != corev1.PersistentVolumeBlock && usesDevice(pod, v.Name):
		return CauseVolumeMode, "a container takes the volume as a device, and it is of mode " + string(v.Mode)
	}
	return "", ""
}

// usesMounted reports whether some container mounts the volume, usesDevice whether one takes it as a device.
func usesMounted(pod *corev1.Pod, volume string) bool {
	return someContainer(pod, func(c corev1.EphemeralContainerCommon) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
	})
}

func usesDevice(pod *corev1.Pod, volume string) bool {
	return someContainer(pod, func(c corev1.EphemeralContainerCommon) bool {
		return slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == volume })
	})
}

func someContainer(pod *corev1.Pod, is func(corev1.EphemeralContainerCommon) bool) bool {
	ordinary := func(c corev1.Container) bool { return is(corev1.EphemeralContainerCommon(c)) }
	return slices.ContainsFunc(pod.Spec.InitContainers, ordinary) ||
		slices.ContainsFunc(pod.Spec.Containers, ordinary) ||
		slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return is(c.EphemeralContainerCommon) })
}
