package binding

import "slices"

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
