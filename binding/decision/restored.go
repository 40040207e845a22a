package decision

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// GiveBack returns the next read or write by which a claim or volume gets back what it had in a later version, before the server went back
// in time, and nobody else knows of any more (W8): its announcement, or the claimRef of a volume.
func GiveBack(now, former obj.Object, view View) (next Action, lost bool) {
	if lostAnnouncement(now, former) {
		return giveBackAnnouncement(now, former), true
	}
	volume, ok := now.(*corev1.PersistentVolume)
	before, _ := former.(*corev1.PersistentVolume)
	if !ok || before == nil || !lostClaimRef(volume, before) || len(view.Owners(volume.Name)) > 0 {
		return Action{}, false
	}
	key := obj.ReferencedClaim(before)
	claim, source := view.Claim(key.Namespace, key.Name)
	switch {
	case !source.IsLive():
		return ReadLive(key, "W8", "it had the volume before the server went back in time"), true
	case claim != nil && phase.Owned(claim) == volume.Name: // it gets its volume by C11
		return Action{}, false
	}
	return giveBackClaimRef(volume, before), true
}

// Lost reports whether an object lacks what it had in a later version, as GiveBack gives it back.
func Lost(now, former obj.Object) bool {
	volume, ok := now.(*corev1.PersistentVolume)
	before, was := former.(*corev1.PersistentVolume)
	return lostAnnouncement(now, former) || ok && was && lostClaimRef(volume, before)
}

// lostAnnouncement reports whether an announcement is missing. A claim that has a volume needs none, nor does one whose storage was
// deleted.
func lostAnnouncement(now, former obj.Object) bool {
	claim, ok := now.(*corev1.PersistentVolumeClaim)
	_, stands := now.GetAnnotations()[reclaim.AnnouncementAnnotation]
	announcement, announced := reclaim.AnnouncementOf(former)
	return announced && !stands && (!ok || claim.Spec.VolumeName == "" && !announcement.Done)
}

// giveBackAnnouncement announces again what may go on, whoever does it, and however long: so nobody else gets the storage (R8). A
// crash before this write leaves the object as the backup has it, and nobody who remembers.
func giveBackAnnouncement(now, former obj.Object) Action {
	return update(now, func(metadata *metav1.ObjectMeta) { reclaim.AnnounceAgain(metadata, former) }, "W8", "it was announced before the server went back in time")
}

// lostClaimRef reports whether a volume is free that a claim had. One that the backup gives to another claim is that one's.
func lostClaimRef(now, former *corev1.PersistentVolume) bool {
	return former.Spec.ClaimRef != nil && now.Spec.ClaimRef == nil
}

// giveBackClaimRef gives a volume to the claim again whose data may be on it. One that was Released or Failed was that claim's
// for the last time, and becomes so again. Any other is reserved for a claim of that name, and not lost with the claim, which the
// backup may not have. A crash before this write leaves the volume as the backup has it, and nobody who remembers.
func giveBackClaimRef(now, former *corev1.PersistentVolume) Action {
	key := obj.ReferencedClaim(former)
	message := fmt.Sprintf("volume %q had claimRef %s/%s before the API server went back in time, and may have that claim's data: it is kept for a claim of that name; "+
		"to give it to another, remove its claimRef", now.Name, key.Namespace, key.Name)
	action := reserveFor(key, now, "W8", message)
	if former.Status.Phase == corev1.VolumeReleased || former.Status.Phase == corev1.VolumeFailed {
		action.Volume.Spec.ClaimRef.UID = former.Spec.ClaimRef.UID
		if phase.BoundByController(former) {
			action.edit = func(metadata *metav1.ObjectMeta) {
				metav1.SetMetaDataAnnotation(metadata, phase.BoundByControllerAnnotation, "yes")
			}
		}
	}
	action.Events = []Event{warning(now, EventServerWentBack, message)}
	return action
}
