package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// wish is what there is for a claim on a node.
type wish struct {
	*openClaim
	setAside *corev1.PersistentVolume // the one volume that may serve
	choices  []index.Choice           // or any of these, the best first
	must     Cause                    // why no volume can be made for it; "": one can
	pool     *storagev1.CSIStorageCapacity
	reserved string // the volume that is set aside for the claim and cannot be used on the node

	given *corev1.PersistentVolume // see assigner
}

func (p *planner) wishOf(open *openClaim, node *corev1.Node) wish {
	w := wish{openClaim: open}
	w.pool, w.must = open.provisionOn(node)
	if open.selecting {
		return w
	}
	switch w.setAside, w.reserved = open.setAsideOn(); {
	case w.setAside != nil:
	case w.reserved == "":
		open.choices = open.Best(len(p.open), open.choices)
		w.choices = open.choices
	case w.reserved == open.promised:
		w.must = CauseReservedElsewhere // two pods of one claim cannot have two volumes
	}
	return w
}

// setAsideOn is the volume that the claim has and may use on the node (M13), or the name of one that it has and
// may not. What the Index has reserved for the claim is as good as set aside: it is given away once. What is
// promised counts even if it is gone, until whoever was promised it gives up.
func (o *openClaim) setAsideOn() (found *corev1.PersistentVolume, elsewhere string) {
	found, elsewhere = o.Reserved()
	if o.promised != "" && (found == nil || found.Name != o.promised) {
		return nil, o.promised
	}
	return found, elsewhere
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
		plan.Bindings = append(plan.Bindings, index.Binding{Claim: w.Claim, Volume: w.given})
	case w.must == "":
		plan.Provisions = append(plan.Provisions, PodProvision{w.Claim, w.pool})
	default:
		plan.Reasons = append(plan.Reasons, w.refusal())
	}
}

// refusal is why the claim can have no volume on the node: one reason, the one that kube-scheduler would give.
func (w *wish) refusal() PodReason {
	reason := PodReason{Cause: w.must, Claim: obj.KeyOf(w.Claim)}
	switch {
	case w.must == CauseStorage:
		reason.Detail = "no storage of class " + w.class.Name + " that the node can use has room for a volume of this size"
	case w.reserved != "":
		reason.Cause, reason.Volume = CauseReservedElsewhere, w.reserved
		reason.Detail = "the volume is set aside for the claim and cannot be used on the node"
	case len(w.choices) > 0:
		reason.Cause, reason.Volume = CauseContended, w.choices[0].Volume.Name
		reason.Detail = "what fits the claim, the other claims of the pod need"
	case w.must == CauseTopology:
		reason.Detail = "class " + w.class.Name + " does not allow volumes to be made for the node"
	default:
		reason.Detail = "class " + w.class.Name + " provisions none"
	}
	return reason
}
