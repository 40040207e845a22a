package reclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// Change is what a verb would have written: the whole volume, on the resourceVersion that was decided on, and what
// that puts at risk. The volume is a copy, and equal to the one given where all is as asked for already.
type Change struct {
	Volume  *corev1.PersistentVolume
	Hazards []Hazard
}

// Open frees a volume whose claim is gone for any claim that it fits (R7): claimRef and bound-by-controller go, and
// the phase follows (V1). Of a volume without claimRef only a list of all claims tells whether its claim is gone.
//
// An error is a *Refusal. It says what keeps the volume back, and which of that the caller can accept.
func Open(volume *corev1.PersistentVolume, known Known, accepting ...Risk) (Change, error) {
	r := review{accepting: accepting}
	r.take(volume, known, "whoever gets it")
	if err := r.refusal("open", volume.Name); err != nil {
		return Change{}, err
	}
	opened := volume.DeepCopy()
	opened.Spec.ClaimRef = nil
	delete(opened.Annotations, phase.BoundByControllerAnnotation)
	return Change{opened, r.hazards}, nil
}

// Reserve sets a volume aside for a claim that exists or is to come (R7): its claimRef names the claim without a UID.
// bound-by-controller goes, or the next controller would drop the reservation (V4). Of a claim to come only namespace
// and name are needed; what else it says is compared with the volume as far as that counts for a reservation (M12).
// Whether it exists must have been read: one that does may have a volume already, or not fit.
// The claim binds as soon as it is there; one that is created with spec.volumeName takes no other volume meanwhile.
//
// An error is a *Refusal, or says that the claim has no name.
func Reserve(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, known Known, accepting ...Risk) (Change, error) {
	if claim.Name == "" || claim.Namespace == "" {
		return Change{}, fmt.Errorf("pvc/%s/%s: metadata: a volume is reserved for a namespace and a name", claim.Namespace, claim.Name)
	}
	r := review{accepting: accepting}
	existing, read := known.claim(claim.Namespace, claim.Name)
	if existing != nil {
		claim = existing
	}
	if !read { // one that exists may have a volume, or not fit
		r.unread(Read{ReadClaim, claim.Namespace, claim.Name})
	}
	switch link := phase.LinkOf(volume, claim); {
	case link == phase.Held && existing != nil:
		return Change{Volume: volume.DeepCopy()}, nil
	case link == phase.Reserved:
		r.untouched(volume)
	default:
		r.take(volume, known, claim.Namespace+"/"+claim.Name)
	}
	r.ready(claim, volume)
	if err := r.refusal("reserve", volume.Name); err != nil {
		return Change{}, err
	}
	return Change{reserved(volume, claim), r.hazards}, nil
}

// reserved is the volume set aside for the claim.
func reserved(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	reserved := volume.DeepCopy()
	reserved.Spec.ClaimRef = &corev1.ObjectReference{
		Kind:       "PersistentVolumeClaim",
		APIVersion: corev1.SchemeGroupVersion.String(),
		Namespace:  claim.Namespace,
		Name:       claim.Name,
	}
	delete(reserved.Annotations, phase.BoundByControllerAnnotation)
	return reserved
}

// ready objects to a claim that could not take the volume it is to have.
func (r *review) ready(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	name := claim.Namespace + "/" + claim.Name
	switch {
	case claim.DeletionTimestamp != nil:
		r.object(Objection{Reason: Deleting, Message: "claim " + name + " is being deleted"})
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		r.object(Objection{Reason: Taken, Message: "claim " + name + " names another volume, " + claim.Spec.VolumeName})
	case phase.BindCompleted(claim):
		r.object(Objection{Reason: Taken, Message: "claim " + name + " was bound before, and such a claim takes no reservation (C11)"})
	}
	for _, misfit := range misfits(claim, volume) {
		r.object(Objection{Reason: Unfit, Message: misfit})
	}
}

// Retain keeps a volume (R7): it makes the reclaim policy Retain, so that the claim can be deleted and the data stays.
// The deletion finalizers follow (R6). It refuses nothing, for it destroys nothing; but it may come too late, and the
// hazards say so.
func Retain(volume *corev1.PersistentVolume) Change {
	var r review
	destroys := volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
	if at := volume.Status.Phase; destroys && (at == corev1.VolumeReleased || at == corev1.VolumeFailed) {
		r.warn(DataDestroyed, fmt.Sprintf("it is %s, so that reclaiming it may have begun", at))
	}
	if volume.DeletionTimestamp != nil {
		r.warn(ClaimLost, "the volume is being deleted, and goes nevertheless; only what is on the storage stays")
	}
	kept := volume.DeepCopy()
	kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return Change{kept, r.hazards}
}
