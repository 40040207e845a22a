package decision

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// unsureVolume returns the volume that was provisioned for a claim and may have lost its storage; nil if there is none. Until the
// claim is bound, an announcement on it says that somebody was about to delete what was made for it, because there was no volume.
// One that shows up later may have been on its way since before, from another controller or through a server that is slow. What
// this sync itself has stored is newer than the announcement if that stood already when the provisioner was called. The finalizer
// may be gone: it goes once the storage is deleted, for another provisioner, and its tenant can take it off. Another's volume is as sure as ever.
func unsureVolume(claim *corev1.PersistentVolumeClaim, view View, options Options) *corev1.PersistentVolume {
	announcement, announced := reclaim.AnnouncementOf(claim)
	volume, _ := view.Volume(ProvisionedName(claim.UID))
	if !announced || volume == nil || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound || !phase.BoundByController(volume) { // a person has made that
		return nil
	}
	if takenFromAnother(volume, claim, view) { // which had it, with its storage
		return nil
	}
	provisioner := volume.Annotations[phase.ProvisionedByAnnotation]
	if !provisioning(claim) && !(options.Hooks.Provisioners.Has(provisioner) && options.Hooks.Deleters.Has(provisioner)) {
		return nil
	}
	stored := func(answer Answer) bool {
		return answer.Err == nil && answer.Volume.UID == volume.UID && answer.Standing == announcement.Token
	}
	if slices.ContainsFunc(view.Answered(CreateVolume, claim.UID), stored) {
		return nil
	}
	return volume
}

// startOver deletes a volume that may have lost its storage, so that it is provisioned anew (P2). Its claim was never bound to
// it and stands for its storage, by the finalizer. That is announced on the claim: no other controller binds the two meanwhile
// (R8). A crash after any of the writes leaves the volume as unsure as it was.
func startOver(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View, options Options) Action {
	provisioner := volume.Annotations[phase.ProvisionedByAnnotation] // what the claim says is its tenant's to write
	why := "its storage may have been deleted before it was stored; it is to be provisioned anew"
	_, source := view.Claim(claim.Namespace, claim.Name)
	kept := without(reclaim.WithoutStorage(slices.Clone(volume.Finalizers)), reclaim.VolumeProtection)
	kept = without(kept, reclaim.AnnouncementFinalizer)
	action, problem := Action{}, ""
	switch {
	case !options.Hooks.Provisioners.Has(provisioner):
		problem = fmt.Sprintf("only a controller that has the provisioner %q can", provisioner)
	case isRetainedSince(volume, view.Class(storageclass.OfClaim(claim))):
		problem = fmt.Sprintf("it has reclaim policy Retain since it was stored, so that it stays: if it has its storage, remove the annotation %s of the claim", reclaim.AnnouncementAnnotation)
	case !provisioning(claim): // it stands for the storage, by whoever made it, until it is made anew or deleted
		action, _ = annotateForProvisioner(claim, provisioner, options)
	case announcedToken(claim, view, options) == 0:
		action, problem = announce(claim, DeleteVolume, view, options)
	case source != FromLiveRead:
		action = ReadLive(obj.KeyOf(claim), "R8", "its announcement must stand when its volume is deleted")
	case volume.DeletionTimestamp == nil:
		action = Action{Kind: DeleteVolume, Volume: volume, Rule: "P2", Why: why}
	case len(kept) < len(volume.Finalizers):
		action = update(volume, func(metadata *metav1.ObjectMeta) { metadata.Finalizers = kept }, "P2", why)
	default:
		problem = "finalizers of others keep it"
	}
	if problem != "" {
		message := fmt.Sprintf("the volume %q may have lost its storage, and is to be deleted before it is provisioned anew: %s", volume.Name, problem)
		action = wait("P2", message, warning(claim, EventProvisioningFailed, message), warning(volume, EventProvisioningFailed, message))
	}
	return action.explained(Explanation{State: ClaimAwaitsProvisioner, Class: storageclass.OfClaim(claim), Provisioner: provisioner})
}

// isRetainedSince reports whether a volume was given policy Retain after it was stored with that of its class. A class that no cache shows proves nothing.
func isRetainedSince(volume *corev1.PersistentVolume, class *storagev1.StorageClass) bool {
	return retained(volume.Spec.PersistentVolumeReclaimPolicy) && (class == nil || class.ReclaimPolicy == nil || !retained(*class.ReclaimPolicy))
}

// mayLose reports whether something that was made for the claim may be deleted yet. An announcement says so until it is noted
// that the deleter has succeeded, and so does a call of this sync: another answer, or none, is no end of what it does (R8).
// Storage that is made meanwhile has the same name, and would be deleted with data.
func mayLose(claim *corev1.PersistentVolumeClaim, provisioner string, view View) bool {
	announcement, announced := reclaim.AnnouncementOf(claim)
	deleted, _ := lastOf(provisioner, view.Answered(RunDeleter, claim.UID))
	return deleted.Err != nil || announced && !announcement.Done && provisioning(claim)
}

// noteUnstored returns the write that notes on the claim that the deleter has succeeded; Nothing where that is noted, or where
// another announcement than that of the call stands by now. A crash before it leaves the announcement, and the deleter is called
// once more.
func noteUnstored(claim *corev1.PersistentVolumeClaim, provisioner string, view View, options Options) Action {
	noted, success := unstored(claim, provisioner, view, options)
	if !success {
		return Action{}
	}
	action := update(claim, func(metadata *metav1.ObjectMeta) { reclaim.Announce(metadata, noted) }, "R8", "what was made for it is deleted")
	action.Token = noted.Token // it is still that of this sync
	return action
}

// unstored returns what to note on the claim for a deleter that has succeeded in this sync, if its announcement stands.
func unstored(claim *corev1.PersistentVolumeClaim, provisioner string, view View, options Options) (noted reclaim.Announcement, success bool) {
	deleted, ran := lastOf(provisioner, view.Answered(RunDeleter, claim.UID))
	noted, _ = reclaim.AnnouncementOf(claim)
	if !ran || deleted.Err != nil || noted.Done || noted.By != options.Identity || noted.Token != deleted.Token {
		return reclaim.Announcement{}, false
	}
	noted.Done = true
	return noted, true
}
