package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// AbsentError is a claim that a pod names and that is not known. The claim of a generic ephemeral volume comes
// shortly after its pod (S1).
type AbsentError struct{ Pod, Claim obj.Key }

func (e *AbsentError) Error() string {
	return e.Pod.String() + ": the claim " + e.Claim.String() + " does not exist"
}

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
	volumes := make([]PodVolume, 0, len(pod.Spec.Volumes))
	used := usageOf(pod)
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		name, owned := reclaim.ClaimName(pod, source), source.PersistentVolumeClaim == nil
		if name == "" {
			continue
		}
		v := PodVolume{Name: source.Name, ReadOnly: !owned && source.PersistentVolumeClaim.ReadOnly}
		v.look(obj.ClaimKey(pod.Namespace, name), view)
		if cause, detail := v.notReady(pod, owned, used); cause != "" {
			v.Wait = Reason{cause, obj.ClaimKey(pod.Namespace, name), obj.NamedVolume(v.Claim).Name, detail}
		}
		volumes = append(volumes, v)
	}
	return volumes
}

// look looks up the claim and its volume.
func (v *PodVolume) look(claim obj.Key, view ObjectView) {
	v.Claim, _ = view.Claim(claim.Namespace, claim.Name)
	if v.Claim != nil && v.Claim.Spec.VolumeName != "" {
		v.Volume, _ = view.Volume(v.Claim.Spec.VolumeName)
	}
	if v.Volume != nil {
		v.Mode = match.VolumeModeOf(v.Volume.Spec.VolumeMode)
	}
}

// notReady returns why the volume must not be mounted; "" if it may.
func (v *PodVolume) notReady(pod *corev1.Pod, owned bool, used usage) (cause Cause, detail string) {
	mounted, device := used.mounted[v.Name], used.devices[v.Name]
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
	case v.Volume == nil:
		return CauseVolumeAbsent, "the volume does not exist"
	case v.Volume.Spec.ClaimRef == nil || v.Volume.Spec.ClaimRef.UID != v.Claim.UID:
		return CauseVolumeTaken, "the volume is not bound to this claim"
	case mounted && v.Mode != corev1.PersistentVolumeFilesystem:
		return CauseVolumeMode, "a container mounts the volume, which is of mode " + string(v.Mode)
	case device && v.Mode != corev1.PersistentVolumeBlock:
		return CauseVolumeMode, "a container takes the volume as a device, and it is of mode " + string(v.Mode)
	}
	return "", ""
}

// usage has the names of the volumes that some container mounts, and of those that one takes as a device.
type usage struct{ mounted, devices map[string]bool }

func usageOf(pod *corev1.Pod) usage {
	used := usage{map[string]bool{}, map[string]bool{}}
	add := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) {
		for i := range mounts {
			used.mounted[mounts[i].Name] = true
		}
		for i := range devices {
			used.devices[devices[i].Name] = true
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		add(c.VolumeMounts, c.VolumeDevices)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add(c.VolumeMounts, c.VolumeDevices)
	}
	return used
}

// claimsNamedBy looks up the claims that a pod names, each once, in the order in which it does.
func claimsNamedBy(pod *corev1.Pod, view ObjectView) ([]*corev1.PersistentVolumeClaim, error) {
	var claims []*corev1.PersistentVolumeClaim
	named := make(map[string]bool, len(pod.Spec.Volumes))
	for i := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i]
		name, owned := reclaim.ClaimName(pod, source), source.PersistentVolumeClaim == nil
		if name == "" {
			continue
		}
		claim, _ := view.Claim(pod.Namespace, name)
		if claim == nil {
			return nil, &AbsentError{obj.KeyOfPod(pod), obj.ClaimKey(pod.Namespace, name)}
		}
		if owned && !metav1.IsControlledBy(claim, pod) {
			problem := "does not name " + obj.KeyOfPod(pod).String() + " as its controller"
			return nil, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.ownerReferences", Problem: problem}
		}
		if !named[name] {
			claims = append(claims, claim)
		}
		named[name] = true
	}
	return claims, nil
}

// unusable returns why no pod can use the claim; its Cause is "" if one can (S1).
func unusable(claim *corev1.PersistentVolumeClaim) Reason {
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		return Reason{CauseClaimLost, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim has lost its volume"}
	case claim.DeletionTimestamp != nil:
		return Reason{CauseClaimDeleting, obj.KeyOf(claim), claim.Spec.VolumeName, "the claim is being deleted"}
	}
	return Reason{}
}

// fullyBound reports whether the scheduler takes the claim for bound (S2).
func fullyBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && phase.BindCompleted(claim)
}
