package reclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Change is what an operation writes: the whole volume, on the resourceVersion that was decided on, and what that puts
// at risk. The volume is a copy, and equal to the given one where nothing is to be done.
type Change struct {
	Volume   *corev1.PersistentVolume
	Warnings []Warning
}

// MakeAvailable frees a volume whose claim is gone for any claim that it fits. It removes claimRef and
// bound-by-controller; the phase follows. For a volume without claimRef it takes a list of all claims to know that its
// claim is gone (R7, V1).
//
// It fails with an *Error, which has the reasons and the risks that the caller can accept.
func MakeAvailable(volume *corev1.PersistentVolume, known Known, accepting ...Risk) (Change, error) {
	r := review{operation: "make available", volume: volume, known: known, accepted: accepting}
	r.checkRelease("whoever gets it")
	if err := r.err(); err != nil {
		return Change{}, err
	}
	freed := volume.DeepCopy()
	freed.Spec.ClaimRef = nil
	delete(freed.Annotations, phase.BoundByControllerAnnotation)
	delete(freed.Annotations, AnnouncementAnnotation)
	return Change{freed, r.warnings}, nil
}

// Reserve pre-binds a volume to a claim that exists or is to come: its claimRef names the claim without a UID. It removes
// bound-by-controller, or the next controller would undo the reservation. Of a claim to come only namespace and name are
// needed; the volume must fit what else it says, as far as that counts for a reservation. Whether the claim exists must
// have been read: one that does may have a volume already, or not fit.
//
// A controller binds the claim as soon as it exists. One that is created with spec.volumeName takes no other volume
// meanwhile.
//
// It fails with an *Error, or if the claim has no name (R7, V4, M12).
func Reserve(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, known Known, accepting ...Risk) (Change, error) {
	if claim.Name == "" || claim.Namespace == "" {
		return Change{}, fmt.Errorf("pvc/%s: metadata: namespace and name are required", nameOf(claim))
	}
	r := review{operation: "reserve", volume: volume, known: known, accepted: accepting}
	existing, _ := r.claim(obj.KeyOf(claim)) // one that exists may have a volume, or not fit
	if existing != nil {
		claim = existing
	}
	switch state := phase.ClaimRefStateOf(volume, claim); {
	case state == phase.ClaimRefBound && existing != nil:
		return Change{Volume: volume.DeepCopy()}, nil
	case state == phase.ClaimRefPreBound:
		r.checkVolume()
	default:
		r.checkRelease(nameOf(claim))
	}
	r.checkClaim(claim)
	if err := r.err(); err != nil {
		return Change{}, err
	}
	return Change{preBound(volume, claim), r.warnings}, nil
}

// preBound returns the volume pre-bound to the claim.
func preBound(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	volume = volume.DeepCopy()
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind:       "PersistentVolumeClaim",
		APIVersion: corev1.SchemeGroupVersion.String(),
		Namespace:  claim.Namespace,
		Name:       claim.Name,
	}
	delete(volume.Annotations, phase.BoundByControllerAnnotation)
	delete(volume.Annotations, AnnouncementAnnotation)
	return volume
}

// SetRetain sets the reclaim policy to Retain, so that the claim can be deleted and the data stays. The controller then
// removes the deletion finalizers. SetRetain destroys nothing and never fails; it warns if reclaiming may have begun (R6, R7).
func SetRetain(volume *corev1.PersistentVolume) Change {
	var r review
	destroys := volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
	if at := volume.Status.Phase; destroys && (at == corev1.VolumeReleased || at == corev1.VolumeFailed) {
		r.warn(DataDestroyed, "it is %s, so that reclaiming it may have begun", at)
	}
	if volume.DeletionTimestamp != nil {
		r.warn(ClaimLost, "the volume is being deleted and will be gone; only its storage is kept")
	}
	kept := volume.DeepCopy()
	kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	delete(kept.Annotations, AnnouncementAnnotation)
	return Change{kept, r.warnings}
}
