package reclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// A Transfer takes a volume from the claim that has it and gives it to another one, in another namespace too (R7).
type Transfer struct {
	// Volume is the name of the volume.
	Volume string
	// To is the claim that is to have it. If it has no access modes, all but namespace, name, labels and annotations
	// comes from the claim that has the volume now. Once the transfer has begun only its name counts. Nil finishes
	// whatever transfer is under way.
	To *corev1.PersistentVolumeClaim
}

// StepKind is what to do for a Step.
type StepKind string

// The kinds of steps.
const (
	// StepRead means to read Step.Read from the server, and to call NextTransfer again.
	StepRead StepKind = "Read"
	// StepUpdateVolume means to write Step.Volume, on the resourceVersion it carries.
	StepUpdateVolume StepKind = "UpdateVolume"
	// StepDeleteClaim means to delete Step.Claim with Step.Preconditions.
	StepDeleteClaim StepKind = "DeleteClaim"
	// StepCreateClaim means to create Step.Claim.
	StepCreateClaim StepKind = "CreateClaim"
	// StepWait means that others have to do something first, as Step.Why says. Call NextTransfer again when something
	// has changed.
	StepWait StepKind = "Wait"
	// StepDone means that the claim has the volume, and nothing is left of the transfer; or that there is none to finish.
	StepDone StepKind = "Done"
)

// A Step is the next step of a transfer: at most one write.
type Step struct {
	Kind          StepKind
	Read          obj.Key
	Volume        *corev1.PersistentVolume
	Claim         *corev1.PersistentVolumeClaim
	Preconditions metav1.Preconditions
	// Warnings are the risks of a write.
	Warnings []Warning
	// Why is the reason, in one line.
	Why string
}

// String returns the step in one line: "DeleteClaim pvc/shop/data: the policy of pv-1 is Retain".
func (s Step) String() string {
	target := ""
	switch {
	case s.Volume != nil:
		target = " pv/" + s.Volume.Name
	case s.Claim != nil:
		target = " " + obj.KeyOf(s.Claim).String()
	case s.Kind == StepRead:
		target = " " + s.Read.String()
	}
	return string(s.Kind) + target + ": " + s.Why
}

// NextTransfer returns the next step of the transfer. The caller carries out the step, discards known after any write,
// even after one that failed, and calls again.
//
// The writes are, one after the other: set the policy to Retain and record the transfer in TransferAnnotation; delete the
// old claim; pre-bind the volume to the new one; create the new claim, which names the volume; and once it is bound,
// restore the policy and remove the record. A controller must run beside it, which releases the volume of the old claim
// and binds the new one.
//
// At every moment the volume has policy Retain or is bound to a claim that exists. The record has all that is needed to go
// on, so that a caller that crashed just begins anew; if none does, the volume stays as it is. The policy is restored only
// where the new claim got the volume by this transfer, and the policy is still Retain. A volume without claimRef is not
// taken from a claim that is Bound to it.
//
// A claim that exists already under the new name must name the volume in spec.volumeName, so that it takes no other.
//
// It fails with an *Error, or if the record or the transfer is malformed.
func NextTransfer(transfer Transfer, known Known, accepting ...Risk) (Step, error) {
	volume, read := known.volume(transfer.Volume)
	switch {
	case !read:
		return readStep(obj.VolumeKey(transfer.Volume))
	case volume == nil:
		return Step{}, &Error{"transfer", transfer.Volume, []Reason{{Code: Missing, Message: "it does not exist"}}}
	}
	record, err := recordOf(volume)
	if err != nil {
		return Step{}, err
	}
	s := stepper{review{operation: "transfer", volume: volume, known: known, accepted: accepting}, record}
	switch {
	case record == nil:
		return s.begin(transfer.To)
	case transfer.To != nil && obj.KeyOf(transfer.To) != record.newClaim():
		return s.fail(Transferring, "it is being transferred to %s", name(record.newClaim()))
	}
	return s.next()
}

// A stepper decides the next step of a transfer.
type stepper struct {
	review
	record *transferRecord // nil before the first write
}

func readStep(read obj.Key) (Step, error) {
	return Step{Kind: StepRead, Read: read, Why: "it must be read from the API server"}, nil
}

func waitStep(format string, args ...any) (Step, error) {
	return Step{Kind: StepWait, Why: fmt.Sprintf(format, args...)}, nil
}

// fail returns no step, for this reason.
func (s *stepper) fail(code ReasonCode, format string, args ...any) (Step, error) {
	s.reject(code, format, args...)
	return Step{}, s.err()
}

