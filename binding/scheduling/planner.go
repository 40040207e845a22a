package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// planner plans a pod for one node after the other, while the Index does not change.
type planner struct {
	*podClaims
	options    []option // on the node at hand; kept to be filled again
	assignment assignment
}

func newPlanner(claims *podClaims, index index.Reader) *planner {
	for _, claim := range claims.unbound {
		claim.Query = index.Query(&claim.criteria)
	}
	return &planner{podClaims: claims}
}

// on returns the plan for a node.
func (p *planner) on(node *corev1.Node) Plan {
	plan := Plan{Pod: p.pod, Node: node, Refused: p.refused}
	if len(p.refused) > 0 {
		return plan
	}
	for i := range p.bound {
		if bound := &p.bound[i]; bound.volume == nil || !match.UsableOn(node, bound.volume) {
			plan.Reasons = append(plan.Reasons, bound.reason)
		}
	}
	if reasons := p.findOptions(node); len(reasons) > 0 {
		plan.Reasons = append(plan.Reasons, reasons...)
		return plan
	}
	p.assignment.assign(p.options)
	for i := range p.options {
		p.options[i].addTo(&plan)
	}
	if !plan.Fits() {
		plan.Bindings, plan.Provisions = nil, nil
	}
	return plan
}

// findOptions finds what each claim can have on the node. It returns a reason for each claim whose volume is being
// provisioned for another node: then the rest does not matter (S4).
func (p *planner) findOptions(node *corev1.Node) []Reason {
	var elsewhere []Reason
	p.options = p.options[:0]
	for _, claim := range p.unbound {
		claim.Node = node
		if claim.hasSelected && claim.selected != node.Name {
			elsewhere = append(elsewhere, Reason{CauseProvisionedElsewhere, obj.KeyOf(claim.Claim), "", "its volume is being provisioned for node " + claim.selected})
			continue
		}
		p.options = append(p.options, claim.optionOn(node, len(p.unbound)))
	}
	return elsewhere
}

// explain appends to a reason the search summary of its claim, unless volumes fit it that others of the pod's claims need or
// its volume is being provisioned (E2).
func (p *planner) explain(reason *Reason) {
	for _, claim := range p.unbound {
		if obj.KeyOf(claim.Claim) == reason.Claim && !claim.hasSelected && reason.Cause != CauseContended {
			reason.Detail += "; " + claim.Summary().String()
		}
	}
}

// option is what an unbound claim can have on a node.
type option struct {
	*unboundClaim
	candidates []index.Choice           // the best first; none if a volume is pre-bound to the claim
	assigned   *corev1.PersistentVolume // the one that is pre-bound, or one of the candidates: see assignment
	elsewhere  string                   // the volume that is pre-bound to the claim and cannot be used on the node
	blocked    Cause                    // why none can be provisioned; "": one can
	pool       *storagev1.CSIStorageCapacity
}

// optionOn returns what the claim can have on a node, with as many candidates as the pod has unbound claims.
func (c *unboundClaim) optionOn(node *corev1.Node, claims int) option {
	o := option{unboundClaim: c}
	o.pool, o.blocked = c.provisionOn(node)
	if c.hasSelected {
		return o
	}
	switch o.assigned, o.elsewhere = c.preBound(); {
	case o.assigned != nil:
	case o.elsewhere == "":
		c.candidates = c.Best(claims, c.candidates)
		o.candidates = c.candidates
	case o.elsewhere == c.promised:
		o.blocked = CausePreBoundElsewhere // another pod's plan assumes this volume for the claim
	}
	return o
}

// preBound returns the volume that is reserved for the claim, if it is usable on the node, or else its name (M13). A volume
// that the Index has reserved counts as pre-bound: no other claim gets it. A volume that another pod's plan assumes counts
// until that plan is reverted, even if the volume is gone.
func (c *unboundClaim) preBound() (found *corev1.PersistentVolume, elsewhere string) {
	found, elsewhere = c.PreBound()
	if c.promised != "" && (found == nil || found.Name != c.promised) {
		return nil, c.promised
	}
	return found, elsewhere
}

// provisionOn returns where a volume for the claim can be provisioned for the node, or why none can (S5).
func (c *unboundClaim) provisionOn(node *corev1.Node) (*storagev1.CSIStorageCapacity, Cause) {
	switch {
	case !storageclass.Provisions(c.class):
		return nil, CauseNoVolume
	case !storageclass.AllowsNode(c.class, node.Labels):
		return nil, CauseTopology
	case c.pools == nil:
		return nil, ""
	}
	pool := c.pools.largestOn(node)
	if pool == nil {
		return nil, CauseStorage
	}
	return pool, ""
}

// addTo adds to the plan what the claim gets, or why it gets nothing.
func (o *option) addTo(plan *Plan) {
	switch {
	case o.assigned != nil:
		plan.Bindings = append(plan.Bindings, index.Binding{Claim: o.Claim, Volume: o.assigned})
	case o.blocked == "":
		plan.Provisions = append(plan.Provisions, Provision{o.Claim, o.pool})
	default:
		plan.Reasons = append(plan.Reasons, o.reason())
	}
}

// reason returns why the claim can have no volume on the node: one reason, the one that kube-scheduler would give.
func (o *option) reason() Reason {
	reason := Reason{Cause: o.blocked, Claim: obj.KeyOf(o.Claim)}
	switch {
	case o.blocked == CauseStorage:
		reason.Detail = "no storage of class " + o.class.Name + " that the node can use has room for a volume of this size"
	case o.elsewhere != "":
		reason.Cause, reason.Volume = CausePreBoundElsewhere, o.elsewhere
		reason.Detail = "the volume is pre-bound to the claim and cannot be used on the node"
	case len(o.candidates) > 0:
		reason.Cause, reason.Volume = CauseContended, o.candidates[0].Volume.Name
		reason.Detail = "the volumes that fit the claim are needed by other claims of the pod"
	case o.blocked == CauseTopology:
		reason.Detail = "class " + o.class.Name + " does not allow volumes to be provisioned for the node"
	default:
		reason.Detail = "class " + o.class.Name + " provisions none"
	}
	return reason
}
