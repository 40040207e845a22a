package decision

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
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
func CheckPair(request PairRequest) (PairReport, error) {
	var report PairReport
	if request.Claim != nil {
		report.Claim = obj.KeyOf(request.Claim)
	}
	if request.Volume != nil {
		report.Volume = obj.VolumeKey(request.Volume.Name)
	}
	report.Violations = request.violations()
	if report.Healthy() {
		return report, nil
	}
	var err error
	report.Repair, err = request.repair(report.Violations)
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
	// PairHalfBound (B5): the bind was begun, and some of its four writes are missing, as after a crash.
	PairHalfBound ViolationKind = "HalfBound"
	// PairUnbound (C1, C7): the two are meant for each other and fit, and the bind has not begun.
	PairUnbound ViolationKind = "Unbound"
	// PairIncompatible (C7, M12, V2): the two are meant for each other, and do not fit.
	PairIncompatible ViolationKind = "Incompatible"
	// PairLostButBound (X4): the claim is Lost, and its volume exists and is bound to it.
	PairLostButBound ViolationKind = "LostButBound"
	// PairClaimRefDropped (M2): the claim is bound, and somebody removed the volume's claimRef.
	PairClaimRefDropped ViolationKind = "ClaimRefDropped"
	// PairContended (M2, C11): the same, and other claims are bound to the volume as well.
	PairContended ViolationKind = "VolumeContended"
	// PairUIDCleared (C11): the claim was bound, and the volume is merely pre-bound to its name.
	PairUIDCleared ViolationKind = "UIDCleared"
	// PairUIDDiffers (L4): the claim names the volume, whose claimRef has the UID of another claim of that name, as
	// after both were restored from a backup.
	PairUIDDiffers ViolationKind = "UIDDiffers"
	// PairVolumeTaken (C9, C10): the claim names the volume, which is another claim's.
	PairVolumeTaken ViolationKind = "VolumeTaken"
	// PairVolumeAbsent (C6, C10): the claim names a volume that does not exist, or was bound and names none.
	PairVolumeAbsent ViolationKind = "VolumeAbsent"
	// PairUnneeded (V2): the volume is bound to the claim, which names another.
	PairUnneeded ViolationKind = "Unneeded"
	// PairWrongPhase (V1, V3): no claim has the volume, and its phase does not say so.
	PairWrongPhase ViolationKind = "WrongPhase"
	// PairClaimTerminating (F2) and PairVolumeTerminating (F3): it is being deleted, and something keeps it.
	PairClaimTerminating  ViolationKind = "ClaimTerminating"
	PairVolumeTerminating ViolationKind = "VolumeTerminating"
	// PairUnrelated: neither names the other.
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
