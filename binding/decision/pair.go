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

// PairRequest is a claim and a volume that belong together, to be compared with a healthy pair.
type PairRequest struct {
	// Claim and Volume are the two; nil: it does not exist.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// View has the rest of the cluster, and the same claim and volume.
	View    View
	Options Options
	// SameStorage names other volumes with the same storage. A volume that has any is not given to another claim.
	SameStorage []string
}

// PairReport is everything that is wrong with a pair, and what can be done about it. As JSON it has the fields below.
type PairReport struct {
	Claim      obj.Key     `json:"claim,omitzero"`  // such as "pvc/shop/data"
	Volume     obj.Key     `json:"volume,omitzero"` // such as "pv/pv-7"
	Violations []Violation `json:"violations,omitempty"`
	// Repair is what to do next; the zero value if nothing is wrong.
	Repair Repair `json:"repair,omitzero"`
}

// Healthy reports whether nothing is wrong.
func (r PairReport) Healthy() bool { return len(r.Violations) == 0 }

// CheckPair returns everything that is wrong with a pair, and the smallest repair: one write after which the pair is
// healthy, or the controller makes it so. Where the controller repairs the pair by itself, it is left to that. Where a person
// must judge, the repair has the object to write and the risk; and where no write is safe, it says why.
//
// An error is about malformed objects, as those of NextForClaim and NextForVolume.
func CheckPair(request PairRequest) (report PairReport, err error) {
	if request.Claim != nil {
		report.Claim = obj.KeyOf(request.Claim)
	}
	if request.Volume != nil {
		report.Volume = obj.VolumeKey(request.Volume.Name)
	}
	report.Violations = request.violations()
	if !report.Healthy() {
		report.Repair, err = request.repair(report.Violations)
	}
	return report, err
}

// Violation is one thing that is not as it is in a healthy pair.
type Violation struct {
	Kind     ViolationKind `json:"violation"`
	Expected string        `json:"expected"` // what a healthy pair has
	Actual   string        `json:"actual"`   // what this one has
}

// String returns "HalfBound: expected both sides bound, actual not yet set: the claim's volumeName, the claim's status", in one line.
func (v Violation) String() string {
	return oneline.Text(string(v.Kind)+": expected "+v.Expected+", actual "+v.Actual, messageLimit)
}

// ViolationKind is in which way a pair is not healthy.
type ViolationKind string

const (
	// PairHalfBound means that the bind was begun, and some of its four writes are missing, as after a crash (B5).
	PairHalfBound ViolationKind = "HalfBound"
	// PairUnbound means that the two are meant for each other and fit, and the bind has not begun (C1, C7).
	PairUnbound ViolationKind = "Unbound"
	// PairIncompatible means that the two are meant for each other, and do not fit (C7, M12, V2).
	PairIncompatible ViolationKind = "Incompatible"
	// PairLostButBound means that the claim is Lost, and its volume exists and is bound to it (X4).
	PairLostButBound ViolationKind = "LostButBound"
	// PairClaimRefDropped means that the claim is bound, and somebody removed the volume's claimRef (M2).
	PairClaimRefDropped ViolationKind = "ClaimRefDropped"
	// PairContended means the same, and that other claims are bound to the volume as well (M2, C11).
	PairContended ViolationKind = "VolumeContended"
	// PairUIDCleared means that the claim was bound, and the volume is merely pre-bound to its name (C11).
	PairUIDCleared ViolationKind = "UIDCleared"
	// PairUIDDiffers means that the claim names the volume, whose claimRef has the UID of another claim of that name, as
	// after both were restored from a backup (L4).
	PairUIDDiffers ViolationKind = "UIDDiffers"
	// PairVolumeTaken means that the claim names the volume, which is another claim's (C9, C10).
	PairVolumeTaken ViolationKind = "VolumeTaken"
	// PairVolumeAbsent means that the claim names a volume that does not exist, or was bound and names none (C6, C10).
	PairVolumeAbsent ViolationKind = "VolumeAbsent"
	// PairUnneeded means that the volume is bound to the claim, which names another (V2).
	PairUnneeded ViolationKind = "Unneeded"
	// PairWrongPhase means that no claim has the volume, and its phase does not say so (V1, V3).
	PairWrongPhase ViolationKind = "WrongPhase"
	// PairClaimTerminating and PairVolumeTerminating mean that it is being deleted, and something keeps it (F2, F3).
	PairClaimTerminating  ViolationKind = "ClaimTerminating"
	PairVolumeTerminating ViolationKind = "VolumeTerminating"
	// PairUnrelated means that neither names the other.
	PairUnrelated ViolationKind = "Unrelated"
)

// claimRefState returns what the volume's claimRef says about the claim; both exist.
func (r *PairRequest) claimRefState() phase.ClaimRefState {
	return phase.ClaimRefStateOf(r.Volume, r.Claim)
}

// deleting reports whether one of the two is being deleted; both exist.
func (r *PairRequest) deleting() bool {
	return r.Claim.DeletionTimestamp != nil || r.Volume.DeletionTimestamp != nil
}

func (r *PairRequest) violations() (found []Violation) {
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
	switch state := r.claimRefState(); {
	case state == phase.ClaimRefNone:
		return r.ofNamedWithoutClaimRef()
	case state == phase.ClaimRefBound:
		return r.halfBound()
	case state == phase.ClaimRefStale:
		return Violation{PairUIDDiffers, "claimRef.uid " + string(r.Claim.UID), string(r.Volume.Spec.ClaimRef.UID)}
	case state == phase.ClaimRefOther:
		return Violation{PairVolumeTaken, "claimRef to " + obj.KeyOf(r.Claim).String(), "claimRef to " + obj.ReferencedClaim(r.Volume).String()}
	case phase.BindCompleted(r.Claim): // it is pre-bound
		return Violation{PairUIDCleared, "claimRef.uid " + string(r.Claim.UID), oneline.None}
	case r.Claim.DeletionTimestamp != nil:
		return Violation{}
	}
	return Violation{PairUnbound, "the two bound", "the volume reserved for the claim"}
}

func (r *PairRequest) ofNamedWithoutClaimRef() Violation {
	claim := obj.KeyOf(r.Claim)
	owners, owns := r.View.Owners(r.Volume.Name), phase.Owned(r.Claim) == r.Volume.Name
	switch mismatches, err := match.CheckNamed(r.Claim, r.Volume, r.View.Parsed(r.Claim)); {
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
	next := func() Action { return nextOfFour(volume, claim).Complete() }
	for action := next(); action.Writes(); action = next() {
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
	mismatches, err := match.Check(r.Claim, r.Volume, match.Terms{Class: r.View.Class(storageclass.OfClaim(r.Claim)), Parsed: r.View.Parsed(r.Claim)})
	switch {
	case err == nil && len(mismatches) > 0:
		return Violation{PairIncompatible, "a volume that fits the claim", mismatches.String()}
	case state == phase.ClaimRefBound:
		return r.halfBound()
	}
	return Violation{PairUnbound, "the two bound", "the volume reserved for the claim"}
}
