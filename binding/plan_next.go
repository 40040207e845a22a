package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// GiveUp is what NextForPlan answers if the plan cannot be carried out any more: revert it and plan again.
const GiveUp ActionKind = "GiveUp"

// PlanStep is what to do next for a plan: UpdateVolume (B1), UpdateClaim (to set selected-node), Wait, Nothing if
// every claim is bound, or GiveUp.
type PlanStep struct {
	Action
	// Reasons are why to give up.
	Reasons []PodReason
}

// NextForPlan is the next write for a plan that fits, or how it stands (S8). It is asked like NextForClaim: do
// what the action says, put the server's reply in place of the old object, and ask again, at once after a write
// and whenever a claim or volume of the plan has changed after a Wait. The rest of the binding, from B2 on, and
// the provisioning, are the Controller's or kube-controller-manager's.
//
// It has no memory, so a claim or volume that has changed since it was planned with, and does not show what was
// planned, counts as one that somebody has decided otherwise about: that is what a claimRef that was taken away
// looks like, and a selected-node that was removed because provisioning failed.
//
// That the pod still exists is the caller's to watch. An error is about a malformed claim (*InvalidError).
func NextForPlan(plan PodPlan, view PairView) (PlanStep, error) {
	s := planCheck{plan: plan, view: view}
	for _, b := range plan.Bindings {
		s.checkBinding(b)
	}
	for _, p := range plan.Provisions {
		s.checkProvision(p)
	}
	switch {
	case s.err != nil:
		return PlanStep{}, s.err
	case !plan.Fits():
		return giveUp(slices.Concat(plan.Refused, plan.Reasons)), nil
	case len(s.reasons) > 0:
		return giveUp(s.reasons), nil
	case s.write.Kind != Nothing:
		return PlanStep{Action: s.write}, nil
	case s.pending != "":
		return PlanStep{Action: wait("S8", "waiting for "+s.pending)}, nil
	}
	return PlanStep{Action: nothing("S8", "the pod's claims are bound")}, nil
}

func giveUp(reasons []PodReason) PlanStep {
	return PlanStep{Action: Action{Kind: GiveUp, Rule: "S8", Why: reasons[0].String()}, Reasons: reasons}
}

// planCheck goes through a plan. Nothing is written while there is a reason to give up.
type planCheck struct {
	plan    PodPlan
	view    PairView
	write   Action // the first there is
	pending string // the first that is waited for
	reasons []PodReason
	err     error
}

func (s *planCheck) give(cause Cause, claim *corev1.PersistentVolumeClaim, volume, detail string) {
	s.reasons = append(s.reasons, PodReason{cause, KeyOf(claim), volume, detail})
}

func (s *planCheck) plans(write Action) {
	if s.write.Kind == Nothing {
		s.write = write
	}
}

func (s *planCheck) awaits(what string) {
	if s.pending == "" {
		s.pending = what
	}
}

// claim is the newest version of a claim that was planned with; nil if the plan is to be given up, or if the
// view is behind the plan.
func (s *planCheck) claim(planned *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim, _ := s.view.Claim(planned.Namespace, planned.Name)
	switch {
	case claim == nil || claim.UID != planned.UID:
		s.give(CauseClaimAbsent, planned, "", "the claim was deleted")
		return nil
	case older(claim, planned):
		s.awaits("news of " + KeyOf(claim).String())
		return nil
	}
	if reason, refused := refusedClaim(claim); refused {
		s.reasons = append(s.reasons, reason)
		return nil
	}
	return claim
}

// older reports whether a is a version before b. Versions that cannot be compared are not.
func older(a, b Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

func (s *planCheck) checkBinding(b PodBinding) {
	claim := s.claim(b.Claim)
	if claim == nil {
		return
	}
	volume, _ := s.view.Volume(b.Volume.Name)
	switch {
	case volume == nil || volume.UID != b.Volume.UID:
		s.give(CauseVolumeAbsent, claim, b.Volume.Name, "the volume was deleted")
	case older(volume, b.Volume):
		s.awaits("news of " + VolumeKey(volume.Name).String())
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		s.give(CauseBoundElsewhere, claim, claim.Spec.VolumeName, "the claim names another volume than the plan's, "+volume.Name)
	case !s.usable(claim, volume):
	case phase.LinkOf(volume, claim) != phase.Held:
		s.hold(claim, volume, b)
	case !fullyBound(claim):
		s.awaits(KeyOf(claim).String() + " to be bound to " + volume.Name)
	}
}

// hold sets the volume aside for the claim, if it is what was planned with.
func (s *planCheck) hold(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, b PodBinding) {
	switch {
	case volume.ResourceVersion != b.Volume.ResourceVersion:
		s.give(CauseVolumeTaken, claim, volume.Name, "the volume was changed since the plan was made and is not the claim's")
	case claim.UID == "":
		s.err = &InvalidError{KeyOf(claim).String(), "metadata.uid", "is missing"}
	default:
		s.plans(updateVolume(reserve(volume, claim), "B1", "set "+volume.Name+" aside for "+claim.Namespace+"/"+claim.Name))
	}
}

func (s *planCheck) usable(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if usableOn(s.plan.Node, volume) {
		return true
	}
	s.give(CauseVolumeElsewhere, claim, volume.Name, "the volume cannot be used on node "+s.plan.Node.Name)
	return false
}

func (s *planCheck) checkProvision(p PodProvision) {
	claim := s.claim(p.Claim)
	if claim == nil {
		return
	}
	if claim.Spec.VolumeName != "" {
		s.checkProvisioned(claim)
		return
	}
	switch selected, ok := claim.Annotations[storageclass.SelectedNodeAnnotation]; {
	case ok && selected == s.plan.Node.Name:
		s.awaits("a volume for " + KeyOf(claim).String())
	case ok:
		s.give(CauseProvisionedElsewhere, claim, "", "its volume is being provisioned for node "+selected)
	case claim.ResourceVersion != p.Claim.ResourceVersion:
		s.give(CauseDeselected, claim, "", "the claim was changed since the plan was made and has no selected node: provisioning may have failed")
	default:
		chosen := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&chosen.ObjectMeta, storageclass.SelectedNodeAnnotation, s.plan.Node.Name)
		s.plans(updateClaim(chosen, "S8", "provision its volume for node "+s.plan.Node.Name))
	}
}

// checkProvisioned is for a claim that names a volume, whoever has made it. One that is not known may be newer
// than the view.
func (s *planCheck) checkProvisioned(claim *corev1.PersistentVolumeClaim) {
	volume, _ := s.view.Volume(claim.Spec.VolumeName)
	switch {
	case volume == nil:
		s.awaits("volume " + claim.Spec.VolumeName)
	case !s.usable(claim, volume):
	case !fullyBound(claim):
		s.awaits(KeyOf(claim).String() + " to be bound to " + volume.Name)
	}
}
