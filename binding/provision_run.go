package binding

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// createTries is how often a volume is tried to be stored before its storage is deleted again (P2).
const createTries = 3

// provisionHere makes the volume for a claim with a provisioner of our own (P2). Until the volume is stored, a
// crash leaves a claim with its finalizer: it is provisioned again, and the provisioner returns the same
// storage; or the claim is deleted, and its storage before it (see abandonProvisioning).
func provisionHere(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, provisioner string, view View, rules Rules) (Action, error) {
	if claim.UID == "" {
		return Action{}, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.uid", Problem: "is missing"}
	}
	request := newProvisionRequest(claim, class, provisioner)
	name := request.Volume.Name
	made, ran := lastOf(provisioner, view.Answered(RunProvisioner, claim.UID))
	switch volume, evidence := view.Volume(name); {
	case !evidence.Proven() && (!ran || volume != nil):
		return readLive(obj.VolumeKey(name), "P2", "before storage is made for it"), nil
	case volume != nil:
		return nameTaken(claim, volume)
	case !ran:
		return Action{Kind: RunProvisioner, Hook: provisioner, Request: request, Rule: "P2", Why: "no volume fits, and class " + class.Name + " provisions"}, nil
	case made.Err != nil:
		return notProvisioned(claim, made), nil
	}
	volume, problem := request.accept(made.Volume, rules)
	if problem != "" {
		return tryElsewhere(claim, discard(claim, volume, problem, view, rules)), nil
	}
	if failures := view.Answered(CreateVolume, claim.UID); len(failures) >= createTries { // the node is not to blame
		return discard(claim, volume, fmt.Sprintf("the volume could not be stored: %v", failures[len(failures)-1].Err), view, rules), nil
	}
	if len(view.Answered(RunDeleter, claim.UID)) > 0 { // what was made is another provisioner's, and gone
		waiting := wait("P2", "what was made for the claim was deleted again; it is to be made anew")
		waiting.Retry = RetryBackoff
		return waiting, nil
	}
	// A crash after this write leaves a volume that the claim holds, and the binding goes on from there.
	return Action{Kind: CreateVolume, Volume: volume, Rule: "P2", Why: "its storage is made", Events: []Event{
		normal(claim, EventProvisioned, fmt.Sprintf("the provisioner %q made volume %q", provisioner, name)),
	}}, nil
}

// nameTaken is for a claim whose volume exists, though the claim did not choose it.
func nameTaken(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (Action, error) {
	why := "it is not the claim's"
	if phase.LinkOf(volume, claim) == phase.Held {
		mismatches, err := match.CheckNamed(claim, volume)
		if err != nil {
			return Action{}, err
		}
		why = "it does not fit: " + mismatches.String()
	}
	message := fmt.Sprintf("the volume %q that would be provisioned exists, and %s", volume.Name, why)
	waiting := wait("P2", message, warning(claim, EventProvisioningFailed, message))
	waiting.Retry = RetryBackoff
	return waiting, nil
}

// notProvisioned is for a claim whose provisioner did not make its storage, or not yet.
func notProvisioned(claim *corev1.PersistentVolumeClaim, answer Answer) Action {
	if answer.meaning().Meaning == HookInProgress {
		return answer.later(wait("Rh", "the provisioner is at work"))
	}
	message := fmt.Sprintf("the provisioner failed: %v", answer.Err)
	failed := answer.later(wait("P2", message, warning(claim, EventProvisioningFailed, message)))
	if answer.meaning().Meaning == HookRefused {
		return failed // another node would be refused as well, and another, without end
	}
	return tryElsewhere(claim, failed)
}

// tryElsewhere has the scheduler choose another node, where it chose this one and there is only to wait on it.
func tryElsewhere(claim *corev1.PersistentVolumeClaim, waiting Action) Action {
	if waiting.Kind != Wait || !nodeSelected(claim) {
		return waiting
	}
	unplaced := claim.DeepCopy()
	delete(unplaced.Annotations, storageclass.SelectedNodeAnnotation)
	action := updateClaim(unplaced, "P2", waiting.Why)
	action.Events = waiting.Events
	return action
}

// discard deletes the storage that was made for a volume which cannot be stored, if nobody else has stored it.
func discard(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, problem string, view View, rules Rules) Action {
	if _, evidence := view.Volume(volume.Name); !evidence.Proven() {
		return readLive(obj.VolumeKey(volume.Name), "P2", "before its storage is deleted again")
	}
	action, _ := deleteAgain(claim, volume, problem, view, rules)
	if action.RunsHook() {
		return action
	}
	waiting := wait("P2", problem, append([]Event{warning(claim, EventProvisioningFailed, problem)}, action.Events...)...)
	waiting.Retry, waiting.After = RetryBackoff, action.After
	if action.After > 0 { // the deleter is at work
		waiting.Retry = RetryAfter
	}
	return waiting
}

// deleteAgain runs the deleter for storage that no volume stands for, and reports whether it is gone. If it is
// not, there is only to wait. What was never a volume is attached nowhere: an attachment names its volume.
func deleteAgain(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, why string, view View, rules Rules) (action Action, gone bool) {
	provisioner := volume.Annotations[phase.ProvisionedByAnnotation]
	deleted, ran := lastOf(provisioner, view.Answered(RunDeleter, claim.UID))
	switch {
	case !ran && rules.Hooks.Deleters.Has(provisioner):
		return Action{Kind: RunDeleter, Hook: provisioner, Volume: volume, Rule: "P2", Why: why}, false
	case !ran:
		deleted.Err = fmt.Errorf("no deleter for provisioner %q is registered", provisioner)
	case deleted.Err == nil:
		return Action{}, true
	case deleted.meaning().Meaning == HookInProgress:
		return deleted.later(wait("Rh", "the deleter is at work")), false
	}
	message := fmt.Sprintf("the storage made for the claim could not be deleted again: %v", deleted.Err)
	return deleted.later(wait("P2", message, warning(claim, EventProvisioningCleanup, message))), false
}
