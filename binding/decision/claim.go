package decision

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// NextForClaim returns the next write for a claim, or what to read, which claim to decide on first, or what it waits for (C, B,
// G, F and P rules). It modifies nothing that it is given. Its caller does what the action says, puts the
// server's reply in place of the old object, and calls again, until the answer is Nothing or Wait.
//
// An error is about malformed objects (*obj.InvalidError) or a state that only a person can have made (C9);
// the action returned beside it then has events and no write. Functions that only answer take a claim that is not stored yet;
// here one without a UID is refused where the write needs it.
func NextForClaim(claim *corev1.PersistentVolumeClaim, view View, options Options) (Action, error) {
	action, err := DraftForClaim(claim, view, options)
	return action.Complete(), err
}

// DraftForClaim is NextForClaim for a caller who holds a lock, and calls Action.Complete when it does not any more.
func DraftForClaim(claim *corev1.PersistentVolumeClaim, view View, options Options) (Action, error) {
	options = options.WithDefaults()
	volume, source := view.Volume(claim.Spec.VolumeName) // none if it names none
	state := phase.ClaimBindingStateOf(claim, volume)
	restored, decided := restoreClaimRef(claim, state, volume, view, options)
	if decided { // before a write of the claim, which may be refused for long
		return restored, nil
	}
	action, err := nextForItself(claim, state, volume, source, view, options)
	return action.Beside(restored), err // what keeps its volume without claimRef is told, whatever comes of the claim (X10)
}

// nextForItself decides on a claim whose volume needs no claimRef by it, or cannot have it.
func nextForItself(claim *corev1.PersistentVolumeClaim, state phase.ClaimBindingState, volume *corev1.PersistentVolume, source Source, view View, options Options) (Action, error) {
	if action, changes := updateClaimMetadata(claim, options); changes {
		return action, nil
	}
	if provisioning(claim) && !phase.BindCompleted(claim) { // what was made for it may be on its way out: nothing is made or bound meanwhile
		if action, blocked := awaitAnnounced(claim, obj.KeyOf(claim), view, options); blocked {
			return action.explained(Explanation{State: ClaimAwaitsProvisioner, Class: storageclass.OfClaim(claim), Provisioner: claimProvisioner(claim)}), nil
		}
	}
	deleting := claim.DeletionTimestamp != nil
	if deleting {
		if action, decided := nextTerminating(claim, state, view, options); decided {
			return action.explained(explainTerminating(claim)), nil
		}
	}
	action, err := nextInState(claim, state, volume, source, view, options)
	if err != nil || !provisioning(claim) || !provisioned(claim, state, action) {
		return action, err
	}
	explanation := *action.explains
	if deleting && state != phase.ClaimBound {
		explanation = explainTerminating(claim)
	}
	return abandonProvisioning(claim, view, options).Beside(action).explained(explanation), nil
}

// provisioned reports whether a claim on which nothing is to be written needs no provisioning any more: it is bound or being deleted, or waits for
// another volume, which it names.
func provisioned(claim *corev1.PersistentVolumeClaim, state phase.ClaimBindingState, action Action) bool {
	if action.Kind == Wait {
		return claim.DeletionTimestamp == nil && !phase.BindCompleted(claim) && claim.Spec.VolumeName != "" && claim.Spec.VolumeName != ProvisionedName(claim.UID)
	}
	return action.Kind == Nothing && (claim.DeletionTimestamp != nil || state == phase.ClaimBound)
}

