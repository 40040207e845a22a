package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// PairRequest asks whether a claim and a volume that belong together are as they should be.
type PairRequest struct {
	// Claim and Volume are the two; nil: it does not exist.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// View knows the rest of the cluster, and the same claim and volume.
	View  View
	Rules Rules
	// SameStorage names other volumes that stand for the same storage. A volume that has any is not handed on.
	SameStorage []string
}

// PairReport is the answer: everything that is wrong, and what can be done about it. As JSON it has the fields below.
type PairReport struct {
	Claim      obj.Key     `json:"claim,omitzero"`  // such as "pvc/shop/data"
	Volume     obj.Key     `json:"volume,omitzero"` // such as "pv/pv-7"
	Violations []Violation `json:"violations,omitempty"`
	// Repair is what to do next; the zero value if nothing is wrong.
	Repair Repair `json:"repair,omitzero"`
}

// Healthy reports whether nothing is wrong.
func (r PairReport) Healthy() bool { return len(r.Violations) == 0 }

// Violation is one thing that is not as it is in a healthy pair.
type Violation struct {
	Kind  ViolationKind `json:"violation"`
	Wants string        `json:"wants"` // what a healthy pair has
	Has   string        `json:"has"`   // what this one has
}

// String is "HalfBound: wants all four writes of a bind, has B3, B4 still to come", in one line.
func (v Violation) String() string {
	return oneline.Text(string(v.Kind)+": wants "+v.Wants+", has "+v.Has, eventLimit)
}

// CheckPair says everything that is wrong with a pair, and the smallest repair: one write after which the pair is
// healthy, or the Controller makes it so. What the Controller mends by itself is left to it; what takes a person's
// judgement comes with the object to write and the risk; and where no write is safe, it says why.
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

// names reports whether the claim names the volume.
func (r *PairRequest) names() bool { return r.Claim.Spec.VolumeName == r.Volume.Name }

// link is how the volume relates to the claim; both exist.
func (r *PairRequest) link() phase.Link { return phase.LinkOf(r.Volume, r.Claim) }

// deleting reports whether one of the two is being deleted.
func (r *PairRequest) deleting() bool {
	return r.Claim.DeletionTimestamp != nil || r.Volume.DeletionTimestamp != nil
}
