package reclaim

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Transfer names a volume and the claim that is to get it, in any namespace (R7).
type Transfer struct {
	// Volume is the name of the volume.
	Volume string
	// To is the new claim. If it has no access modes, its spec is copied from the claim that has the volume. After the first
	// write only namespace and name count. Nil continues the transfer that is under way.
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
		return s.verdict(s.begin(transfer.To))
	case transfer.To != nil && obj.KeyOf(transfer.To) != record.newClaimKey():
		return s.verdict(s.fail(Transferring, "it is being transferred to %s", name(record.newClaimKey())))
	}
	return s.verdict(s.next())
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

// fail records a reason and returns no step: verdict makes an error of the reasons.
func (s *stepper) fail(code ReasonCode, format string, args ...any) (Step, error) {
	s.reject(code, format, args...)
	return Step{}, nil
}

// verdict returns the step that was decided on. If objects are missing for the review, it returns the read of the first, and
// if there are other reasons against the step, their error.
func (s *stepper) verdict(step Step, err error) (Step, error) {
	for _, reason := range s.reasons {
		if reason.Code == Unknown {
			return readStep(reason.Read)
		}
	}
	if err = cmp.Or(err, s.err()); err != nil {
		return Step{}, err
	}
	return step, nil
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
		return s.alreadyReferenced(to)
	}
	from := s.checkSource(nameOf(to))
	s.checkTarget(to, from)
	s.record = &transferRecord{
		From:   corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
		To:     claimToCreate(to, from, s.volume.Name),
		Policy: s.volume.Spec.PersistentVolumeReclaimPolicy,
		Volume: s.volume.UID,
	}
	recorded, err := s.record.addTo(s.volume)
	return Step{Kind: StepUpdateVolume, Volume: recorded, Warnings: s.warnings,
		Why: fmt.Sprintf("set its policy to Retain, and record the transfer from %s to %s", name(s.record.oldClaimKey()), nameOf(to))}, err
}

