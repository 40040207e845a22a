package binding

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

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
	s.reasons = append(s.reasons, PodReason{cause, obj.KeyOf(claim), volume, detail})
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
	case obj.Older(claim, planned):
		s.awaits("news of " + obj.KeyOf(claim).String())
		return nil
	}
	if reason, refused := refusedClaim(claim); refused {
		s.reasons = append(s.reasons, reason)
		return nil
	}
	return claim
}

func (s *planCheck) checkBinding(b index.Binding) {
	claim := s.claim(b.Claim)
	if claim == nil {
		return
	}
	volume, _ := s.view.Volume(b.Volume.Name)
	switch {
	case volume == nil || volume.UID != b.Volume.UID:
		s.give(CauseVolumeAbsent, claim, b.Volume.Name, "the volume was deleted")
	case obj.Older(volume, b.Volume):
		s.awaits("news of " + obj.VolumeKey(volume.Name).String())
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		s.give(CauseBoundElsewhere, claim, claim.Spec.VolumeName, "the claim names another volume than the plan's, "+volume.Name)
	case !s.usable(claim, volume):
	case phase.LinkOf(volume, claim) != phase.Held:
		s.hold(claim, volume, b)
	case !fullyBound(claim):
		s.awaits(obj.KeyOf(claim).String() + " to be bound to " + volume.Name)
	}
}

// hold sets the volume aside for the claim, if it is what was planned with.
func (s *planCheck) hold(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, b index.Binding) {
	switch {
	case volume.ResourceVersion != b.Volume.ResourceVersion:
		s.give(CauseVolumeTaken, claim, volume.Name, "the volume was changed since the plan was made and is not the claim's")
	case claim.UID == "":
		s.err = &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.uid", Problem: "is missing"}
	default:
		s.plans(updateVolume(reserve(volume, claim), "B1", "set "+volume.Name+" aside for "+claim.Namespace+"/"+claim.Name))
	}
}

func (s *planCheck) usable(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if match.UsableOn(s.plan.Node, volume) {
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
		s.awaits("a volume for " + obj.KeyOf(claim).String())
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
		s.awaits(obj.KeyOf(claim).String() + " to be bound to " + volume.Name)
	}
}
