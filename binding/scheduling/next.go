package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// GiveUp is the kind of step for a plan that cannot be carried out any more: revert it and plan again.
const GiveUp decision.ActionKind = "GiveUp"

// Step is what to do next for a plan: UpdateVolume to set a claimRef (B1), UpdateClaim to set selected-node, Wait, Nothing
// if every claim is bound, or GiveUp.
type Step struct {
	decision.Action
	// Reasons are why to give up.
	Reasons []Reason
}

// NextForPlan returns the next write for a plan that fits, or how it stands. It is called like decision.NextForClaim:
// perform the action, put the server's reply in place of the old object, and call it again, at once after a write and
// whenever a claim or volume of the plan has changed after a Wait. The rest of the binding, from B2 on, and the
// provisioning, are the Controller's or kube-controller-manager's. The caller sees to it that the pod still exists. The
// error is about a malformed claim (*obj.InvalidError). PlanPod, which only answers, takes a claim that is not stored yet;
// here one without a UID is refused where the write needs it.
//
// NextForPlan has no memory. So a claim or volume that has changed since it was planned with, and does not show what was
// planned, counts as one that somebody has decided otherwise about: that is what a claimRef that was taken away looks like,
// and a selected-node that was removed because provisioning failed (S8).
//
// Package executor calls it as this says, on any client.
func NextForPlan(plan Plan, view ObjectView) (Step, error) {
	c := planCheck{plan: plan, view: view, reasons: slices.Concat(plan.Refused, plan.Reasons)}
	for _, b := range plan.Bindings {
		if claim := c.newest(b.Claim); claim != nil {
			c.checkBinding(claim, b.Volume)
		}
	}
	for _, p := range plan.Provisions {
		if claim := c.newest(p.Claim); claim != nil {
			c.checkProvision(claim, p.Claim)
		}
	}
	switch {
	case c.err != nil:
		return Step{}, c.err
	case len(c.reasons) > 0:
		return Step{Action: decision.Action{Kind: GiveUp, Rule: "S8", Why: c.reasons[0].String()}, Reasons: c.reasons}, nil
	case c.write != nil:
		return Step{Action: c.write()}, nil
	case len(c.pending) > 0:
		return Step{Action: decision.Action{Kind: decision.Wait, Rule: "S8", Why: "waiting for " + c.pending[0]}}, nil
	}
	return Step{Action: decision.Action{Rule: "S8", Why: "the pod's claims are bound"}}, nil
}

// planCheck compares a plan with the cluster. Nothing is written while there is a reason to give up.
type planCheck struct {
	plan    Plan
	view    ObjectView
	write   func() decision.Action // the next one. Its object is copied only now, for a tenant can make it large, and many of them
	pending []string               // what to wait for
	reasons []Reason               // to give up
	err     error
}

func (c *planCheck) fail(cause Cause, claim *corev1.PersistentVolumeClaim, volume, detail string) {
	c.reasons = append(c.reasons, Reason{cause, obj.KeyOf(claim), volume, detail})
}

// next makes a write the next one, unless there is one.
func (c *planCheck) next(write func() decision.Action) {
	if c.write == nil {
		c.write = write
	}
}

func (c *planCheck) await(what string) { c.pending = append(c.pending, what) }

// newest returns the newest version of a claim that was planned with; nil if the plan is to be given up, or if the view is
// behind the plan.
func (c *planCheck) newest(planned *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim, _ := c.view.Claim(planned.Namespace, planned.Name)
	switch {
	case claim == nil || claim.UID != planned.UID:
		c.fail(CauseClaimAbsent, planned, "", "the claim was deleted")
		return nil
	case obj.Older(claim, planned):
		c.await("a newer version of " + obj.KeyOf(claim).String())
		return nil
	}
	if reason := unusable(claim); reason.Cause != "" {
		c.reasons = append(c.reasons, reason)
		return nil
	}
	return claim
}

