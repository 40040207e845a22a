package decision

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

func (r *PairRequest) violations() []Violation {
	var found []Violation
	if violation := r.betweenTheTwo(); violation != (Violation{}) {
		found = append(found, violation)
	}
	if r.Claim != nil && r.Claim.DeletionTimestamp != nil {
		found = append(found, Violation{PairClaimTerminating, "to be gone", keptByText(r.Claim.Finalizers, usersOf(r.Claim, r.View))})
	}
	if r.Volume != nil && r.Volume.DeletionTimestamp != nil {
		kept := keptByText(r.Volume.Finalizers, nil)
		if attachments, _ := r.View.AttachmentsOf(r.Volume.Name); len(attachments) > 0 {
			kept += ", and " + attachedTo(attachments)
		}
		found = append(found, Violation{PairVolumeTerminating, "to be gone", kept})
	}
	return found
}

// nameMissing is the violation of a claim that was bound and names no volume.
var nameMissing = Violation{PairVolumeAbsent, "the name of the volume it was bound to", "none in spec.volumeName"}

// betweenTheTwo returns what is wrong between claim and volume; the zero value if nothing is. So do the functions that it
// calls.
func (r *PairRequest) betweenTheTwo() Violation {
	switch {
	case r.Claim == nil && r.Volume == nil:
		return Violation{}
	case r.Claim == nil:
		return r.wrongPhase()
	case r.Volume != nil && r.Claim.Spec.VolumeName == r.Volume.Name:
		return r.ofNamed()
	case r.Volume != nil:
		return r.ofUnnamed()
	case r.Claim.Spec.VolumeName != "":
		return Violation{PairVolumeAbsent, "volume " + r.Claim.Spec.VolumeName, "no such volume"}
	case phase.BindCompleted(r.Claim):
		return nameMissing
	}
	return Violation{}
}

// wrongPhase looks at a volume without a claim of its own.
func (r *PairRequest) wrongPhase() Violation {
	actual, expected := r.Volume.Status.Phase, phase.OfVolume(r.Volume, phase.VolumeBindingStateOf(r.Volume, r.Claim))
	if actual == expected {
		return Violation{}
	}
	return Violation{PairWrongPhase, "phase " + string(expected), "phase " + oneline.OrNone(string(actual))}
}

// ofNamed looks at a volume that the claim names.
func (r *PairRequest) ofNamed() Violation {
	switch r.claimRefState() {
	case phase.ClaimRefBound:
		return r.halfBound()
	case phase.ClaimRefStale:
		return Violation{PairUIDDiffers, "claimRef.uid " + string(r.Claim.UID), string(r.Volume.Spec.ClaimRef.UID)}
	case phase.ClaimRefOther:
		return Violation{PairVolumeTaken, "claimRef to " + obj.KeyOf(r.Claim).String(), "claimRef to " + obj.ReferencedClaim(r.Volume).String()}
	case phase.ClaimRefPreBound:
		switch {
		case phase.BindCompleted(r.Claim):
			return Violation{PairUIDCleared, "claimRef.uid " + string(r.Claim.UID), oneline.None}
		case r.Claim.DeletionTimestamp != nil:
			return Violation{}
		}
		return Violation{PairUnbound, "the two bound", "the volume reserved for the claim"}
	}
	return r.ofNamedWithoutClaimRef()
}

func (r *PairRequest) ofNamedWithoutClaimRef() Violation {
	claim := obj.KeyOf(r.Claim)
	owners, owns := r.View.Owners(r.Volume.Name), phase.Owned(r.Claim) == r.Volume.Name
	switch mismatches, err := match.CheckNamed(r.Claim, r.Volume); {
	case match.OwnedByAnother(claim, owners) && owns:
		return Violation{PairContended, "claimRef to " + claim.String(), oneline.None + ", and " + match.OwnersText(owners)}
	case match.OwnedByAnother(claim, owners):
		return Violation{PairVolumeTaken, "claimRef to " + claim.String(), match.OwnersText(owners)}
	case owns:
		return Violation{PairClaimRefDropped, "claimRef to " + claim.String(), oneline.None}
	case r.Claim.DeletionTimestamp != nil || err != nil:
		return Violation{}
	case len(mismatches) > 0:
		return Violation{PairIncompatible, "a volume that fits the claim", mismatches.String()}
	}
	return Violation{PairUnbound, "the two bound", "a claim that names a free volume"}
}

// halfBound looks at a volume that is bound to the claim: all four writes of the bind should be there. If the claim is being
// deleted and was never bound, they are not made any more (C12).
func (r *PairRequest) halfBound() Violation {
	var missing []string
	volume, claim := r.Volume, r.Claim
	for action := nextOfFour(volume, claim); action.Writes(); action = nextOfFour(volume, claim) {
		missing = append(missing, writeName(action.Rule))
		volume, claim = cmp.Or(action.Volume, volume), cmp.Or(action.Claim, claim)
	}
	switch {
	case len(missing) == 0, r.Claim.DeletionTimestamp != nil && !phase.BindCompleted(r.Claim):
		return Violation{}
	case r.Claim.Status.Phase == corev1.ClaimLost:
		return Violation{PairLostButBound, "phase Bound", "phase Lost, and a volume that it holds"}
	}
	return Violation{PairHalfBound, "both sides bound", "not yet set: " + strings.Join(missing, ", ")}
}

// ofUnnamed looks at a volume that the claim does not name.
func (r *PairRequest) ofUnnamed() Violation {
	state, deleting := r.claimRefState(), r.Claim.DeletionTimestamp != nil
	named, completed := r.Claim.Spec.VolumeName, phase.BindCompleted(r.Claim)
	switch {
	case state == phase.ClaimRefNone, state == phase.ClaimRefOther:
		return Violation{PairUnrelated, "one that names the other", "neither"}
	case state == phase.ClaimRefBound && named != "":
		return Violation{PairUnneeded, "a claim that names it", "a claim that names " + named}
	case state == phase.ClaimRefBound && completed:
		return nameMissing
	case state == phase.ClaimRefStale, state == phase.ClaimRefPreBound && (named != "" || completed || deleting):
		return r.wrongPhase()
	}
	mismatches, err := match.Check(r.Claim, r.Volume, match.Terms{Class: r.View.Class(storageclass.OfClaim(r.Claim))})
	switch {
	case err == nil && len(mismatches) > 0:
		return Violation{PairIncompatible, "a volume that fits the claim", mismatches.String()}
	case state == phase.ClaimRefBound:
		return r.halfBound()
	}
	return Violation{PairUnbound, "the two bound", "the volume reserved for the claim"}
}