// restoreClaimRef gives the volume of a claim its claimRef back, if that was removed (C11). It comes before all else, and before
// the claim is let go (F2): after that nothing would say whose data is on the volume, which would be free for anybody. With it
// the volume of one that is being deleted becomes Released (V3). A crash after this write leaves a pair as any other.
func restoreClaimRef(claim *corev1.PersistentVolumeClaim, state phase.ClaimBindingState, volume *corev1.PersistentVolume, view View, options Options) (action Action, decided bool) {
	if volume == nil || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefNone || state != phase.ClaimBound && !ownsThoughLost(claim, volume, view) {
		return Action{}, false
	}
	if owners := view.Owners(volume.Name); match.OwnedByAnother(obj.KeyOf(claim), owners) {
		if claim.DeletionTimestamp == nil {
			return Action{}, false
		}
		return awaitOtherOwners(claim, volume.Name, owners, view)
	}
	var err error
	if state == phase.ClaimBound {
		action, err = bind(volume, claim, view, options)
	} else {
		action, err = bindRequested(claim, volume, view, options)
	}
	return action, err == nil && (action.Writes() || action.Kind == Read) // what is announced (R8) holds up no deletion, and keeps the volume from others too
}

// ownsThoughLost reports whether a volume without claimRef is that of a claim which is not Bound any more, for it was made again (M2).
func ownsThoughLost(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) bool {
	return claim.Status.Phase != corev1.ClaimBound && claim.Spec.VolumeName == volume.Name && slices.Contains(view.Owners(volume.Name), obj.KeyOf(claim))
}

// awaitOtherOwners keeps one of several owners of a volume without claimRef until the others are gone, where all are being deleted:
// the last one of them in order, which can write its claimRef then. A cache does not tell who else is being deleted: of two that are
// let go by two controllers, each might be the other's reason.
func awaitOtherOwners(claim *corev1.PersistentVolumeClaim, volume string, owners []obj.Key, view View) (action Action, waits bool) {
	own := obj.KeyOf(claim)
	last := true
	for _, owner := range others(own, owners) {
		other, source := view.Claim(owner.Namespace, owner.Name)
		switch {
		case !source.IsLive():
			read := ReadLive(owner, "C11", "one of the owners of a volume without claimRef is to be let go last")
			read.explains = claimContended(claim, volume, owners).explains
			return read, true
		case other != nil && other.DeletionTimestamp == nil:
			return Action{}, false
		}
		last = last && obj.CompareKeys(owner, own) < 0
	}
	return claimContended(claim, volume, owners), last
}

// nextTerminating removes the protection and the provisioning finalizer of a claim that is being deleted, and begins nothing new
// for it (C12). A claim that was bound is still completed or made Lost (C10, C11) if no finalizer can be removed yet.
func nextTerminating(claim *corev1.PersistentVolumeClaim, state phase.ClaimBindingState, view View, options Options) (action Action, decided bool) {
	if action, decided := unprotectClaim(claim, view, options); decided {
		return action, true
	}
	wasBound := state == phase.ClaimBound || state == phase.ClaimMisbound || state == phase.ClaimLost
	if provisioning(claim) {
		action = abandonProvisioning(claim, view, options)
		return action, action.Kind != Wait || !wasBound
	}
	return nothing("C12", "the claim is being deleted: nothing new is begun for it"), !wasBound
}

func nextInState(claim *corev1.PersistentVolumeClaim, state phase.ClaimBindingState, volume *corev1.PersistentVolume, source Source, view View, options Options) (Action, error) {
	switch state {
	case phase.ClaimUnbound:
		return nextUnbound(claim, view, options)
	case phase.ClaimAwaitsVolume:
		return awaitNamed(claim), nil
	case phase.ClaimRequestsVolume:
		return bindRequested(claim, volume, view, options)
	case phase.ClaimVolumeTaken:
		return volumeTaken(claim, referenceText(volume.Spec.ClaimRef), obj.ReferencedClaim(volume))
	case phase.ClaimBinding, phase.ClaimBound:
		if owners := view.Owners(volume.Name); volume.Spec.ClaimRef == nil && match.OwnedByAnother(obj.KeyOf(claim), owners) {
			return claimContended(claim, volume.Name, owners), nil
		}
		action, err := bind(volume, claim, view, options)
		if action.Rule == "B4" && claim.Status.Phase == corev1.ClaimLost { // whose cache is late would undo C10 without end
			action = action.onceLive(source, obj.VolumeKey(volume.Name), "C11", "before a Lost claim is Bound again")
		}
		return action, err
	default: // phase.ClaimLost, phase.ClaimMisbound
		return nextLost(claim, volume, source), nil
	}
}

