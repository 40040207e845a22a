package binding

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
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
	volume, evidence := namedVolume(claim, view)
	standing := phase.ClaimStandingOf(claim, volume)
	if claim.DeletionTimestamp != nil {
		action, decided := letGo(claim, standing, view, rules)
		if stuck := action.Kind == Wait && onceBound(standing); decided && !stuck { // C10 and C11 do not wait for that
			return action.explained(terminating(claim, view)), nil
		}
	}
	switch standing {
	case phase.Unbound:
		return nextUnbound(claim, view, rules)
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
		if owners := view.Owners(volume.Name); volume.Spec.ClaimRef == nil && match.KeptFrom(obj.KeyOf(claim), owners) {
			return contend(claim, volume.Name, owners), nil
		}
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
func letGo(claim *corev1.PersistentVolumeClaim, standing phase.ClaimStanding, view View, rules Rules) (action Action, decided bool) {
	if action, decided := releaseClaim(claim, view, rules); decided {
		return action, true
	}
	if provisioning(claim) {
		return abandonProvisioning(claim, view, rules), true
	}
	return nothing("C12", "the claim is being deleted: nothing new is begun for it"), !onceBound(standing)
}

// onceBound reports whether a claim of that standing was bound, or is.
func onceBound(standing phase.ClaimStanding) bool {
	return standing == phase.Bound || standing == phase.Misbound || standing == phase.Lost
}

// namedVolume looks up the volume that the claim names; nil if it names none.
func namedVolume(claim *corev1.PersistentVolumeClaim, view View) (*corev1.PersistentVolume, Evidence) {
	if claim.Spec.VolumeName == "" {
		return nil, Unknown
	}
	return view.Volume(claim.Spec.VolumeName)
}

// pend makes the claim Pending first, if it is not, and then does what the given action says. One that was bound once
// stays as it is: what it lost is not forgotten.
func pend(claim *corev1.PersistentVolumeClaim, then Action) Action {
	pending := unboundStatus(claim, corev1.ClaimPending)
	if pending == nil || phase.BindCompleted(claim) {
		return then
	}
	action := updateClaimStatus(pending, then.Rule, then.Why)
	action.Events, action.explains = then.Events, then.explains
	return action
}

// ask is for a claim that names a volume which has no claimRef (C7).
func ask(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) (Action, error) {
	if owners := view.Owners(volume.Name); match.KeptFrom(obj.KeyOf(claim), owners) {
		var holder obj.Key
		if len(owners) == 1 {
			holder = owners[0]
		}
		return refuse(claim, holder, nameAll(owners))
	}
	mismatches, err := match.CheckNamed(claim, volume)
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

// refuse is for a claim that names a volume which another claim has (C9), or several (the zero Key). That a controller
// bound the claim before, as bound-by-controller says, means that somebody removed bind-completed: such a claim is an
// error and left as it is. With bind-completed it only waits, as it is.
func refuse(claim *corev1.PersistentVolumeClaim, owner obj.Key, holder string) (Action, error) {
	whose := "another claim"
	if owner == (obj.Key{}) {
		whose = "other claims"
	}
	message := fmt.Sprintf("the volume %q that the claim names belongs to %s, %s", claim.Spec.VolumeName, whose, holder)
	waiting := wait("C9", message, warning(claim, EventFailedBinding, message))
	waiting = waiting.explained(Explanation{State: ClaimRefused, Volume: claim.Spec.VolumeName, Holder: owner})
	if phase.BoundByController(claim) && !phase.BindCompleted(claim) {
		return waiting, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "spec.volumeName", Problem: message}
	}
	return pend(claim, waiting), nil
}

// contend is for a claim that is Bound to a volume without claimRef which other claims own as well (C11). Whose data it
// is cannot be told from here, so that nobody gets it.
func contend(claim *corev1.PersistentVolumeClaim, volume string, owners []obj.Key) Action {
	message := fmt.Sprintf("the volume %q has no claimRef, and several claims are bound to it; to give it to this one, set its claimRef to %s/%s with UID %s, and the others become Lost: %s",
		volume, claim.Namespace, claim.Name, claim.UID, nameAll(others(obj.KeyOf(claim), owners)))
	waiting := wait("C11", message, warning(claim, EventFailedBinding, message))
	return waiting.explained(Explanation{State: ClaimContended, Volume: volume})
}

// others are the owners without the claim.
func others(claim obj.Key, owners []obj.Key) []obj.Key {
	return slices.DeleteFunc(slices.Clone(owners), func(owner obj.Key) bool { return owner == claim })
}

// nameAll names the claims: "shop/data" or "shop/data, shop/logs".
func nameAll(claims []obj.Key) string {
	names := make([]string, len(claims))
	for i, claim := range claims {
		names[i] = claim.Namespace + "/" + claim.Name
	}
	return strings.Join(names, ", ")
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
		return readLive(obj.VolumeKey(name), "C10", "before the claim is declared lost").explained(explanation), nil
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
func ownerIn(ref *corev1.ObjectReference) obj.Key { return obj.ClaimKey(ref.Namespace, ref.Name) }

// owner says in words whom a volume's claimRef names.
func owner(volume *corev1.PersistentVolume) string {
	ref := volume.Spec.ClaimRef
	if ref.UID == "" {
		return fmt.Sprintf("whoever claims it as %s/%s, without a UID", ref.Namespace, ref.Name)
	}
	return fmt.Sprintf("claim %s/%s with UID %s", ref.Namespace, ref.Name, ref.UID)
}
