package binding

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// NextForClaim is the next write for a claim, or what to read, to wait for or to let go first (C, B, G,
// F and P rules). It modifies nothing that it is given. Its caller does what the action says, puts the
// server's reply in place of the old object, and asks again, until the answer is Nothing or Wait.
//
// An error is about malformed objects (*InvalidError) or a state that only a person can have made (C9);
// the action returned beside it then has events and no write.
func NextForClaim(claim *corev1.PersistentVolumeClaim, view View, rules Rules) (Action, error) {
	rules = rules.filled()
	if changed, rule, why := claimMetadata(claim, rules); changed != nil {
		return updateClaim(changed, rule, why), nil
	}
	if claim.DeletionTimestamp != nil {
		action, decided := letGo(claim, view, rules)
		if stuck := action.Kind == Wait && phase.BindCompleted(claim); decided && !stuck { // C10 and C11 do not wait for that
			return action.explained(terminating(claim, view)), nil
		}
	}
	volume, evidence := namedVolume(claim, view)
	switch phase.ClaimStandingOf(claim, volume) {
	case phase.Unbound:
		return match(claim, view, rules)
	case phase.Awaiting:
		waiting := wait("C6", "volume "+claim.Spec.VolumeName+" does not exist")
		return pend(claim, waiting.explained(Explanation{State: ClaimAwaitsVolume, Volume: claim.Spec.VolumeName})), nil
	case phase.Asking:
		return ask(claim, volume, view)
	case phase.Finishing:
		return bind(volume, claim)
	case phase.Refused:
		return refuse(claim, ownerIn(volume.Spec.ClaimRef), holder(volume.Spec.ClaimRef))
	case phase.Bound:
		action, err := bind(volume, claim)
		if action.Kind == Nothing && err == nil && provisioning(claim) {
			return abandonProvisioning(claim, view, rules).explained(*action.explains), nil
		}
		return action, err
	}
	action, err := lose(claim, volume, evidence)
	if action.Kind == Nothing && err == nil && provisioning(claim) && claim.DeletionTimestamp != nil {
		return abandonProvisioning(claim, view, rules).explained(terminating(claim, view)), nil
	}
	return action, err
}

// letGo is for a claim that is being deleted: its protection and the trace of its provisioning go. Nothing new is
// begun for it, but what it was bound to is still put right (C12).
func letGo(claim *corev1.PersistentVolumeClaim, view View, rules Rules) (action Action, decided bool) {
	if action, decided := releaseClaim(claim, view, rules); decided {
		return action, true
	}
	if provisioning(claim) {
		return abandonProvisioning(claim, view, rules), true
	}
	return nothing("C12", "the claim is being deleted: nothing new is begun for it"), !phase.BindCompleted(claim)
}

// namedVolume looks up the volume that the claim names; nil if it names none.
func namedVolume(claim *corev1.PersistentVolumeClaim, view View) (*corev1.PersistentVolume, Evidence) {
	if claim.Spec.VolumeName == "" {
		return nil, Unknown
	}
	return view.Volume(claim.Spec.VolumeName)
}

// pend makes the claim Pending first, if it is not, and then does what the given action says.
func pend(claim *corev1.PersistentVolumeClaim, then Action) Action {
	pending := unboundStatus(claim, corev1.ClaimPending)
	if pending == nil {
		return then
	}
	action := updateClaimStatus(pending, then.Rule, then.Why)
	action.Events, action.explains = then.Events, then.explains
	return action
}

// ask is for a claim that names a volume which nobody has (C7).
func ask(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) (Action, error) {
	if owner := view.Owner(volume.Name); owner != (Key{}) && owner != KeyOf(claim) {
		return refuse(claim, owner, owner.Namespace+"/"+owner.Name)
	}
	mismatches, err := CheckNamed(claim, volume)
	if err != nil {
		return Action{}, err
	}
	if len(mismatches) == 0 {
		return bind(volume, claim)
	}
	message := fmt.Sprintf("the volume %q that the claim names does not fit it: %s", volume.Name, mismatches)
	waiting := wait("C7", message, warning(claim, EventVolumeMismatch, message))
	return pend(claim, waiting.explained(Explanation{State: ClaimMismatched, Volume: volume.Name, Mismatches: mismatches})), nil
}

// refuse is for a claim that names a volume which another claim has (C9). That a controller bound the
// claim before, as bound-by-controller says, means that somebody removed bind-completed: such a claim is
// an error and left as it is.
func refuse(claim *corev1.PersistentVolumeClaim, owner Key, holder string) (Action, error) {
	message := fmt.Sprintf("the volume %q that the claim names belongs to another claim, %s", claim.Spec.VolumeName, holder)
	waiting := wait("C9", message, warning(claim, EventFailedBinding, message))
	waiting = waiting.explained(Explanation{State: ClaimRefused, Volume: claim.Spec.VolumeName, Holder: owner})
	if phase.BoundByController(claim) {
		return waiting, &InvalidError{KeyOf(claim).String(), "spec.volumeName", message}
	}
	return pend(claim, waiting), nil
}

// holder is the claim that a claimRef names. The UID tells an earlier claim of the same name apart.
func holder(ref *corev1.ObjectReference) string {
	if ref.UID == "" {
		return ref.Namespace + "/" + ref.Name
	}
	return fmt.Sprintf("%s/%s with UID %s", ref.Namespace, ref.Name, ref.UID)
}

// lose is for a claim that was bound and has no volume any more (C10). Before that is said of a volume
// that a cache lacks, or has with another claim, the server is asked.
func lose(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, evidence Evidence) (Action, error) {
	explanation, reason := loss(claim, volume)
	lost := unboundStatus(claim, corev1.ClaimLost)
	switch name := claim.Spec.VolumeName; {
	case lost == nil:
		return nothing("C10", "lost").explained(explanation), nil
	case name != "" && !evidence.Proven():
		return readLive(VolumeKey(name), "C10", "before the claim is declared lost").explained(explanation), nil
	}
	action := updateClaimStatus(lost, "C10", explanation.Message)
	if claim.Status.Phase != corev1.ClaimLost {
		action.Events = []Event{warning(claim, reason, explanation.Message)}
	}
	return action.explained(explanation), nil
}

// loss says how a claim lost its volume.
func loss(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (Explanation, EventReason) {
	explanation := Explanation{State: ClaimLost, Volume: claim.Spec.VolumeName}
	switch {
	case volume != nil:
		explanation.Holder = ownerIn(volume.Spec.ClaimRef)
		explanation.Message = fmt.Sprintf("the claim was bound to volume %q, which now belongs to %s; its data may be lost to this claim", volume.Name, owner(volume))
		return explanation, EventClaimMisbound
	case claim.Spec.VolumeName != "":
		explanation.Message = fmt.Sprintf("the claim was bound to volume %q, which does not exist any more; its data may be lost", claim.Spec.VolumeName)
	default:
		explanation.Message = "the claim was bound and names no volume any more; the data on its volume may be lost"
	}
	return explanation, EventClaimLost
}

// ownerIn is the claim that a claimRef names, by its name alone.
func ownerIn(ref *corev1.ObjectReference) Key { return ClaimKey(ref.Namespace, ref.Name) }

// owner says in words whom a volume's claimRef names.
func owner(volume *corev1.PersistentVolume) string {
	ref := volume.Spec.ClaimRef
	if ref.UID == "" {
		return fmt.Sprintf("whoever claims it as %s/%s, without a UID", ref.Namespace, ref.Name)
	}
	return fmt.Sprintf("claim %s/%s with UID %s", ref.Namespace, ref.Name, ref.UID)
}