// awaitNamed waits for the volume that a claim names (C6). That one cannot come, nobody else would tell.
func awaitNamed(claim *corev1.PersistentVolumeClaim) Action {
	volume := obj.NamedVolume(claim)
	waiting := wait("C6", "volume "+volume.Name+" does not exist")
	if volume.IsNobodys() {
		message := fmt.Sprintf("the claim names volume %q, and no volume can have a name of more than %d bytes: delete the claim and create it again without that name", volume.Name, obj.MaxName)
		waiting = wait("C6", message, warning(claim, EventFailedBinding, message))
	}
	return pendingFirst(claim, waiting.explained(Explanation{State: ClaimAwaitsVolume, Volume: volume.Name}))
}

// pendingFirst makes the claim Pending, if it is not, before the given Wait. A claim that was bound once stays as it is:
// Pending must not hide that it is Lost (C7).
func pendingFirst(claim *corev1.PersistentVolumeClaim, then Action) Action {
	if pending := unboundStatus(claim, corev1.ClaimPending); pending != nil && !phase.BindCompleted(claim) {
		then.Kind, then.Claim, then.draft = UpdateClaimStatus, pending, true
	}
	return then
}

// nextUnbound decides on a claim that names no volume: the best volume that fits (C1), else a class (C2), a consumer
// (C3), a provisioner (C4), or to wait for a volume (C5).
func nextUnbound(claim *corev1.PersistentVolumeClaim, view View, options Options) (Action, error) {
	if volume := unsureVolume(claim, view, options); volume != nil {
		return startOver(claim, volume, view, options), nil
	}
	var action Action
	found, err := view.Find(claim)
	switch {
	case err != nil:
		return Action{}, err
	case found.Volume != nil:
		action, err = bind(found.Volume, claim, view, options)
	default:
		action, err = nextUnmatched(claim, view, options)
	}
	action.Events = append(rejections(claim, found.Rejected), action.Events...)
	return action, err
}

func nextUnmatched(claim *corev1.PersistentVolumeClaim, view View, options Options) (Action, error) {
	if storageclass.Unset(claim) {
		if class := view.DefaultClass(); class != nil {
			changed := *claim
			changed.Spec.StorageClassName = new(class.Name)
			return update(&changed, nil, "C2", "no volume fits; "+class.Name+" is the default class"), nil
		}
	}
	name := storageclass.OfClaim(claim)
	class := view.Class(name)
	waits, err := storageclass.WaitsForFirstConsumer(class)
	switch {
	case err != nil:
		return Action{}, err
	case waits && !metav1.HasAnnotation(claim.ObjectMeta, storageclass.SelectedNodeAnnotation):
		return awaitConsumer(claim, view), nil
	case name != "":
		return provision(claim, class, view, options)
	}
	return awaitAnyVolume(claim, view), nil
}

// awaitConsumer waits, for a claim of class WaitForFirstConsumer, until a pod that uses it is scheduled (C3).
func awaitConsumer(claim *corev1.PersistentVolumeClaim, view View) Action {
	message := "waiting for a pod that uses the claim before it is bound"
	explanation := Explanation{State: ClaimAwaitsConsumer, Class: storageclass.OfClaim(claim)}
	event := normal(claim, EventWaitForConsumer, message)
	if pods, count := view.UnscheduledPods(claim.Namespace, claim.Name, namedPods); count > 0 {
		explanation.State, explanation.Pods = ClaimAwaitsScheduling, pods
		var same string
		message, same = namePods("waiting for its pods to be scheduled: ", pods, count)
		event = normal(claim, EventWaitForPodScheduled, message)
		event.same = same
	}
	return pendingFirst(claim, wait("C3", message, event).explained(explanation))
}

// namedPods is how many pods a message names. A tenant may have thousands that name one claim.
const namedPods = 10

