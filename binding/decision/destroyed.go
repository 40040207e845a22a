package decision

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// What follows is about volumes that somebody changes while their storage is being destroyed. A deleter cannot be undone, so
// that no later policy or claimRef hides what it has done: it is noted on the volume, and told (R8).

// nextDestroyed decides on a volume that is still there, though a deleter has deleted its storage, in this sync or as it is
// noted. Where its claim is gone and its policy says so, it is deleted as any other (R3). Otherwise somebody has changed it
// meanwhile, and it stays until a person deletes it.
func nextDestroyed(volume *corev1.PersistentVolume, view View, options Options) (action Action, decided bool) {
	if !storageDeleted(volume, view) {
		return Action{}, false
	}
	key := obj.ReferencedClaim(volume)
	claim, source := view.Claim(key.Namespace, key.Name)
	state := phase.VolumeBindingStateOf(volume, claim)
	if ref := volume.Spec.ClaimRef; ref != nil && !mayName(ref.Namespace, ref.Name) { // there is no such claim to be read
		state = phase.VolumeFree
	}
	unclaimed := state == phase.VolumeOrphaned || state == phase.VolumeUnneeded
	switch {
	case unclaimed && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return Action{}, false
	case volume.DeletionTimestamp != nil:
		action = removeFinalizers(volume, view, options)
		if state != phase.VolumeFree {
			action = action.onceLive(source, key, "R3", "before the volume goes")
		}
		return action, action.Kind != Nothing
	case !storageNoted(volume):
		// A crash before this write leaves nothing but the announcement.
		edit := func(metadata *metav1.ObjectMeta) { noteDeleted(metadata, volume, view, options) }
		return update(volume, edit, "R8", "its storage is deleted, and it was changed meanwhile"), true
	case state == phase.VolumeInUse: // which is told once it is Bound
		return Action{}, false
	case state == phase.VolumeBinding: // a claim that exists is not Released
		return awaitDestruction(volume, nil, view, options)
	}
	action = fail(volume, EventVolumeFailedDelete, destroyedText(volume))
	action.Rule, action.Retry = "R8", RetryNever
	if state != phase.VolumeFree {
		action = action.onceLive(source, key, "R8", "before its phase changes")
	}
	return action, true
}

// destroyedText says what is wrong with a volume whose storage is noted to be deleted, and what to do.
func destroyedText(volume *corev1.PersistentVolume) string {
	return fmt.Sprintf("the storage of volume %q is deleted, and the volume was changed meanwhile; delete the volume or, if it has its storage again, remove the annotation %s",
		volume.Name, reclaim.AnnouncementAnnotation)
}

// storageDeleted reports whether the storage of the volume was deleted, in this sync or as it is noted: then no data is left
// to keep.
func storageDeleted(volume *corev1.PersistentVolume, view View) bool {
	_, deleted := deletion(volume, view)
	return deleted || storageNoted(volume)
}

// deletion returns the last call in this sync of a deleter, if it has deleted the storage of the volume. Where a later call is announced, that
// one counts: it may delete what is made under the volume's name once that is gone.
func deletion(volume *corev1.PersistentVolume, view View) (call Answer, deleted bool) {
	answers := view.Answered(RunDeleter, volume.UID)
	if len(answers) == 0 || answers[len(answers)-1].Err != nil {
		return Answer{}, false
	}
	call = answers[len(answers)-1]
	announcement, announced := reclaim.AnnouncementOf(volume)
	return call, !announced || announcement.Done || announcement.Token > 0 && announcement.Token <= call.Token
}

// storageNoted reports whether it is noted on the volume that its storage is deleted.
func storageNoted(volume *corev1.PersistentVolume) bool {
	announcement, _ := reclaim.AnnouncementOf(volume)
	return announcement.Done
}

// noteDeleted notes on a volume that its storage is deleted. The announcement that stands on it may be another's by now.
func noteDeleted(metadata *metav1.ObjectMeta, volume *corev1.PersistentVolume, view View, options Options) {
	announcement, _ := reclaim.AnnouncementOf(metadata)
	if call, deleted := deletion(volume, view); deleted && announcement.Token < call.Token {
		announcement = reclaim.Announcement{By: options.Identity, Token: call.Token}
	}
	announcement.Recycles, announcement.Done = false, true
	reclaim.Announce(metadata, announcement)
}

// awaitDestruction keeps a volume from all claims for as long as it carries an announcement (R8). Another controller may be at
// it, or what was called may go on, for an answer that the work does, or a failure, proves no end of it. What is to become of the
// volume is left to a person, unless R3 or R4 goes on. A claim that is Bound to the volume already keeps it. The claim is the one
// that would get the volume, and is told too; nil if none.
func awaitDestruction(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View, options Options) (action Action, blocked bool) {
	announcement, announced := reclaim.AnnouncementOf(volume)
	message, deleted := outlivedText(volume, announcement), storageDeleted(volume, view)
	switch {
	case deleted: // which its own sync notes
		message = destroyedText(volume)
	case !announced:
		return Action{}, false
	default:
		if claim != nil && claim.Status.Phase == corev1.ClaimBound { // it keeps it, and a claimRef keeps it from others
			return Action{}, false
		}
		if action, blocked := awaitAnnounced(volume, obj.VolumeKey(volume.Name), view, options); blocked {
			return action, true
		}
	}
	action = wait("R8", message)
	if reason := reclaimHookOf(announcedKind(announcement)).failed; claim == nil || !deleted { // else its phase tells
		action.Events = append(action.Events, warning(volume, reason, message))
	}
	if claim != nil {
		action.Events = append(action.Events, warning(claim, EventFailedBinding, message))
	}
	return action, true
}

// announcedKind returns what was announced, the call of a deleter or of a recycler.
func announcedKind(announcement reclaim.Announcement) ActionKind {
	if announcement.Recycles {
		return RunRecycler
	}
	return RunDeleter
}

// outlivedText says what is wrong with a volume that was changed after its announcement, and what to do.
func outlivedText(volume *corev1.PersistentVolume, announcement reclaim.Announcement) string {
	if announcement.Recycles {
		return fmt.Sprintf("volume %q was changed while a recycler was about to remove its data, which may be gone or go yet; once no recycler is at work on it, remove the annotation %s",
			volume.Name, reclaim.AnnouncementAnnotation)
	}
	return fmt.Sprintf("volume %q was changed while its storage was about to be deleted, so that it may have none; once no deleter is at work on it, remove the annotation %s, but if it has none, first set its reclaim policy to Retain and delete it",
		volume.Name, reclaim.AnnouncementAnnotation)
}

// outlivesAnnouncement reports whether a volume whose claim is gone carries an announcement, and what is next for it is not the same: the
// end of one call is no end of another, which may go on under the name of the volume once that is gone.
func outlivesAnnouncement(volume *corev1.PersistentVolume, next reclaim.Action) bool {
	announcement, announced := reclaim.AnnouncementOf(volume)
	switch next {
	case reclaim.Keep:
		return announced
	case reclaim.RunRecycler, reclaim.RunDeleter:
		return announced && announcement.Recycles != (next == reclaim.RunRecycler)
	}
	return false
}
