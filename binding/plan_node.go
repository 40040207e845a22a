package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// planner plans a pod for one node after the other, while the Index does not change.
type planner struct {
	*demand
	wishes   []wish // of the node at hand, kept to be filled again
	assigner assigner
}

func newPlanner(d *demand, index index.Reader) *planner {
	for _, open := range d.open {
		open.Query = index.Query(&open.criteria)
	}
	return &planner{demand: d}
}

func (p *planner) on(node *corev1.Node) PodPlan {
	plan := PodPlan{Pod: p.pod, Node: node, Refused: p.refused}
	if len(p.refused) > 0 {
		return plan
	}
	for i := range p.bound {
		if bound := &p.bound[i]; bound.volume == nil || !match.UsableOn(node, bound.volume) {
			plan.Reasons = append(plan.Reasons, bound.why)
		}
	}
	if reasons := p.wish(node); len(reasons) > 0 {
		plan.Reasons = append(plan.Reasons, reasons...)
		return plan
	}
	p.assigner.assign(p.wishes)
	for i := range p.wishes {
		p.wishes[i].settle(&plan)
	}
	if !plan.Fits() {
		plan.Bindings, plan.Provisions = nil, nil
	}
	return plan
}

// wish finds out what there is for every claim. The reasons are of claims that are being provided for on
// another node (S4): then the rest does not matter.
func (p *planner) wish(node *corev1.Node) []PodReason {
	var elsewhere []PodReason
	p.wishes = p.wishes[:0]
	for _, open := range p.open {
		open.On(node)
		if open.selecting && open.selected != node.Name {
			elsewhere = append(elsewhere, PodReason{CauseProvisionedElsewhere, obj.KeyOf(open.Claim), "", "its volume is being provisioned for node " + open.selected})
			continue
		}
		p.wishes = append(p.wishes, p.wishOf(open, node))
	}
	return elsewhere
}

// explain adds to a reason what became of the volumes that there are (E2), unless some fit.
func (p *planner) explain(reason *PodReason) {
	for _, open := range p.open {
		if obj.KeyOf(open.Claim) == reason.Claim && !open.selecting && reason.Cause != CauseContended {
			reason.Detail += "; " + open.Summary().String()
		}
	}
}
