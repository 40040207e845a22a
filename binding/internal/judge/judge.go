package judge

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// ProofFor returns what must have been read live before the action; zero if nothing.
func ProofFor(action decision.Action, state *engine.State, claimOfKey func(obj.Key) *corev1.PersistentVolumeClaim) obj.Key {
	switch action.Rule {
	case "C10":
		if action.Claim.Spec.VolumeName != "" {
			return obj.VolumeKey(action.Claim.Spec.VolumeName)
		}
	case "F2":
		return obj.PodsKey(action.Claim.Namespace)
	case "V1", "B1":
		volume, ok := state.Known(action.Target()).(*corev1.PersistentVolume)
		if ok && action.Volume != nil && volume.Spec.ClaimRef == nil && volume.Status.Phase == corev1.VolumeBound && !givenToOwner(action.Volume, state) {
			return obj.ClaimsKey()
		}
	case "V3", "V4", "R3", "R4", "R5":
		volume, ok := state.Known(action.Target()).(*corev1.PersistentVolume) // for the action may unbind it
		if !ok || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == "" && StorageNoted(volume) {
			return obj.Key{} // there is nothing that a claim could lose
		}
		key := ClaimOf(volume)
		if other := namedByHolder(volume, state); other != (obj.Key{}) {
			return other
		}
		if claim := claimOfKey(key); claim == nil || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound {
			return key
		}
	}
	return obj.Key{}
}

// givenToOwner reports whether a volume is given to a claim that is Bound to it already, as far as the controller knows (M2).
func givenToOwner(volume *corev1.PersistentVolume, state *engine.State) bool {
	if volume.Spec.ClaimRef == nil {
		return false
	}
	claim, known := state.Known(ClaimOf(volume)).(*corev1.PersistentVolumeClaim)
	return known && phase.Owned(claim) == volume.Name
}

// WronglyTaken returns what a write of a volume that had no claimRef breaks, or none with a UID, given all claims that its controller knows; ""
// if nothing. It is M2, that the volume is neither given to another than the one claim that is Bound to it, where no person has given it away,
// nor made available. What the controller has not heard of it cannot know.
func WronglyTaken(before, after *corev1.PersistentVolume, claims []*corev1.PersistentVolumeClaim) string {
	if before == nil || before.Spec.ClaimRef != nil && before.Spec.ClaimRef.UID != "" {
		return ""
	}
	var owners []string
	theirs := false
	for _, claim := range claims {
		if claim.Spec.VolumeName == before.Name && claim.Status.Phase == corev1.ClaimBound {
			owners = append(owners, claim.Name)
			theirs = phase.ClaimRefStateOf(after, claim) == phase.ClaimRefBound
		}
	}
	given, freed := after.Spec.ClaimRef != nil, after.Status.Phase == corev1.VolumeAvailable && before.Status.Phase != corev1.VolumeAvailable
	switch {
	case freed && KeptBack(before):
		return fmt.Sprintf("R8: %s is made available, and its storage may be gone", before.Name)
	case len(owners) > 0 && freed:
		return fmt.Sprintf("M2: %s is made available, and %v are Bound to it", before.Name, owners)
	case len(owners) > 0 && given && before.Spec.ClaimRef == nil && (len(owners) > 1 || !theirs):
		return fmt.Sprintf("M2: %s is given to %s, and %v are Bound to it", before.Name, after.Spec.ClaimRef.Name, owners)
	}
	return ""
}

// namedByHolder returns the other volume that the claim which holds the volume names; zero if there is no such claim.
func namedByHolder(volume *corev1.PersistentVolume, state *engine.State) obj.Key {
	claim, known := state.Known(ClaimOf(volume)).(*corev1.PersistentVolumeClaim)
	if !known || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound || claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name {
		return obj.Key{}
	}
	return obj.VolumeKey(claim.Spec.VolumeName)
}

