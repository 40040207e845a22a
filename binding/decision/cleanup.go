package decision

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// ProvisioningFinalizer is on a claim from before its provisioner is first run until the volume is the claim's.
// Without it the deletion of a claim in between would remove the only trace of the storage made for it.
const ProvisioningFinalizer = "pvbind.github.io/provisioning"

func provisioning(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Finalizers, ProvisioningFinalizer)
}

// NextForLeftover deletes storage that a sync may have made for a claim which was gone by then. An old leader that has not
// noticed runs its provisioner after the new one has released the claim; only the old one can know of the storage. Storage
// that a volume stands for is left, and reclaimed with the volume. Storage without a volume is attached
// nowhere, since an attachment names its volume. The UID is that of the claim that has the name now, if any.
func NextForLeftover(claim obj.Key, uid types.UID, made []Answer, view View, options Options) (action Action, left bool) {
	for _, answer := range made {
		if answer.Of != RunProvisioner || answer.For == uid || !options.Hooks.Deleters.Has(answer.Hook) {
			continue
		}
		volume := leftoverOf(claim, answer)
		deleted := view.Answered(RunDeleter, answer.For)
		stored, source := view.Volume(volume.Name)
		switch {
		case stored != nil || len(deleted) >= createTries || len(deleted) > 0 && deleted[len(deleted)-1].Err == nil:
			continue
		case !source.IsLive():
			return ReadLive(obj.VolumeKey(volume.Name), "P2", "before what was made for a claim that is gone is deleted"), true
		}
		return Action{Kind: RunDeleter, Hook: answer.Hook, Volume: volume, Rule: "P2", Why: "it was made for a claim that is gone"}, true
	}
	return Action{}, false
}

// leftoverOf returns the volume that storage was made for, as far as a deleter needs it.
func leftoverOf(claim obj.Key, made Answer) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	if made.Volume != nil {
		volume = made.Volume.DeepCopy()
	}
	volume.ObjectMeta = metav1.ObjectMeta{
		Name:        ProvisionedName(made.For),
		Annotations: map[string]string{phase.ProvisionedByAnnotation: made.Hook},
	}
	volume.Spec.ClaimRef = referenceTo(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name, UID: made.For},
	})
	return volume
}

// abandonProvisioning ends the provisioning for a claim that is being deleted, or got another volume or another provisioner.
// The storage that may have been made for it is deleted, unless a volume stands for it, and the finalizer goes.
func abandonProvisioning(claim *corev1.PersistentVolumeClaim, view View, options Options) Action {
	provisioner, name := claimProvisioner(claim), ProvisionedName(claim.UID)
	why := "what was made for the claim is not needed"
	volume, source := view.Volume(name)
	switch {
	case claim.Spec.VolumeName == name:
		// The volume stood for the storage. If it is gone, that was as its policy says, Retain perhaps.
	case !source.IsLive():
		return ReadLive(obj.VolumeKey(name), "P2", "before what was made for the claim is deleted")
	case volume == nil && !options.Hooks.Deleters.Has(provisioner):
		message := fmt.Sprintf("what provisioner %q made for the claim, if anything, is not deleted, for no deleter of that name is registered here: run a controller that has it, or delete the storage by hand and then take the finalizer %s off the claim", provisioner, ProvisioningFinalizer)
		return wait("P2", message, warning(claim, EventProvisioningCleanup, message))
	case volume == nil:
		made, _ := lastOf(provisioner, view.Answered(RunProvisioner, claim.UID))
		expected, _ := volumeToStore(newProvisionRequest(claim, nil, provisioner), made.Volume, options)
		if action, gone := deleteUnstored(claim, expected, why, view, options); !gone {
			return action
		}
	}
	// A crash before this write leaves the finalizer, and the deleter is run once more.
	changed := claim.DeepCopy()
	changed.Finalizers = without(changed.Finalizers, ProvisioningFinalizer)
	return updateClaim(changed, "P2", why)
}

// discard deletes the storage that was made for a volume which cannot be stored, unless a live read shows that volume.
func discard(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, problem string, view View, options Options) Action {
	if _, source := view.Volume(volume.Name); !source.IsLive() {
		return ReadLive(obj.VolumeKey(volume.Name), "P2", "before its storage is deleted again")
	}
	action, _ := deleteUnstored(claim, volume, problem, view, options)
	if action.RunsHook() {
		return action
	}
	waiting := wait("P2", problem, append([]Event{warning(claim, EventProvisioningFailed, problem)}, action.Events...)...).withBackoff()
	if action.After > 0 { // the deleter has not finished
		waiting.Retry, waiting.After = RetryAfter, action.After
	}
	return waiting
}

// deleteUnstored runs the deleter for storage that no volume stands for, and reports whether the storage is gone. If it is
// not, the action is the call of the deleter or a Wait. Such storage is attached nowhere, since an attachment names its volume.
func deleteUnstored(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, why string, view View, options Options) (action Action, gone bool) {
	provisioner := volume.Annotations[phase.ProvisionedByAnnotation]
	deleted, ran := lastOf(provisioner, view.Answered(RunDeleter, claim.UID))
	switch {
	case !ran && options.Hooks.Deleters.Has(provisioner):
		return Action{Kind: RunDeleter, Hook: provisioner, Volume: volume, Rule: "P2", Why: why}, false
	case !ran:
		deleted.Err = fmt.Errorf("no deleter for provisioner %q is registered", provisioner)
	case deleted.Err == nil:
		return Action{}, true
	case deleted.hookError().Meaning == hooks.InProgress:
		return deleted.retry(wait("Rh", "the deleter is at work")), false
	}
	message := fmt.Sprintf("the storage made for the claim could not be deleted again: %v", deleted.Err)
	return deleted.retry(wait("P2", message, warning(claim, EventProvisioningCleanup, message))), false
}
