package reclaim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// next returns the next step of a transfer under way. The volume's claimRef says how far it is: it names the old claim,
// none, or the new one. A volume that is somebody else's by now is left as it is: the record may be an old one.
func (s *stepper) next() (Step, error) {
	ref, key := s.volume.Spec.ClaimRef, obj.ReferencedClaim(s.volume)
	toNew := key == s.record.newClaim()
	switch {
	case toNew && ref.UID != "":
		return s.finish()
	case ref != nil && !toNew && (key != s.record.oldClaim() || ref.UID != s.record.From.UID):
		return s.fail(Taken, "somebody gave it to %s meanwhile, neither %s nor %s", name(key), name(s.record.oldClaim()), name(s.record.newClaim()))
	case ref == nil:
		if step, err := s.checkUnclaimed(); step.Kind != "" || err != nil {
			return step, err
		}
	}
	switch {
	case s.volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return s.retain()
	case toNew:
		return s.bindNewClaim()
	}
	return s.removeOldClaim()
}

// checkUnclaimed reviews whose a volume without claimRef is (M2). No step and no error: the transfer may have it.
func (s *stepper) checkUnclaimed() (Step, error) {
	owners, read := s.known.owners(s.volume.Name)
	switch {
	case !read:
		return readStep(obj.Key{Kind: obj.KindClaims})
	case !slices.ContainsFunc(owners, s.takesPart):
		s.checkOwners(name(s.record.newClaim()))
		return s.verdict()
	case len(owners) == 1:
		return waitStep("its claimRef was removed while %s has it; it is bound to it again", nameOf(owners[0]))
	}
	return s.fail(Taken, "it has no claimRef, and several claims are Bound to it; set its claimRef to the one whose data it is, with namespace, name and UID: %s", names(owners))
}

// takesPart reports whether a claim is the old one or has the name of the new one.
func (s *stepper) takesPart(claim *corev1.PersistentVolumeClaim) bool {
	key := obj.KeyOf(claim)
	return key == s.record.newClaim() || key == s.record.oldClaim() && claim.UID == s.record.From.UID
}

// retain makes the reclaim policy Retain again.
func (s *stepper) retain() (Step, error) {
	kept := SetRetain(s.volume)
	return Step{Kind: StepUpdateVolume, Volume: kept.Volume, Warnings: kept.Warnings, Why: "set its policy to Retain again: somebody changed it"}, nil
}

// removeOldClaim deletes the claim that has the volume, and once it is gone pre-binds the volume to the new one. A crash
// in between leaves a Released volume with policy Retain.
func (s *stepper) removeOldClaim() (Step, error) {
	old := s.record.oldClaim()
	claim, read := s.known.claim(old)
	switch {
	case !read:
		return readStep(old)
	case claim == nil || claim.UID != s.record.From.UID || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != s.volume.Name:
		s.record.PreBound = true
		volume, err := s.record.on(preBound(s.volume, &s.record.To))
		return Step{Kind: StepUpdateVolume, Volume: volume, Warnings: s.warnings,
			Why: fmt.Sprintf("%s is gone: pre-bind it to %s", name(old), name(s.record.newClaim()))}, err
	case s.volume.Spec.ClaimRef == nil:
		return waitStep("its claimRef was removed while %s has it; it is bound to it again", name(old))
	case claim.DeletionTimestamp != nil:
		return waitStep("%s is being deleted; held by %v", name(old), claim.Finalizers)
	}
	return s.deleteOldClaim(claim)
}

// deleteOldClaim deletes the old claim. From then on there is no way back, so everything is reviewed once more.
func (s *stepper) deleteOldClaim(claim *corev1.PersistentVolumeClaim) (Step, error) {
	s.checkSource()
	if existing, _ := s.claim(s.record.newClaim()); existing != nil {
		s.checkWaiting(existing)
	}
	if step, err := s.verdict(); step.Kind != "" || err != nil {
		return step, err
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
	case phase.BoundByController(s.volume):
		return Step{Kind: StepUpdateVolume, Volume: preBound(s.volume, to), Why: "without bound-by-controller no controller undoes the reservation"}, nil
	case claim == nil:
		return Step{Kind: StepCreateClaim, Claim: to.DeepCopy(), Why: s.volume.Name + " is pre-bound to it"}, nil
	case claim.DeletionTimestamp != nil:
		return waitStep("%s is being deleted; when it is gone it is created again", nameOf(to))
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != s.volume.Name || claim.Status.Phase == corev1.ClaimLost:
		return s.fail(Taken, "claim %s names volume %q and is %s: the transfer goes on once that claim is gone; before it is deleted, set reclaim policy Retain on every volume whose claimRef has its UID %s", nameOf(to), claim.Spec.VolumeName, claim.Status.Phase, claim.UID)
	case claim.Spec.VolumeName == "": // somebody else created it, and only one that fits is bound
		s.checkClaim(claim)
		if err := s.err(); err != nil {
			return Step{}, err
		}
	}
	return waitStep("it is pre-bound to %s, which exists; a controller binds them", nameOf(to))
}

// finish ends the transfer once a claim of the new name has the volume. One that had it and is gone leaves it with policy
// Retain.
func (s *stepper) finish() (Step, error) {
	to := s.record.newClaim()
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
	ended := s.record.off(s.volume)
	why := fmt.Sprintf("%s has it; its reclaim policy is %s as before", name(to), s.record.Policy)
	if policy := ended.Spec.PersistentVolumeReclaimPolicy; policy != s.record.Policy {
		why = fmt.Sprintf("%s has it, not by this transfer alone; its reclaim policy stays %s, and was %s", name(to), policy, s.record.Policy)
	}
	return Step{Kind: StepUpdateVolume, Volume: ended, Why: why}, nil
}
