package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// planner plans a pod for one node after the other. The Index stays locked for as long as it is used.
type planner struct {
	*demand
	x        *Index
	wishes   []wish // of the node at hand
	picks    []pick // of all of these; both are kept to be filled again
	assigner assigner
}

func (x *Index) planner(d *demand) *planner {
	for _, open := range d.open {
		open.related = x.related[KeyOf(open.claim).claimName()]
	}
	return &planner{demand: d, x: x}
}

func (p *planner) on(node *corev1.Node) PodPlan {
	plan := PodPlan{Pod: p.pod, Node: node, Refused: p.refused}
	if len(p.refused) > 0 {
		return plan
	}
	for i := range p.bound {
		if bound := &p.bound[i]; bound.volume == nil || !usableOn(node, bound.volume) {
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

// wish is what there is for a claim on a node.
type wish struct {
	*openClaim
	setAside *corev1.PersistentVolume // the one volume that may serve
	picks    []pick                   // or any of these, the best first
	must     Cause                    // why no volume can be made for it; "": one can
	pool     *storagev1.CSIStorageCapacity
	reserved string // the volume that is set aside for the claim and cannot be used on the node

	given *corev1.PersistentVolume // see assigner
}

// wish finds out what there is for every claim. The reasons are of claims that are being provided for on
// another node (S4): then the rest does not matter.
func (p *planner) wish(node *corev1.Node) []PodReason {
	var elsewhere []PodReason
	p.wishes, p.picks = p.wishes[:0], p.picks[:0]
	for _, open := range p.open {
		open.node = node
		if open.selecting && open.selected != node.Name {
			elsewhere = append(elsewhere, PodReason{CauseProvisionedElsewhere, KeyOf(open.claim), "", "its volume is being provisioned for node " + open.selected})
			continue
		}
		p.wishes = append(p.wishes, p.wishOf(open, node))
	}
	return elsewhere
}

func (p *planner) wishOf(open *openClaim, node *corev1.Node) wish {
	w := wish{openClaim: open}
	w.pool, w.must = open.provisionOn(node)
	if open.selecting {
		return w
	}
	if w.setAside, w.reserved = open.setAsideOn(); w.setAside == nil && w.reserved == "" {
		before := len(p.picks)
		p.picks = p.x.pick(&open.criteria, len(p.open), p.picks)
		w.picks = p.picks[before:]
	}
	return w
}

// setAsideOn is the volume that the claim has and may use on the node (M13), or the name of one that it has and
// may not. What the Index has reserved for the claim is as good as set aside: it is given away once.
func (o *openClaim) setAsideOn() (found *corev1.PersistentVolume, elsewhere string) {
	if len(o.related) == 0 {
		return nil, ""
	}
	if found = o.find(o.related).Volume; found != nil {
		return found, ""
	}
	for _, volume := range o.related {
		if o.mismatches(o.candidate(volume)).only(NodeAffinity) && (elsewhere == "" || volume.Name < elsewhere) {
			elsewhere = volume.Name
		}
	}
	return nil, elsewhere
}

// provisionOn is where a volume for the claim can be made for the node, or why none can (S5).
func (o *openClaim) provisionOn(node *corev1.Node) (*storagev1.CSIStorageCapacity, Cause) {
	switch {
	case !storageclass.Provisions(o.class):
		return nil, CauseNoVolume
	case !storageclass.AllowsNode(o.class, node.Labels):
		return nil, CauseTopology
	case o.pools == nil:
		return nil, ""
	}
	pool := o.pools.on(node)
	if pool == nil {
		return nil, CauseStorage
	}
	return pool, ""
}

// settle adds to the plan what the claim gets, or why it gets nothing.
func (w *wish) settle(plan *PodPlan) {
	switch {
	case w.given != nil:
		plan.Bindings = append(plan.Bindings, PodBinding{w.claim, w.given})
	case w.must == "":
		plan.Provisions = append(plan.Provisions, PodProvision{w.claim, w.pool})
	default:
		plan.Reasons = append(plan.Reasons, w.refusal())
	}
}

// refusal is why the claim can have no volume on the node: one reason, the one that kube-scheduler would give.
func (w *wish) refusal() PodReason {
	reason := PodReason{Cause: w.must, Claim: KeyOf(w.claim)}
	switch {
	case w.must == CauseStorage:
		reason.Detail = "no storage of class " + w.class.Name + " that the node can use has room for a volume of this size"
	case w.reserved != "":
		reason.Cause, reason.Volume = CauseReservedElsewhere, w.reserved
		reason.Detail = "the volume is set aside for the claim and cannot be used on the node"
	case len(w.picks) > 0:
		reason.Cause, reason.Volume = CauseContended, w.picks[0].Name
		reason.Detail = "what fits the claim, the other claims of the pod need"
	case w.must == CauseTopology:
		reason.Detail = "class " + w.class.Name + " does not allow volumes to be made for the node"
	default:
		reason.Detail = "class " + w.class.Name + " provisions none"
	}
	return reason
}

// explain adds to a reason what became of the volumes that there are (E2).
func (p *planner) explain(reason *PodReason) {
	for _, open := range p.open {
		if KeyOf(open.claim) != reason.Claim || open.selecting {
			continue
		}
		t := p.x.tally(&open.criteria)
		reason.Detail += "; " + t.summary().String()
	}
}
