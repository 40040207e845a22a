package reclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Move hands a volume from the claim that has it to another one, in another namespace too (R7).
type Move struct {
	// Volume is the name of the volume.
	Volume string
	// To is the claim that is to have it. If it has no access modes, all but namespace, name, labels and annotations
	// comes from the claim that has the volume now. Once the move has begun only its name is looked at. Nil: whatever
	// move is under way is finished.
	To *corev1.PersistentVolumeClaim
}

// StepKind is what a Step asks for.
type StepKind string

// The kinds.
const (
	// StepRead: read Step.Read from the server, and ask again.
	StepRead StepKind = "Read"
	// StepUpdateVolume: write Step.Volume, on the resourceVersion it carries.
	StepUpdateVolume StepKind = "UpdateVolume"
	// StepDeleteClaim: delete Step.Claim with Step.Preconditions.
	StepDeleteClaim StepKind = "DeleteClaim"
	// StepCreateClaim: create Step.Claim.
	StepCreateClaim StepKind = "CreateClaim"
	// StepWait: others have to do something first, as Step.Why says. Ask again when something has changed.
	StepWait StepKind = "Wait"
	// StepDone: the claim has the volume, and nothing is left of the move; or there is none to finish.
	StepDone StepKind = "Done"
)

// Step is the next step of a move: at most one write.
type Step struct {
	Kind          StepKind
	Read          Read
	Volume        *corev1.PersistentVolume
	Claim         *corev1.PersistentVolumeClaim
	Preconditions metav1.Preconditions
	// Hazards are the risks of a write.
	Hazards []Hazard
	// Why is the reason, in one line.
	Why string
}

// String is the step in one line: "DeleteClaim pvc/shop/data: pv-1 is kept".
func (s Step) String() string {
	target := ""
	switch {
	case s.Volume != nil:
		target = " pv/" + s.Volume.Name
	case s.Claim != nil:
		target = " pvc/" + s.Claim.Namespace + "/" + s.Claim.Name
	case s.Kind == StepRead:
		target = " " + s.Read.String()
	}
	return string(s.Kind) + target + ": " + s.Why
}

// NextMove is the next step of the move. Its caller does what the step says, forgets what it knew if that was a write,
// and asks again; after a write that failed, or whose outcome is unknown, the same.
//
// The writes are: keep the volume (policy Retain) and note on it, as MoveAnnotation, where it goes; delete the old
// claim; set the volume aside for the new one; create the new claim, which names the volume; and once it is bound, give
// the volume its policy back and take the note off. At every moment the volume is either kept or held by a claim that
// exists. The note says all that is needed to go on, so that a caller that crashed just begins anew; the volume stays
// where it is if nobody does. The policy is given back only to a volume that came to the new claim by this move and is
// kept until then; else it stays as it is. A volume without claimRef is not taken from a claim that is Bound to it. A
// controller must run beside it, which lets go of the old claim and binds the new.
//
// A claim that exists already under the new name must name the volume in spec.volumeName, so that it takes no other.
//
// An error is a *Refusal, or says that the note or the move is malformed.
func NextMove(move Move, known Known, accepting ...Risk) (Step, error) {
	volume, read := known.volume(move.Volume)
	switch {
	case !read:
		return readStep(Read{Kind: ReadVolume, Name: move.Volume}), nil
	case volume == nil:
		return Step{}, refuseMove(move.Volume, Missing, "it does not exist")
	}
	under, err := moveOf(volume)
	if err != nil {
		return Step{}, err
	}
	if under == nil {
		return begin(volume, move, known, accepting)
	}
	if to := move.To; to != nil && (to.Namespace != under.To.Namespace || to.Name != under.To.Name) {
		return Step{}, refuseMove(volume.Name, Moving, "it is being moved to "+nameOf(&under.To))
	}
	return mover{volume: volume, note: under, known: known, accepting: accepting}.next()
}

func readStep(read Read) Step {
	return Step{Kind: StepRead, Read: read, Why: "only the server knows"}
}

func waitStep(format string, args ...any) Step {
	return Step{Kind: StepWait, Why: fmt.Sprintf(format, args...)}
}

func refuseMove(volume string, reason ObjectionReason, message string) error {
	return &Refusal{Verb: "move", Volume: volume, Objections: []Objection{{Reason: reason, Message: message}}}
}

func nameOf(claim *corev1.PersistentVolumeClaim) string { return claim.Namespace + "/" + claim.Name }