// WrongOfUnneeded returns what an action on a volume that its claim does not need breaks; "" if nothing. Such a volume is
// taken from the claim, or its storage deleted, only if the claim has the other volume that it names, as far as the controller
// knows (V2).
func WrongOfUnneeded(action decision.Action, state *engine.State) string {
	volume, ok := state.Known(action.Target()).(*corev1.PersistentVolume)
	takes := slices.Contains([]string{"V3", "V4", "R3", "R4", "R5"}, action.Rule)
	done := action.Kind == decision.DeleteVolume || ok && volume.DeletionTimestamp != nil // the storage is deleted
	if !ok || !takes || done || volume.Spec.ClaimRef == nil {
		return ""
	}
	key := namedByHolder(volume, state)
	other, known := state.Known(key).(*corev1.PersistentVolume)
	if key == (obj.Key{}) || known && other.Spec.ClaimRef != nil && other.Spec.ClaimRef.UID == volume.Spec.ClaimRef.UID {
		return ""
	}
	return fmt.Sprintf("V2: %s, though the claim does not have %s", action, key)
}

// ClaimOf returns the key of the claim that the volume refers to.
func ClaimOf(volume *corev1.PersistentVolume) obj.Key {
	ref := volume.Spec.ClaimRef
	return obj.ClaimKey(ref.Namespace, ref.Name)
}

// WrongOfVolume returns what a write of a volume breaks; "" if nothing. Claims are those that the server has. It is X2, that no volume is taken from a claim
// that exists and names no other, nor Released while any claim is Bound to it, or Lost with the UID in its claimRef, nor reclaimed for one that never had what
// a person reserved for it, and X3, that none goes from one claim to another in one step.
func WrongOfVolume(before, after *corev1.PersistentVolume, claims []*corev1.PersistentVolumeClaim) string {
	ref := before.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return ""
	}
	serves := slices.ContainsFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return phase.ClaimRefStateOf(before, claim) == phase.ClaimRefBound && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == before.Name)
	})
	lets := after.Status.Phase != before.Status.Phase && IsReleased(after)
	switch {
	case serves && (lets || Unbinds(before, after)):
		return fmt.Sprintf("X2: %s is taken from %s, which exists", before.Name, ref.Name)
	case lets && before.Status.Phase == corev1.VolumeBound && slices.ContainsFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return WasBoundTo(claim, before) }):
		return fmt.Sprintf("X2: %s is Released for %s, and a claim that was bound to it names it", before.Name, ref.Name)
	case after.Spec.ClaimRef != nil && after.Spec.ClaimRef.UID != "" && Unbinds(before, after):
		return fmt.Sprintf("X3: %s is handed on from one claim to another", before.Name)
	case lets && before.Status.Phase == corev1.VolumeAvailable && !phase.BoundByController(before) && before.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return fmt.Sprintf("X2: %s, which a person has reserved, is to be reclaimed for %s, which never had it", before.Name, ref.Name)
	}
	return ""
}

// Destroys reports whether storage or data may be lost by an action, or by what somebody else does after it. Known is what its
// controller knows of the object. It must not happen between the time at which a controller notices that the server went back
// and the last read of what it knew (W8).
func Destroys(action decision.Action, known obj.Object) bool {
	if action.Kind == decision.DeleteVolume || action.RunsHook() && action.Kind != decision.RunProvisioner {
		return true
	}
	before, isVolume := known.(*corev1.PersistentVolume)
	if isVolume && action.Volume != nil && (Unbinds(before, action.Volume) || action.Volume.Status.Phase == corev1.VolumeReleased && action.Kind == decision.UpdateVolumeStatus) {
		return true
	}
	return known != nil && known.GetDeletionTimestamp() != nil && (action.Kind == decision.UpdateVolume && len(action.Volume.Finalizers) < len(known.GetFinalizers()) ||
		action.Kind == decision.UpdateClaim && len(action.Claim.Finalizers) < len(known.GetFinalizers()))
}

