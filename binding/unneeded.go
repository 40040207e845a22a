package binding

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// unneeded is for a volume whose claim names another one (V2). If the claim has that one, this one is free, or Released
// and reclaimed. If it has not, this may be all that is left of its data, and nothing is done. Both need a live read of
// the other volume: before each write, and before the storage is deleted.
func unneeded(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, standing phase.VolumeStanding, view View, rules Rules) Action {
	other, evidence := view.Volume(claim.Spec.VolumeName)
	if other == nil || phase.LinkOf(other, claim) != phase.Held {
		switch {
		case deleted(volume, view):
			return released(volume, claim, view, rules, "its storage is deleted")
		case !evidence.Proven():
			return readLive(obj.VolumeKey(claim.Spec.VolumeName), "V2", "the claim names it, and does not have it here")
		}
		return awaitOther(volume, claim, other)
	}
	action, why := Action{}, "its claim has another volume, "+other.Name
	if standing == phase.Misplaced {
		// A crash after this write leaves a volume without its phase; V1 gives it that.
		action = updateVolume(unbind(volume), "V4", why)
	} else {
		action = released(volume, claim, view, rules, why)
	}
	if (action.Writes() || action.RunsHook()) && !evidence.Proven() {
		return readLive(obj.VolumeKey(other.Name), "V2", "before the volume is taken from the claim")
	}
	return action
}

// deleted reports whether the storage of the volume was deleted in this sync: what is left stands for nothing.
func deleted(volume *corev1.PersistentVolume, view View) bool {
	return slices.ContainsFunc(view.Answered(RunDeleter, volume.UID), func(answer Answer) bool { return answer.Err == nil })
}

// awaitOther tells people why the volume is left as it is. It is decided anew when the claim changes, or the volume that
// the claim names (W3).
func awaitOther(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, other *corev1.PersistentVolume) Action {
	lacks := "does not exist"
	switch {
	case other != nil && other.Spec.ClaimRef == nil:
		lacks = "is not bound to it"
	case other != nil:
		lacks = "belongs to " + owner(other)
	}
	message := fmt.Sprintf("volume %q is bound to claim %s/%s, which names volume %q; that one %s, so this one may have the claim's data, and is left as it is until that changes or the claim is gone",
		volume.Name, claim.Namespace, claim.Name, claim.Spec.VolumeName, lacks)
	return wait("V2", message, warning(volume, EventVolumeMismatch, message), warning(claim, EventVolumeMismatch, message))
}
