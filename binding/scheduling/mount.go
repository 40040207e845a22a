package scheduling

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
	// ReadOnly is whether the pod requests it read-only. Each container may request that for itself too.
	ReadOnly bool
	// Wait is why it must not be mounted yet. Its Cause is "" if it may be.
	Wait Reason
}

// Ready reports whether the volume may be mounted.
func (v PodVolume) Ready() bool { return v.Wait.Cause == "" }

// VolumesOf returns the volumes of a pod that stand for claims, each with its PersistentVolume and whether it may be
// mounted, as a kubelet decides it. The claim has to be Bound, not being deleted unless protected by a finalizer, and the
// pod's own where the volume is ephemeral. Its volume has to exist, to name the claim by UID, and to be of the mode in which
// the pod's containers use it.
func VolumesOf(pod *corev1.Pod, view ObjectView) []PodVolume {
	var volumes []PodVolume
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		if reclaim.ClaimName(pod, source) != "" {
			volumes = append(volumes, podVolume(pod, source, view))
		}
	}
	return volumes
}

func podVolume(pod *corev1.Pod, source *corev1.Volume, view ObjectView) PodVolume {
	name := reclaim.ClaimName(pod, source)
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
	v.Wait = v.notReady(pod, source.PersistentVolumeClaim == nil)
	if !v.Ready() {
		v.Wait.Claim = obj.ClaimKey(pod.Namespace, name)
	}
	return v
}

// notReady returns why the volume must not be mounted; its Cause is "" if it may.
func (v PodVolume) notReady(pod *corev1.Pod, owned bool) Reason {
	if v.Claim == nil {
		return Reason{Cause: CauseClaimAbsent, Detail: "the claim does not exist"}
	}
	because := func(cause Cause, detail string) Reason {
		return Reason{Cause: cause, Volume: v.Claim.Spec.VolumeName, Detail: detail}
	}
	mounted, device := uses(pod, v.Name)
	switch {
	case owned && !metav1.IsControlledBy(v.Claim, pod):
		return because(CauseClaimNotOwned, "the claim was not made for this pod")
	case v.Claim.DeletionTimestamp != nil && !slices.Contains(v.Claim.Finalizers, reclaim.ClaimProtection):
		return because(CauseClaimDeleting, "the claim is being deleted")
	case v.Claim.Status.Phase == corev1.ClaimLost:
		return because(CauseClaimLost, "the claim has lost its volume")
	case v.Claim.Status.Phase != corev1.ClaimBound || v.Claim.Spec.VolumeName == "":
		return because(CauseClaimUnbound, "the claim is not bound")
	case v.Volume == nil:
		return because(CauseVolumeAbsent, "the volume does not exist")
	case v.Volume.Spec.ClaimRef == nil || v.Volume.Spec.ClaimRef.UID != v.Claim.UID:
		return because(CauseVolumeTaken, "the volume is not bound to this claim")
	case mounted && v.Mode != corev1.PersistentVolumeFilesystem:
		return because(CauseVolumeMode, "a container mounts the volume, which is of mode "+string(v.Mode))
	case device && v.Mode != corev1.PersistentVolumeBlock:
		return because(CauseVolumeMode, "a container takes the volume as a device, and it is of mode "+string(v.Mode))
	}
	return Reason{}
}

// uses reports whether some container mounts the volume, and whether one takes it as a device.
func uses(pod *corev1.Pod, volume string) (mounted, device bool) {
	look := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
		mounted = mounted || slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
		device = device || slices.ContainsFunc(devices, func(d corev1.VolumeDevice) bool { return d.Name == volume })
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		look(c.VolumeMounts, c.VolumeDevices)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		look(c.VolumeMounts, c.VolumeDevices)
	}
	return mounted, device
}