// alreadyReferenced handles a volume whose claimRef has the new claim's name before the transfer has begun: that claim has it
// or is getting it, or an earlier one of that name had it.
func (s *stepper) alreadyReferenced(to *corev1.PersistentVolumeClaim) (Step, error) {
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

// checkSource reviews the claim that has the volume and returns it; nil if it is gone. No other than the heir may have it by a slip in claimRef.
func (s *stepper) checkSource(heir string) *corev1.PersistentVolumeClaim {
	s.checkDeletion()
	owners, _ := s.known.owners(s.volume)
	s.checkOwners(owners, heir)
	s.warn(DataDisclosed, "the new claim can read what %s left on it", name(obj.ReferencedClaim(s.volume)))
	return s.checkHolder(func(holder *corev1.PersistentVolumeClaim) {
		if phase.Owned(holder) != s.volume.Name {
			s.reject(Taken, "it is being bound to %s", nameOf(holder))
		}
	})
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

// checkWaiting rejects a claim that exists, unless it names this volume and fits it.
func (s *stepper) checkWaiting(claim *corev1.PersistentVolumeClaim) {
	s.checkClaim(claim)
	if claim.Spec.VolumeName == "" {
		s.reject(Taken, "claim %s exists and may take another volume: set its spec.volumeName to %s first", nameOf(claim), s.volume.Name)
	}
}

// next returns the next step of a transfer under way. The volume's claimRef says how far it is: it names the old claim,
// none, or the new one. A volume that is somebody else's by now is left as it is: the record may be an old one.
func (s *stepper) next() (Step, error) {
	ref, key := s.volume.Spec.ClaimRef, obj.ReferencedClaim(s.volume)
	toNew := key == s.record.newClaimKey()
	switch {
	case toNew && ref.UID != "":
		return s.finish()
	case ref != nil && !toNew && (key != s.record.oldClaimKey() || ref.UID != s.record.From.UID):
		return s.fail(Taken, "somebody gave it to %s meanwhile, neither %s nor %s", name(key), name(s.record.oldClaimKey()), name(s.record.newClaimKey()))
	case ref == nil:
		if step, err := s.checkUnclaimed(); step.Kind != "" || len(s.reasons) > 0 {
			return step, err
		}
	}
	switch {
	case s.volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return s.retain()
	case announced(s.volume) != "":
		return waitStep("%s", announced(s.volume))
	case toNew:
		return s.bindNewClaim()
	}
	return s.removeOldClaim()
}

// checkUnclaimed decides whether the transfer may take a volume that has no claimRef (M2). It returns a step to take first, or
// records a reason against it, or does neither: then the transfer may take it.
func (s *stepper) checkUnclaimed() (Step, error) {
	owners, read := s.known.owners(s.volume)
	switch {
	case !read:
		return readStep(obj.ClaimsKey())
	case !slices.ContainsFunc(owners, s.takesPart):
		s.checkOwners(owners, name(s.record.newClaimKey()))
		return Step{}, nil
	case len(owners) == 1:
		return waitStep("its claimRef was removed while %s has it; it is bound to it again", nameOf(owners[0]))
	}
	return s.fail(Taken, "it has no claimRef, and several claims are Bound to it; set its claimRef to the one whose data it is, with namespace, name and UID: %s", names(owners))
}

// takesPart reports whether a claim is the old one or has the name of the new one.
func (s *stepper) takesPart(claim *corev1.PersistentVolumeClaim) bool {
	key := obj.KeyOf(claim)
	return key == s.record.newClaimKey() || key == s.record.oldClaimKey() && claim.UID == s.record.From.UID
}

// retain makes the reclaim policy Retain again.
func (s *stepper) retain() (Step, error) {
	kept := retain(s.volume)
	return Step{Kind: StepUpdateVolume, Volume: kept.Volume, Warnings: kept.Warnings, Why: "set its policy to Retain again: somebody changed it"}, nil
}

// removeOldClaim deletes the claim that has the volume, and once it is gone pre-binds the volume to the new one. A crash
// in between leaves a Released volume with policy Retain.
func (s *stepper) removeOldClaim() (Step, error) {
	old := s.record.oldClaimKey()
	claim, read := s.known.claim(old)
	switch {
	case !read:
		return readStep(old)
	case claim == nil || claim.UID != s.record.From.UID || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != s.volume.Name:
		owners, _ := s.known.owners(s.volume)
		s.checkOwners(owners, name(s.record.newClaimKey()))
		again := claim
		if claim != nil && claim.Spec.VolumeName == s.volume.Name {
			again = nil
		}
		s.checkPods(old, again)
		s.record.PreBound = true
		volume, err := s.record.addTo(preBound(s.volume, &s.record.To))
		return Step{Kind: StepUpdateVolume, Volume: volume, Warnings: s.warnings,
			Why: fmt.Sprintf("%s is gone: pre-bind it to %s", name(old), name(s.record.newClaimKey()))}, err
	case s.volume.Spec.ClaimRef == nil:
		return waitStep("its claimRef was removed while %s has it; it is bound to it again", name(old))
	case claim.DeletionTimestamp != nil:
		return waitStep("%s is being deleted; held by %v", name(old), claim.Finalizers)
	}
	return s.deleteOldClaim(claim)
}

// deleteOldClaim deletes the old claim. From then on there is no way back, so everything is reviewed once more.
func (s *stepper) deleteOldClaim(claim *corev1.PersistentVolumeClaim) (Step, error) {
	s.checkSource(name(s.record.newClaimKey()))
	if existing, _ := s.claim(s.record.newClaimKey()); existing != nil {
		s.checkWaiting(existing)
	}
	return Step{Kind: StepDeleteClaim, Claim: claim.DeepCopy(), Warnings: s.warnings, Why: "the policy of " + s.volume.Name + " is Retain",
		Preconditions: metav1.Preconditions{UID: new(claim.UID), ResourceVersion: new(claim.ResourceVersion)}}, nil
}

// bindNewClaim creates the claim to which the volume is pre-bound, and waits until a controller binds them.
func (s *stepper) bindNewClaim() (Step, error) {
	to := &s.record.To
	claim, read := s.known.claim(obj.KeyOf(to))
	switch {
	case !read:
		return readStep(obj.KeyOf(to))
	case s.volume.DeletionTimestamp != nil && (claim == nil || claim.Spec.VolumeName == ""):
		return s.fail(Deleting, "it is being deleted, and binds to no claim any more; its policy is Retain, so that its storage stays: create a volume for that storage once this one is gone")
	case phase.BoundByController(s.volume):
		return Step{Kind: StepUpdateVolume, Volume: preBound(s.volume, to), Why: "remove the annotation bound-by-controller, so that no controller clears its claimRef"}, nil
	case claim == nil:
		return Step{Kind: StepCreateClaim, Claim: to.DeepCopy(), Why: s.volume.Name + " is pre-bound to it"}, nil
	case claim.DeletionTimestamp != nil:
		return waitStep("%s is being deleted; when it is gone it is created again", nameOf(to))
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != s.volume.Name || claim.Status.Phase == corev1.ClaimLost:
		return s.fail(Taken, "claim %s names volume %q and is %s: the transfer goes on once that claim is gone; before it is deleted, set reclaim policy Retain on every volume whose claimRef has its UID %s", nameOf(to), claim.Spec.VolumeName, claim.Status.Phase, claim.UID)
	case claim.Spec.VolumeName == "": // somebody else created it, and only one that fits is bound
		s.checkClaim(claim)
	}
	return waitStep("it is pre-bound to %s, which exists; a controller binds them", nameOf(to))
}

// finish ends the transfer once a claim of the new name has the volume. One that had it and is gone leaves it with policy
// Retain.
func (s *stepper) finish() (Step, error) {
	to := s.record.newClaimKey()
	claim, read := s.known.claim(to)
	policy := s.volume.Spec.PersistentVolumeReclaimPolicy
	switch {
	case !read:
		return readStep(to)
	case claim == nil || phase.ClaimRefStateOf(s.volume, claim) != phase.ClaimRefBound:
		if policy != corev1.PersistentVolumeReclaimRetain {
			return s.retain()
		}
		return s.fail(Missing, "claim %s had it and is gone: remove the annotation %s, which ends the transfer; its policy stays Retain", name(to), TransferAnnotation)
	case claim.DeletionTimestamp != nil:
		return waitStep("%s has it and is being deleted", name(to))
	case s.volume.Status.Phase != corev1.VolumeBound || phase.Owned(claim) != s.volume.Name:
		return waitStep("it is being bound to %s", name(to))
	}
	ended := s.record.removeFrom(s.volume)
	why := fmt.Sprintf("%s has it; its reclaim policy is %s as before", name(to), s.record.Policy)
	if policy := ended.Spec.PersistentVolumeReclaimPolicy; policy != s.record.Policy {
		why = fmt.Sprintf("%s has it, though not by this transfer, or its policy was changed meanwhile; its reclaim policy stays %s, and was %s", name(to), policy, s.record.Policy)
	}
	return Step{Kind: StepUpdateVolume, Volume: ended, Why: why}, nil
}
