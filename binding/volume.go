package binding

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// NextForVolume is the next write for a volume, or what to read, to wait for or to let go first (V, R, G
// and F rules). It works as NextForClaim does.
func NextForVolume(volume *corev1.PersistentVolume, view View, rules Rules) (Action, error) {
	rules = rules.filled()
	if changed, rule, why := volumeMetadata(volume, rules); changed != nil {
		return updateVolume(changed, rule, why), nil
	}
	action, err := follow(volume, view, rules)
	settled := action.Kind == Nothing || action.Kind == Wait // else the phase may still have to become Bound
	if settled && rules.Protection == ProtectionOn && reclaim.VolumeReleasable(volume) {
		// A crash before this write leaves a volume that is being deleted and protected, as it was.
		released := volume.DeepCopy()
		released.Finalizers = without(released.Finalizers, reclaim.VolumeProtection)
		return updateVolume(released, "F3", "it is being deleted and not bound"), nil
	}
	return action, err
}

// follow does for a volume what its claim calls for (V).
func follow(volume *corev1.PersistentVolume, view View, rules Rules) (Action, error) {
	claim, evidence := referencedClaim(volume, view)
	switch standing := phase.VolumeStandingOf(volume, claim); standing {
	case phase.Free:
		return unheld(volume, view)
	case phase.Binding:
		return awaitClaim(volume, claim), nil
	case phase.InUse:
		if volume.Status.Phase != corev1.VolumeBound {
			return updateVolumeStatus(enter(volume, corev1.VolumeBound, "", ""), "V2", "its claim names it"), nil
		}
		return nothing("V2", "bound"), nil
	case phase.Misplaced, phase.Surplus:
		return unneeded(volume, claim, standing, view, rules), nil
	}
	return release(volume, claim, evidence, view, rules), nil
}

// referencedClaim looks up the claim that exists under the name in the volume's claimRef.
func referencedClaim(volume *corev1.PersistentVolume, view View) (*corev1.PersistentVolumeClaim, Evidence) {
	if volume.Spec.ClaimRef == nil {
		return nil, Unknown
	}
	return view.Claim(volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
}

// unheld is for a volume that nobody holds (V1). Somebody may be waiting for it, and then it is not made
// Available first (W1). One that nothing fits, for it is malformed, is reported (X7).
func unheld(volume *corev1.PersistentVolume, view View) (Action, error) {
	if volume.Spec.ClaimRef == nil {
		switch owners := view.Owners(volume.Name); len(owners) {
		case 0:
		case 1:
			return handOver(owners[0], "V1", "it was bound to it and lost its claimRef"), nil
		default:
			return contended(volume, owners, view), nil
		}
	}
	if claim := view.Waiting(volume); claim != nil {
		return handOver(obj.KeyOf(claim), "W1", "it waits for such a volume"), nil
	}
	if volume.Status.Phase != corev1.VolumeAvailable {
		return updateVolumeStatus(enter(volume, corev1.VolumeAvailable, "", ""), "V1", "nobody has it"), nil
	}
	return nothing("V1", "available"), match.CheckWellFormed(volume)
}

// contended is for a volume without claimRef that several claims own (V1). Nobody gets it until a person says whose it is.
func contended(volume *corev1.PersistentVolume, owners []obj.Key, view View) Action {
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

// awaitClaim is for a volume whose claim is about to be bound to it (V2).
func awaitClaim(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Action {
	if has, asks := match.VolumeModeOf(volume.Spec.VolumeMode), match.VolumeModeOf(claim.Spec.VolumeMode); has != asks {
		message := fmt.Sprintf("volume %q has volume mode %s, its claim %s/%s asks for %s", volume.Name, has, claim.Namespace, claim.Name, asks)
		return wait("V2", message, warning(volume, EventVolumeMismatch, message), warning(claim, EventVolumeMismatch, message))
	}
	if volume.DeletionTimestamp != nil || claim.DeletionTimestamp != nil {
		return wait("V2", "it or its claim is being deleted: the binding is not finished (M1, C12)")
	}
	return handOver(obj.KeyOf(claim), "V2", "the binding is to be finished")
}