// verdict returns the first read that the review lacks, or its error. No step and no error: go on.
func (s *stepper) verdict() (Step, error) {
	for _, reason := range s.reasons {
		if reason.Code == Unknown {
			return readStep(reason.Read)
		}
	}
	return Step{}, s.err()
}

// begin returns the first write of a transfer, or that all is done. A crash after that write leaves the volume bound to
// its claim, with policy Retain, and the next call goes on.
func (s *stepper) begin(to *corev1.PersistentVolumeClaim) (Step, error) {
	ref := s.volume.Spec.ClaimRef
	switch {
	case to == nil:
		return Step{Kind: StepDone, Why: "no transfer of it is under way, and none is requested"}, nil
	case to.Namespace == "" || to.Name == "":
		return Step{}, fmt.Errorf("pvc/%s: metadata: a volume is transferred to a namespace and a name", nameOf(to))
	case ref == nil || ref.UID == "":
		return s.fail(Missing, "no claim has it, so that there is none to transfer it from: use Reserve for %s", nameOf(to))
	case obj.ReferencedClaim(s.volume) == obj.KeyOf(to):
		return s.stay(to)
	}
	from := s.checkSource()
	s.checkTarget(to, from)
	if step, err := s.verdict(); step.Kind != "" || err != nil {
		return step, err
	}
	s.record = &transferRecord{
		From:   corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
		To:     newClaim(to, from, s.volume.Name),
		Policy: s.volume.Spec.PersistentVolumeReclaimPolicy,
		Volume: s.volume.UID,
	}
	recorded, err := s.record.on(s.volume)
	return Step{Kind: StepUpdateVolume, Volume: recorded, Warnings: s.warnings,
		Why: fmt.Sprintf("set its policy to Retain, and record the transfer from %s to %s", name(s.record.oldClaim()), nameOf(to))}, err
}

// stay returns the step for a volume whose claimRef names the claim that is to have it: that claim has it or is getting
// it, or an earlier one of that name had it.
func (s *stepper) stay(to *corev1.PersistentVolumeClaim) (Step, error) {
	claim, read := s.known.claim(obj.KeyOf(to))
	switch {
	case s.volume.Status.Phase == corev1.VolumeBound:
		return Step{Kind: StepDone, Why: nameOf(to) + " has it"}, nil
	case !read:
		return readStep(obj.KeyOf(to))
	case claim != nil && phase.ClaimRefStateOf(s.volume, claim) == phase.ClaimRefBound:
		return s.fail(Taken, "it is being bound to %s", nameOf(to))
	}
	return s.fail(Taken, "it is %s and was that of an earlier claim %s: use Reserve for the one that has that name now, or will have it", s.volume.Status.Phase, nameOf(to))
}

// checkSource reviews the claim that has the volume and returns it; nil if it is gone.
func (s *stepper) checkSource() *corev1.PersistentVolumeClaim {
	s.checkDeletion()
	key := obj.ReferencedClaim(s.volume)
	s.warn(DataDisclosed, "the new claim can read what %s left on it", name(key))
	claim, read := s.claim(key)
	keeps := has(claim, s.volume)
	switch {
	case !read:
	case !keeps:
		s.checkPolicy(claim)
	case phase.Owned(claim) != s.volume.Name:
		s.reject(Taken, "it is being bound to %s", name(key))
	}
	if !read || keeps || claim == nil { // or else they use another claim of that name
		s.checkPods(key)
	}
	if !keeps {
		return nil
	}
	return claim
}

// checkTarget reviews the claim that is to have the volume.
func (s *stepper) checkTarget(to, from *corev1.PersistentVolumeClaim) {
	existing, read := s.claim(obj.KeyOf(to))
	switch {
	case !read:
	case existing != nil:
		s.checkWaiting(existing)
	case nameOnly(to) && from == nil:
		s.reject(Missing, "its claim is gone, so that there is none to copy: give the new one in full, with access modes and a size")
	case !nameOnly(to):
		s.checkClaim(to)
	}
}

// checkWaiting rejects a claim that exists and does not wait for the volume and for no other.
func (s *stepper) checkWaiting(claim *corev1.PersistentVolumeClaim) {
	s.checkClaim(claim)
	if claim.Spec.VolumeName == "" {
		s.reject(Taken, "claim %s exists and may take another volume: set its spec.volumeName to %s first", nameOf(claim), s.volume.Name)
	}
}
