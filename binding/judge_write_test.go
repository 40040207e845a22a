package binding_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// What the model and the histories hold every controller to.

// proofFor is what must have been read live for the action; zero if nothing.
func proofFor(action binding.Action, state *binding.State, claimOfKey func(obj.Key) *corev1.PersistentVolumeClaim) obj.Key {
	switch action.Rule {
	case "C10":
		if action.Claim.Spec.VolumeName != "" {
			return obj.VolumeKey(action.Claim.Spec.VolumeName)
		}
	case "F2":
		return obj.PodsKey(action.Claim.Namespace)
	case "V3", "V4", "R3", "R4", "R5":
		volume, ok := state.Known(action.Target()).(*corev1.PersistentVolume) // for the action may unbind it
		if !ok || volume.Spec.ClaimRef == nil {
			return obj.Key{}
		}
		key := claimOf(volume)
		if other := namedByHolder(volume, state); other != (obj.Key{}) {
			return other
		}
		if claim := claimOfKey(key); claim == nil || phase.LinkOf(volume, claim) != phase.Held {
			return key
		}
	}
	return obj.Key{}
}

// wronglyTaken is what a write of a volume that had no claimRef breaks, given all claims that its controller knows; "" if
// nothing. It is M2, that the volume is neither given to another than the one claim that is Bound to it, nor made
// available. What the controller has not heard of it cannot know.
func wronglyTaken(before, after *corev1.PersistentVolume, claims []*corev1.PersistentVolumeClaim) string {
	if before == nil || before.Spec.ClaimRef != nil {
		return ""
	}
	var owners []string
	theirs := false
	for _, claim := range claims {
		if claim.Spec.VolumeName == before.Name && claim.Status.Phase == corev1.ClaimBound {
			owners = append(owners, claim.Name)
			theirs = phase.LinkOf(after, claim) == phase.Held
		}
	}
	given, freed := after.Spec.ClaimRef != nil, after.Status.Phase == corev1.VolumeAvailable && before.Status.Phase != corev1.VolumeAvailable
	switch {
	case len(owners) > 0 && freed:
		return fmt.Sprintf("M2: %s is made available, and %v are Bound to it", before.Name, owners)
	case len(owners) > 0 && given && (len(owners) > 1 || !theirs):
		return fmt.Sprintf("M2: %s is given to %s, and %v are Bound to it", before.Name, after.Spec.ClaimRef.Name, owners)
	}
	return ""
}

// namedByHolder is the other volume that the claim which holds the volume names; zero if there is no such claim.
func namedByHolder(volume *corev1.PersistentVolume, state *binding.State) obj.Key {
	claim, known := state.Known(claimOf(volume)).(*corev1.PersistentVolumeClaim)
	if !known || phase.LinkOf(volume, claim) != phase.Held || claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name {
		return obj.Key{}
	}
	return obj.VolumeKey(claim.Spec.VolumeName)
}

// wrongOfUnneeded is V2: what a claim holds is taken from it, or its storage deleted, only if the claim has the other volume
// that it names, as far as the controller knows; "" if that is so.
func wrongOfUnneeded(action binding.Action, state *binding.State) string {
	volume, ok := state.Known(action.Target()).(*corev1.PersistentVolume)
	takes := slices.Contains([]string{"V3", "V4", "R3", "R4", "R5"}, action.Rule)
	done := action.Kind == binding.DeleteVolume || ok && volume.DeletionTimestamp != nil // the storage is deleted
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

func claimOf(volume *corev1.PersistentVolume) obj.Key {
	ref := volume.Spec.ClaimRef
	return obj.ClaimKey(ref.Namespace, ref.Name)
}

// wrongOfVolume is what a write of a volume breaks; "" if nothing. Claim is the one of the name that the volume referred
// to before. It is X2, that no volume is taken from a claim that exists and names no other, and X3, that none goes from
// one claim to another in one step.
func wrongOfVolume(before, after *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	ref := before.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return ""
	}
	serves := claim != nil && claim.UID == ref.UID && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == before.Name)
	lets := after.Status.Phase != before.Status.Phase && isReleased(after)
	switch {
	case serves && (lets || unbinds(before, after)):
		return fmt.Sprintf("X2: %s is taken from %s, which exists", before.Name, ref.Name)
	case after.Spec.ClaimRef != nil && after.Spec.ClaimRef.UID != "" && unbinds(before, after):
		return fmt.Sprintf("X3: %s is handed on from one claim to another", before.Name)
	}
	return ""
}

func unbinds(before, after *corev1.PersistentVolume) bool {
	was, is := before.Spec.ClaimRef, after.Spec.ClaimRef
	return was != nil && was.UID != "" && (is == nil || is.UID != was.UID)
}

// wrongOfClaim is what a write of a claim breaks; "" if nothing. Volume is the one that it names. It is X3, that no claim
// becomes Bound to the volume of an earlier one of its name.
func wrongOfClaim(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) string {
	if claim.Status.Phase == corev1.ClaimBound && volume != nil && phase.LinkOf(volume, claim) == phase.Gone {
		return fmt.Sprintf("X3: %s is bound to %s, which served an earlier claim", claim.Name, volume.Name)
	}
	return ""
}
