package decision

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// NextForVolume returns the next write for a volume, or what to read, which claim to decide on first, or what it waits for (V,
// R, G and F rules). It works as NextForClaim does.
func NextForVolume(volume *corev1.PersistentVolume, view View, options Options) (Action, error) {
	options = options.WithDefaults()
	if action, changes := updateVolumeMetadata(volume, options); changes {
		return action, nil
	}
	action, err := nextByClaim(volume, view, options)
	settled := action.Kind == Nothing || action.Kind == Wait // else the phase may still have to become Bound
	if settled && options.Protection == ProtectionOn && reclaim.VolumeReleasable(volume) {
		return unprotectVolume(volume), nil
	}
	return action, err
}

// nextByClaim decides by the claim that the volume's claimRef names.
func nextByClaim(volume *corev1.PersistentVolume, view View, options Options) (Action, error) {
	claim, source := referencedClaim(volume, view)
	switch state := phase.VolumeBindingStateOf(volume, claim); state {
	case phase.VolumeFree:
		return nextFree(volume, view)
	case phase.VolumeBinding:
		return awaitBinding(volume, claim), nil
	case phase.VolumeInUse:
		if volume.Status.Phase != corev1.VolumeBound {
			return setPhase(volume, corev1.VolumeBound, "V2", "its claim names it"), nil
		}
		return nothing("V2", "bound"), nil
	case phase.VolumeMisbound, phase.VolumeUnneeded:
		return nextUnneeded(volume, claim, state, view, options), nil
	}
	return nextOrphaned(volume, claim, source, view, options), nil
}

// referencedClaim looks up the claim that exists under the name in the volume's claimRef.
func referencedClaim(volume *corev1.PersistentVolume, view View) (*corev1.PersistentVolumeClaim, Source) {
	if volume.Spec.ClaimRef == nil {
		return nil, NotInCache
	}
	return view.Claim(volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
}

// nextFree decides on a volume that no claim has (V1). If a claim waits for it, that claim is decided on before the volume is
// made Available (W1). A malformed volume, which fits no claim, is an error (X7).
func nextFree(volume *corev1.PersistentVolume, view View) (Action, error) {
	if volume.Spec.ClaimRef == nil {
		switch owners := view.Owners(volume.Name); len(owners) {
		case 0:
		case 1:
			return requeue(owners[0], "V1", "it was bound to it and lost its claimRef"), nil
		default:
			return volumeContended(volume, owners, view), nil
		}
	}
	if claim := view.Waiting(volume); claim != nil {
		return requeue(obj.KeyOf(claim), "W1", "it waits for such a volume"), nil
	}
	if volume.Status.Phase != corev1.VolumeAvailable {
		return setPhase(volume, corev1.VolumeAvailable, "V1", "nobody has it"), nil
	}
	return nothing("V1", "available"), match.CheckWellFormed(volume)
}

// volumeContended leaves a volume without claimRef that several claims own (V1). No claim gets it until a person says which.
func volumeContended(volume *corev1.PersistentVolume, owners []obj.Key, view View) Action {
	named := make([]string, len(owners))
	for i, owner := range owners {
		named[i] = owner.Namespace + "/" + owner.Name
		if claim, _ := view.Claim(owner.Namespace, owner.Name); claim != nil {
			named[i] += " with UID " + string(claim.UID)
		}
	}
	message := fmt.Sprintf("volume %q has no claimRef, and several claims are bound to it; set its claimRef to the one whose data it is, with namespace, name and UID: %s",
		volume.Name, strings.Join(named, ", "))
	return wait("V1", message, warning(volume, EventFailedBinding, message))
}

// awaitBinding leads a volume back to the claim that it is about to be bound to (V2).
func awaitBinding(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Action {
	if actual, requested := match.VolumeModeOf(volume.Spec.VolumeMode), match.VolumeModeOf(claim.Spec.VolumeMode); actual != requested {
		message := fmt.Sprintf("volume %q has volume mode %s, its claim %s/%s requests %s", volume.Name, actual, claim.Namespace, claim.Name, requested)
		return wait("V2", message, warning(volume, EventVolumeMismatch, message), warning(claim, EventVolumeMismatch, message))
	}
	if volume.DeletionTimestamp != nil || claim.DeletionTimestamp != nil {
		return wait("V2", "it or its claim is being deleted: the binding is not finished")
	}
	return requeue(obj.KeyOf(claim), "V2", "the binding is to be finished")
}

// nextUnneeded decides on a volume whose claim names another one (V2). If that one is bound to the claim, this one becomes free,
// or Released and reclaimed. If not, this may be all that is left of the claim's data, and nothing is done. Both need a live
// read of the other volume: before each write, and before the storage is deleted.
func nextUnneeded(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, state phase.VolumeBindingState, view View, options Options) Action {
	other, source := view.Volume(claim.Spec.VolumeName)
	if other == nil || phase.ClaimRefStateOf(other, claim) != phase.ClaimRefBound {
		switch {
		case storageDeleted(volume, view):
			return releaseAndReclaim(volume, claim, view, options, "its storage is deleted")
		case !source.IsLive():
			return ReadLive(obj.VolumeKey(claim.Spec.VolumeName), "V2", "the claim names it, and does not have it here")
		}
		return awaitOther(volume, claim, other)
	}
	var action Action
	why := "its claim has another volume, " + other.Name
	if state == phase.VolumeMisbound {
		// A crash after this write leaves a volume without its phase; V1 gives it that.
		action = updateVolume(unbind(volume), "V4", why)
	} else {
		action = releaseAndReclaim(volume, claim, view, options, why)
	}
	if (action.Writes() || action.RunsHook()) && !source.IsLive() {
		return ReadLive(obj.VolumeKey(other.Name), "V2", "before the volume is taken from the claim")
	}
	return action
}

// storageDeleted reports whether the storage of the volume was deleted in this sync: then no data is left to keep.
func storageDeleted(volume *corev1.PersistentVolume, view View) bool {
	return slices.ContainsFunc(view.Answered(RunDeleter, volume.UID), func(answer Answer) bool { return answer.Err == nil })
}

// awaitOther leaves the volume as it is and says why. The next decision follows when the claim changes, or the volume that
// the claim names (W3).
func awaitOther(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, other *corev1.PersistentVolume) Action {
	lacks := "does not exist"
	switch {
	case other != nil && other.Spec.ClaimRef == nil:
		lacks = "is not bound to it"
	case other != nil:
		lacks = "belongs to " + holderText(other)
	}
	message := fmt.Sprintf("volume %q is bound to claim %s/%s, which names volume %q; that one %s, so this one may have the claim's data, and is left as it is until that changes or the claim is gone",
		volume.Name, claim.Namespace, claim.Name, claim.Spec.VolumeName, lacks)
	return wait("V2", message, warning(volume, EventVolumeMismatch, message), warning(claim, EventVolumeMismatch, message))
}