// StorageNoted reports whether it is noted on the volume that its storage is deleted: no claim gets it, whatever its claimRef (R8).
func StorageNoted(volume *corev1.PersistentVolume) bool {
	announcement, _ := reclaim.AnnouncementOf(volume)
	return announcement.Done
}

// KeptBack reports whether the volume carries an announcement: it is kept from all claims but those that are Bound to it (R8).
func KeptBack(volume *corev1.PersistentVolume) bool {
	_, announced := reclaim.AnnouncementOf(volume)
	return announced
}

// StandsFor reports whether the claim stands for the storage that was made for it, and not the volume: it was never bound to
// that, and carries the finalizer. The volume may go before its storage then, and is provisioned anew (P2).
func StandsFor(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return claim != nil && claim.Status.Phase != corev1.ClaimBound && volume.Name == decision.ProvisionedName(claim.UID) &&
		slices.Contains(claim.Finalizers, decision.ProvisioningFinalizer)
}

// KeyOf returns the key of a claim or volume; zero for any other object.
func KeyOf(object obj.Object) obj.Key {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		return obj.VolumeKey(object.Name)
	case *corev1.PersistentVolumeClaim:
		return obj.KeyOf(object)
	}
	return obj.Key{}
}

// Unbinds reports whether a write takes the volume from the claim that held it.
func Unbinds(before, after *corev1.PersistentVolume) bool {
	was, is := before.Spec.ClaimRef, after.Spec.ClaimRef
	return was != nil && was.UID != "" && (is == nil || is.UID != was.UID)
}

// WrongOfClaim returns what a write of a claim breaks; "" if nothing. Volume is the one that it names. It is X3, that no claim
// becomes Bound to the volume of an earlier one of its name.
func WrongOfClaim(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) string {
	if claim.Status.Phase == corev1.ClaimBound && volume != nil && phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefStale {
		return fmt.Sprintf("X3: %s is bound to %s, which served an earlier claim", claim.Name, volume.Name)
	}
	return ""
}

// IsReleased reports whether the volume is Released, or Failed after that.
func IsReleased(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
}

// PairOf returns the pair that a write is about: its volume, or the claim if it has none yet.
func PairOf(action decision.Action) obj.Key {
	if action.Rule == "B3" || action.Rule == "B4" {
		return obj.VolumeKey(action.Claim.Spec.VolumeName)
	}
	return action.Target()
}

// PhaseOfClaim returns the phase that the claim should have in the given state, which may be
// the one it has. Bound is the phase at the end of the binding that the state calls for,
// not before it.
//
// phase.ClaimUnbound and ClaimRequestsVolume are Pending for as long as nothing fits. What
// follows from more than the state is left to the caller: a claim that a volume fits
// becomes Bound (C1, C7), and one for which a volume is being made keeps its phase (C4).
//
// In three cases the claim keeps its phase. One that was bound once and requests a volume
// is Lost, most often, and stays so until it is bound again (C7). One that a controller
// bound to a volume that is taken has lost its bind-completed annotation: that is an
// error, not a wait (C9). The binding of one that is being deleted is neither finished
// nor rolled back (C12).
func PhaseOfClaim(claim *corev1.PersistentVolumeClaim, state phase.ClaimBindingState) corev1.PersistentVolumeClaimPhase {
	switch {
	case state == phase.ClaimUnbound, state == phase.ClaimAwaitsVolume,
		state == phase.ClaimRequestsVolume && !phase.BindCompleted(claim),
		state == phase.ClaimVolumeTaken && !phase.BoundByController(claim):
		return corev1.ClaimPending
	case state == phase.ClaimBound, state == phase.ClaimBinding && claim.DeletionTimestamp == nil:
		return corev1.ClaimBound
	case state == phase.ClaimLost, state == phase.ClaimMisbound:
		return corev1.ClaimLost
	}
	return claim.Status.Phase
}