func (c *planCheck) checkBinding(claim *corev1.PersistentVolumeClaim, planned *corev1.PersistentVolume) {
	volume, _ := c.view.Volume(planned.Name)
	switch {
	case volume == nil || volume.UID != planned.UID:
		c.fail(CauseVolumeAbsent, claim, planned.Name, "the volume was deleted")
	case obj.Older(volume, planned):
		c.await("a newer version of " + obj.VolumeKey(volume.Name).String())
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		c.fail(CauseBoundElsewhere, claim, claim.Spec.VolumeName, "the claim names another volume than the plan's, "+volume.Name)
	case phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefBound || !c.usable(volume):
		c.checkVolume(claim, volume)
	case volume.ResourceVersion != planned.ResourceVersion:
		c.fail(CauseVolumeTaken, claim, volume.Name, "the volume was changed since the plan was made and is not the claim's")
	case metav1.HasAnnotation(volume.ObjectMeta, reclaim.AnnouncementAnnotation): // it is reserved, or was announced just now
		c.fail(CauseVolumeTaken, claim, volume.Name, "the volume's storage is being deleted or scrubbed, or may have been; see the volume's events")
	case volume.Spec.ClaimRef == nil && match.OwnedByAnother(obj.KeyOf(claim), c.view.Owners(volume.Name)):
		c.fail(CauseVolumeTaken, claim, volume.Name, "another claim is bound to the volume, which has no claimRef")
	case claim.UID == "":
		c.err = &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.uid", Problem: "is missing"}
	default:
		c.next(func() decision.Action { return decision.PreBind(volume, claim) })
	}
}

func (c *planCheck) checkProvision(claim, planned *corev1.PersistentVolumeClaim) {
	selected, isSelected := claim.Annotations[storageclass.SelectedNodeAnnotation]
	switch {
	case claim.Spec.VolumeName != "":
		c.checkProvisioned(claim)
	case isSelected && selected == c.plan.Node.Name:
		c.await("a volume for " + obj.KeyOf(claim).String())
	case isSelected:
		c.fail(CauseProvisionedElsewhere, claim, "", "its volume is being provisioned for node "+selected)
	case claim.ResourceVersion != planned.ResourceVersion:
		c.fail(CauseDeselected, claim, "",
			"the claim was changed since the plan was made and has no selected node: provisioning may have failed")
	default:
		c.next(func() decision.Action { return c.selectNode(claim) })
	}
}

// selectNode returns the write of a claim's selected-node.
func (c *planCheck) selectNode(claim *corev1.PersistentVolumeClaim) decision.Action {
	chosen := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&chosen.ObjectMeta, storageclass.SelectedNodeAnnotation, c.plan.Node.Name)
	why := "provision its volume for node " + c.plan.Node.Name
	return decision.Action{Kind: decision.UpdateClaim, Claim: chosen, Rule: "S8", Why: why}
}

// checkProvisioned looks at a claim that names a volume, whoever has provisioned it. A volume that is not known may be
// newer than the view.
func (c *planCheck) checkProvisioned(claim *corev1.PersistentVolumeClaim) {
	if volume, _ := c.view.Volume(claim.Spec.VolumeName); volume != nil {
		c.checkVolume(claim, volume)
		return
	}
	c.await("volume " + claim.Spec.VolumeName)
}

// checkVolume looks at a claim and the volume that it has.
func (c *planCheck) checkVolume(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	switch {
	case !c.usable(volume):
		c.fail(CauseVolumeElsewhere, claim, volume.Name, "the volume cannot be used on node "+c.plan.Node.Name)
	case !fullyBound(claim):
		c.await(obj.KeyOf(claim).String() + " to be bound to " + volume.Name)
	}
}

// usable reports whether the volume can be used on the plan's node.
func (c *planCheck) usable(volume *corev1.PersistentVolume) bool {
	usability := usabilityOf(volume, c.view)
	return usability.on(c.plan.Node)
}
