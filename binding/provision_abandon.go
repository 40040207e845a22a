package binding

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// ProvisioningFinalizer is on a claim from before its provisioner is first run until the volume is the claim's.
// Without it a claim that is deleted in between would take along the only trace of the storage made for it.
const ProvisioningFinalizer = "pvbind.github.io/provisioning"

func provisioning(claim *corev1.PersistentVolumeClaim) bool {
	return slices.Contains(claim.Finalizers, ProvisioningFinalizer)
}

// abandonProvisioning is for a claim that needs no volume of its own any more: it is being deleted, or another
// volume came first, or another provisioner. The storage that may have been made for it is deleted, unless a
// volume stands for it, and the finalizer goes.
func abandonProvisioning(claim *corev1.PersistentVolumeClaim, view View, rules Rules) Action {
	provisioner, name := claimProvisioner(claim), ProvisionedName(claim)
	why := "what was made for the claim is not needed"
	volume, evidence := view.Volume(name)
	switch {
	case claim.Spec.VolumeName == name:
		// The volume stood for the storage. If it is gone, that was as its policy says, Retain perhaps.
	case !evidence.Proven():
		return readLive(obj.VolumeKey(name), "P2", "before what was made for the claim is deleted")
	case volume == nil && !rules.Hooks.Deleters.Has(provisioner):
		message := fmt.Sprintf("what provisioner %q made for the claim, if anything, is not deleted, for no deleter of that name is registered here: run a controller that has it, or delete the storage by hand and then take the finalizer %s off the claim", provisioner, ProvisioningFinalizer)
		return wait("P2", message, warning(claim, EventProvisioningCleanup, message))
	case volume == nil:
		if action, gone := deleteAgain(claim, madeFor(claim, provisioner, view, rules), why, view, rules); !gone {
			return action
		}
	}
	// A crash before this write leaves the finalizer, and the deleter is run once more.
	forgotten := claim.DeepCopy()
	forgotten.Finalizers = without(forgotten.Finalizers, ProvisioningFinalizer)
	return updateClaim(forgotten, "P2", why)
}

// madeFor is the volume as the provisioner returned it to this sync, or without a source.
func madeFor(claim *corev1.PersistentVolumeClaim, provisioner string, view View, rules Rules) *corev1.PersistentVolume {
	made, _ := lastOf(provisioner, view.Answered(RunProvisioner, claim.UID))
	volume, _ := newProvisionRequest(claim, nil, provisioner).accept(made.Volume, rules)
	return volume
}
