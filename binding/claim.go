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
	if action, decided := releaseClaim(claim, view, rules); decided {
		return action, nil
	}
	if claim.DeletionTimestamp != nil && provisioning(claim) {
		return abandonProvisioning(claim, view, rules), nil
	}
	if claim.DeletionTimestamp != nil && !phase.BindCompleted(claim) {
		return nothing("C12", "the claim is being deleted: nothing new is begun for it"), nil
	}
	volume, evidence := namedVolume(claim, view)
	switch phase.ClaimStandingOf(claim, volume) {
	case phase.Unbound:
		return match(claim, view, rules)
	case phase.Awaiting:
		return pend(claim, wait("C6", "volume "+claim.Spec.VolumeName+" does not exist")), nil
	case phase.Asking:
		return ask(claim, volume, view)
	case phase.Finishing:
		return bind(volume, claim)
	case phase.Refused:
		return refuse(claim, holder(volume.Spec.ClaimRef))
	case phase.Bound:
		action, err := bind(volume, claim)
		if action.Kind == Nothing && err == nil && provisioning(claim) {
			return abandonProvisioning(claim, view, rules), nil
		}
		return action, err
	}
	return lose(claim, volume, evidence)
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
	action.Events = then.Events
	return action
}

// ask is for a claim that names a volume which nobody has (C7).
func ask(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) (Action, error) {
	if owner := view.Owner(volume.Name); owner != (Key{}) && owner != KeyOf(claim) {
		return refuse(claim, owner.Namespace+"/"+owner.Name)
	}
	mismatches, err := CheckNamed(claim, volume)
	if err != nil {
		return Action{}, err
	}
	if len(mismatches) == 0 {
		return bind(volume, claim)
	}
	message := fmt.Sprintf("the volume %q that the claim names does not fit it: %s", volume.Name, mismatches)
	return pend(claim, wait("C7", message, warning(claim, EventVolumeMismatch, message))), nil
}

// refuse is for a claim that names a volume which another claim has (C9). That a controller bound the
// claim before, as bound-by-controller says, means that somebody removed bind-completed: such a claim is
// an error and left as it is.
func refuse(claim *corev1.PersistentVolumeClaim, holder string) (Action, error) {
	message := fmt.Sprintf("the volume %q that the claim names belongs to another claim, %s", claim.Spec.VolumeName, holder)
	waiting := wait("C9", message, warning(claim, EventFailedBinding, message))
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
	lost := unboundStatus(claim, corev1.ClaimLost)
	name := claim.Spec.VolumeName
	if lost == nil {
		return nothing("C10", "lost"), nil
	}
	if name != "" && !evidence.Proven() {
		return readLive(VolumeKey(name), "C10", "before the claim is declared lost"), nil
	}
	reason, message := EventClaimLost, "the claim was bound and names no volume any more; the data on its volume may be lost"
	switch {
	case volume != nil:
		reason = EventClaimMisbound
		message = fmt.Sprintf("the claim was bound to volume %q, which now belongs to %s; its data may be lost to this claim", name, owner(volume))
	case name != "":
		message = fmt.Sprintf("the claim was bound to volume %q, which does not exist any more; its data may be lost", name)
	}
	action := updateClaimStatus(lost, "C10", message)
	if claim.Status.Phase != corev1.ClaimLost {
		action.Events = []Event{warning(claim, reason, message)}
	}
	return action, nil
}

// owner says in words whom a volume's claimRef names.
func owner(volume *corev1.PersistentVolume) string {
	ref := volume.Spec.ClaimRef
	if ref.UID == "" {
		return fmt.Sprintf("whoever claims it as %s/%s, without a UID", ref.Namespace, ref.Name)
	}
	return fmt.Sprintf("claim %s/%s with UID %s", ref.Namespace, ref.Name, ref.UID)
}