// namePods returns the message that names the first of so many pods, and what stays the same of it when only the number of the others
// changes: an event is not repeated for that (X9).
func namePods(message string, pods []string, count int) (says, same string) {
	message += strings.Join(pods[:min(len(pods), namedPods)], ", ")
	if more := count - min(len(pods), namedPods); more > 0 {
		return fmt.Sprintf("%s and %d more", message, more), message + " and more"
	}
	return message, message
}

// awaitAnyVolume returns a Wait for a volume that fits (C5). Its event is not repeated when only the counts of the search
// change: the binding of any other claim changes them (X8).
func awaitAnyVolume(claim *corev1.PersistentVolumeClaim, view View) Action {
	search, _ := view.Summary(claim) // no error, for Find had none
	message := "no volume fits and the claim names no storage class"
	explanation := message + ": " + search.String()
	event := normal(claim, EventFailedBinding, explanation)
	event.same = message
	waiting := wait("C5", explanation, event)
	return pendingFirst(claim, waiting.explained(Explanation{State: ClaimUnmatched, Message: message, Search: &search}))
}

// rejections returns events on claim and volume for each volume whose claimRef names the claim and that does not fit it (M12).
// For a volume that is bound to the claim and differs in volume mode, the volume's own decision has them (V2).
func rejections(claim *corev1.PersistentVolumeClaim, rejected []match.Verdict) []Event {
	var events []Event
	for _, rejection := range rejected {
		relation := "pre-bound to"
		if rejection.ClaimRef == phase.ClaimRefBound {
			relation = "bound to"
			if rejection.Mismatches.Has(match.VolumeMode) {
				continue
			}
		}
		message := fmt.Sprintf("volume %q is %s claim %s/%s but does not fit it: %s",
			rejection.Volume.Name, relation, claim.Namespace, claim.Name, rejection.Mismatches)
		events = append(events, warning(claim, EventVolumeMismatch, message), warning(rejection.Volume, EventVolumeMismatch, message))
	}
	return events
}

// bindRequested binds a claim to the volume without claimRef that it names, if that fits, or if it was made in place of one that the claim
// had (C7).
func bindRequested(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View, options Options) (Action, error) {
	if owners := view.Owners(volume.Name); match.OwnedByAnother(obj.KeyOf(claim), owners) {
		return volumeTaken(claim, claimNames(owners), owners...)
	}
	mismatches, err := match.CheckNamed(claim, volume, view.Parsed(claim))
	if err != nil {
		return Action{}, err
	}
	if len(mismatches) == 0 || ownsThoughLost(claim, volume, view) {
		action, err := bind(volume, claim, view, options)
		if action.Writes() && len(mismatches) > 0 {
			message := fmt.Sprintf("volume %q is bound to claim %s/%s, for it was made in place of the one that the claim had, but does not fit it: %s", volume.Name, claim.Namespace, claim.Name, mismatches)
			action.Events = append(action.Events, warning(claim, EventVolumeMismatch, message), warning(volume, EventVolumeMismatch, message))
		}
		return action, err
	}
	message := fmt.Sprintf("the volume %q that the claim names does not fit it: %s", volume.Name, mismatches)
	waiting := wait("C7", message, warning(claim, EventVolumeMismatch, message))
	return pendingFirst(claim, waiting.explained(Explanation{State: ClaimVolumeMismatch, Volume: volume.Name, Mismatches: mismatches})), nil
}

// volumeTaken returns a Wait for a claim whose volume belongs to another claim, or to several (C9). A claim with
// bound-by-controller and without bind-completed is an error, and left as it is: a controller bound it, and somebody removed
// the second annotation. A claim with bind-completed only waits, as it is.
func volumeTaken(claim *corev1.PersistentVolumeClaim, names string, holders ...obj.Key) (Action, error) {
	explanation := Explanation{State: ClaimVolumeTaken, Volume: claim.Spec.VolumeName}
	whose := "other claims"
	if len(holders) == 1 {
		whose, explanation.Holder = "another claim", holders[0]
	}
	message := fmt.Sprintf("the volume %q that the claim names belongs to %s, %s", claim.Spec.VolumeName, whose, names)
	waiting := wait("C9", message, warning(claim, EventFailedBinding, message)).explained(explanation)
	if phase.BoundByController(claim) && !phase.BindCompleted(claim) {
		return waiting, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "spec.volumeName", Problem: message}
	}
	return pendingFirst(claim, waiting), nil
}

