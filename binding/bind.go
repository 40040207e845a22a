package binding

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// preResizeCapacity on a volume is the size that its file system had before the volume was made
// larger behind the API's back; a claim that binds to it starts at that size, so that a resizer
// notices the difference (B4).
const preResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"

// bind is the next of the four writes that bind a volume and a claim (B1 to B4), or Nothing. Whoever
// calls it has decided that the two belong together. A crash after any of the writes leaves a pair
// that the next decision recognises and continues: the volume's claimRef is the record.
func bind(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (Action, error) {
	if claim.UID == "" {
		// A claimRef without a UID is a reservation: written for such a claim it would never be done.
		return Action{}, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.uid", Problem: "is missing"}
	}
	if _, sized := match.CapacityOf(volume); !sized && claim.Status.Phase != corev1.ClaimBound {
		return Action{}, match.CheckWellFormed(volume)
	}
	action := nextOfFour(volume, claim)
	state := ClaimBinding
	if action.Kind == Nothing {
		state = ClaimBound
	}
	return action.explained(Explanation{State: state, Volume: volume.Name}), nil
}

func nextOfFour(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Action {
	switch {
	case phase.LinkOf(volume, claim) != phase.Held:
		return updateVolume(reserve(volume, claim), "B1", "set "+volume.Name+" aside for "+claim.Namespace+"/"+claim.Name)
	case volume.Status.Phase != corev1.VolumeBound:
		return updateVolumeStatus(enter(volume, corev1.VolumeBound, "", ""), "B2", "it is bound to "+claim.Namespace+"/"+claim.Name)
	case claim.Spec.VolumeName != volume.Name || !phase.BindCompleted(claim):
		return updateClaim(complete(claim, volume), "B3", "it is bound to "+volume.Name)
	}
	if bound := boundStatus(claim, volume); bound != nil {
		return updateClaimStatus(bound, "B4", "it is bound to "+volume.Name)
	}
	return nothing("C11", "bound to "+volume.Name)
}

// reserve is the volume with claimRef naming the claim (B1). A link that a person made keeps its lack
// of bound-by-controller, so that nobody drops it later (V4).
func reserve(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	reserved := volume.DeepCopy()
	if phase.LinkOf(volume, claim) != phase.Reserved {
		metav1.SetMetaDataAnnotation(&reserved.ObjectMeta, phase.BoundByControllerAnnotation, "yes")
	}
	reserved.Spec.ClaimRef = referenceTo(claim)
	return reserved
}

func referenceTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind:            string(obj.KindClaim),
		APIVersion:      corev1.SchemeGroupVersion.String(),
		Namespace:       claim.Namespace,
		Name:            claim.Name,
		UID:             claim.UID,
		ResourceVersion: claim.ResourceVersion,
	}
}

// unbind is the volume without its claim (V4): free again if a controller made the link, reserved as
// the person left it if a person did.
func unbind(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	unbound := volume.DeepCopy()
	if !phase.BoundByController(volume) {
		unbound.Spec.ClaimRef.UID = ""
		return unbound
	}
	unbound.Spec.ClaimRef = nil
	delete(unbound.Annotations, phase.BoundByControllerAnnotation)
	return unbound
}

// enter is the volume in another phase. Message and reason belong to the phase and change with it (B2).
func enter(volume *corev1.PersistentVolume, to corev1.PersistentVolumePhase, reason EventReason, message string) *corev1.PersistentVolume {
	entered := volume.DeepCopy()
	entered.Status.Phase = to
	entered.Status.Reason = string(reason)
	entered.Status.Message = message
	return entered
}

// complete is the claim that names its volume (B3). From here on the volume stands for what was made for it.
func complete(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	completed := claim.DeepCopy()
	if claim.Spec.VolumeName != volume.Name {
		completed.Spec.VolumeName = volume.Name
		metav1.SetMetaDataAnnotation(&completed.ObjectMeta, phase.BoundByControllerAnnotation, "yes")
	}
	if !phase.BindCompleted(claim) {
		metav1.SetMetaDataAnnotation(&completed.ObjectMeta, phase.BindCompletedAnnotation, "yes")
	}
	if volume.Name == ProvisionedName(claim) {
		completed.Finalizers = without(completed.Finalizers, ProvisioningFinalizer)
	}
	return completed
}