// claimContended returns a Wait for one of several Bound claims that name the same volume without claimRef (C11).
// Nothing here tells whose data it is, so no claim gets it.
func claimContended(claim *corev1.PersistentVolumeClaim, volume string, owners []obj.Key) Action {
	message := fmt.Sprintf("the volume %q has no claimRef, and several claims are bound to it; to give it to this one, set its claimRef to %s/%s with UID %s, and the others become Lost: %s",
		volume, claim.Namespace, claim.Name, claim.UID, claimNames(others(obj.KeyOf(claim), owners)))
	waiting := wait("C11", message, warning(claim, EventFailedBinding, message))
	return waiting.explained(Explanation{State: ClaimContended, Volume: volume})
}

// others returns the owners without the claim.
func others(claim obj.Key, owners []obj.Key) []obj.Key {
	return slices.DeleteFunc(slices.Clone(owners), func(owner obj.Key) bool { return owner == claim })
}

// claimNames returns the names of claims: "shop/data" or "shop/data, shop/logs".
func claimNames(claims []obj.Key) string {
	names := make([]string, len(claims))
	for i, claim := range claims {
		names[i] = claim.Namespace + "/" + claim.Name
	}
	return strings.Join(names, ", ")
}

// nextLost makes a claim Lost that was bound and has no volume any more (C10). If the volume is only missing from a cache, or
// belongs to another claim there, it is read live first.
func nextLost(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, source Source) Action {
	explanation, reason := explainLost(claim, volume)
	lost := unboundStatus(claim, corev1.ClaimLost)
	switch name := claim.Spec.VolumeName; {
	case lost == nil:
		return nothing("C10", "lost").explained(explanation)
	case name != "" && !source.IsLive():
		return ReadLive(obj.VolumeKey(name), "C10", "before the claim is declared lost").explained(explanation)
	}
	action := updateClaimStatus(lost, "C10", explanation.Message)
	if claim.Status.Phase != corev1.ClaimLost {
		action.Events = []Event{warning(claim, reason, explanation.Message)}
	}
	return action.explained(explanation)
}

// explainLost says how a claim lost its volume.
func explainLost(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (Explanation, EventReason) {
	reason, message := EventClaimLost, "the claim was bound and names no volume any more; the data on its volume may be lost"
	name := obj.NamedVolume(claim).Name
	switch {
	case volume != nil:
		reason = EventClaimMisbound
		message = fmt.Sprintf("the claim was bound to volume %q, which now belongs to %s; its data may be lost to this claim", volume.Name, holderText(volume))
	case name != "":
		message = fmt.Sprintf("the claim was bound to volume %q, which does not exist any more; its data may be lost", name)
	}
	return Explanation{State: ClaimLost, Volume: name, Holder: obj.ReferencedClaim(volume), Message: message}, reason
}

// holderText says in words which claim a volume's claimRef names.
func holderText(volume *corev1.PersistentVolume) string {
	if ref := volume.Spec.ClaimRef; ref.UID == "" {
		return fmt.Sprintf("claim %s/%s by name, without a UID", ref.Namespace, ref.Name)
	}
	return "claim " + referenceText(volume.Spec.ClaimRef)
}

// referenceText returns "shop/data with UID 1234". The UID tells an earlier claim of the same name apart.
func referenceText(ref *corev1.ObjectReference) string {
	if ref.UID == "" {
		return ref.Namespace + "/" + ref.Name
	}
	return fmt.Sprintf("%s/%s with UID %s", ref.Namespace, ref.Name, ref.UID)
}
