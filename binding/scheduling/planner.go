package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/requirements"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// planner plans a pod for one node after the other. The pod's claims are looked up once for all nodes.
type planner struct {
	pod        obj.Key
	podUID     types.UID
	refused    []Reason        // why the pod must wait whatever the node
	bound      []*boundClaim   // in the order of their names
	unbound    []*unboundClaim // in the order of their names
	checks     checks
	assignment assignment
	summarizes bool // reasons say what became of the volumes (E2)
}

// boundClaim is a claim whose volume must be usable on the node (S3).
type boundClaim struct {
	exists bool
	usability
	reason Reason // reported if the volume is not usable on the node
	failed bool   // it is not, on the node at hand
}

// unboundClaim is a claim that a volume is to be found or provisioned for (S4), and what it can have on the node at hand.
type unboundClaim struct {
	*index.Query
	criteria match.Criteria
	class    *storagev1.StorageClass
	// selected is the node that its volume is being provisioned for, if hasSelected is set.
	selected    string
	hasSelected bool
	// promised is the volume that the plan of another pod assumes for it.
	promised string
	// pools is where its class provisions from; nil if free storage is not counted.
	pools pools
	option
}

// option is what a claim can have on a node.
type option struct {
	candidates []index.Choice           // the best first; none if a volume is pre-bound to the claim
	assigned   *corev1.PersistentVolume // the one that is pre-bound, or one of the candidates: see assignment
	elsewhere  string                   // the name of a volume that is pre-bound to the claim and not usable on the node
	blocked    Cause                    // why no volume can be provisioned; empty if one can
	pool       *storagev1.CSIStorageCapacity
}

// newPlanner looks up the claims of the request's pod.
func newPlanner(request Request) (*planner, error) {
	claims, err := claimsNamedBy(request.Pod, request.View)
	if err != nil {
		return nil, err
	}
	p := &planner{pod: obj.KeyOfPod(request.Pod), podUID: request.Pod.UID}
	for _, claim := range claims {
		if err := p.add(claim, request); err != nil {
			return nil, err
		}
	}
	p.checks = checksOf(p.bound, p.unbound)
	slices.SortFunc(p.refused, func(a, b Reason) int { return cmp.Compare(a.Claim.Name, b.Claim.Name) })
	slices.SortFunc(p.bound, func(a, b *boundClaim) int { return cmp.Compare(a.reason.Claim.Name, b.reason.Claim.Name) })
	slices.SortFunc(p.unbound, func(a, b *unboundClaim) int { return cmp.Compare(a.criteria.Claim.Name, b.criteria.Claim.Name) })
	return p, nil
}

// add adds a claim of the pod. It has to be usable, and bound unless it waits for the node (S1, S2).
func (p *planner) add(claim *corev1.PersistentVolumeClaim, request Request) error {
	if reason := unusable(claim); reason.Cause != "" {
		p.refused = append(p.refused, reason)
		return nil
	}
	if fullyBound(claim) {
		p.bound = append(p.bound, newBoundClaim(claim, request.View))
		return nil
	}
	class := request.View.Class(storageclass.OfClaim(claim))
	waits, err := storageclass.WaitsForFirstConsumer(class)
	if err != nil {
		return err
	}
	if !waits || claim.Spec.VolumeName != "" {
		p.refused = append(p.refused, notBound(claim, class))
		return nil
	}
	unbound, err := newUnboundClaim(claim, class, request)
	p.unbound = append(p.unbound, unbound)
	return err
}

// notBound returns why the pod must wait until the claim is bound, whatever the node.
func notBound(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) Reason {
	detail := "the claim is to be bound without regard to the node, and is not yet bound"
	name := storageclass.OfClaim(claim)
	switch {
	case claim.Spec.VolumeName != "":
		detail = "the claim names a volume and is not yet bound to it"
	case class == nil && name != "":
		detail = "the claim is not bound, and its class " + name + " does not exist"
	}
	return Reason{CauseClaimUnbound, obj.KeyOf(claim), claim.Spec.VolumeName, detail}
}

func newBoundClaim(claim *corev1.PersistentVolumeClaim, view ObjectView) *boundClaim {
	volume, _ := view.Volume(claim.Spec.VolumeName)
	reason := Reason{CauseVolumeElsewhere, obj.KeyOf(claim), claim.Spec.VolumeName, ""}
	if volume == nil {
		reason.Cause, reason.Detail = CauseVolumeAbsent, "the volume that the claim is bound to does not exist"
		return &boundClaim{reason: reason}
	}
	usability := usabilityOf(volume, view)
	if usability.required != nil {
		reason.Detail = "the volume is for nodes with " + oneline.OrNone(match.AffinityText(usability.required))
	}
	return &boundClaim{exists: true, usability: usability, reason: reason}
}

func newUnboundClaim(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, request Request) (*unboundClaim, error) {
	criteria, err := match.NewCriteria(claim, match.Terms{Class: class})
	if err != nil {
		return nil, err
	}
	c := &unboundClaim{criteria: criteria, class: class, pools: poolsOf(claim, class, request)}
	c.selected, c.hasSelected = claim.Annotations[storageclass.SelectedNodeAnnotation]
	if !c.hasSelected {
		c.promised, c.selected = request.Assumptions.promised(claim)
		c.hasSelected = c.selected != ""
	}
	return c, nil
}

// withIndexLocked gives each unbound claim its query on the Index, and calls plan. The Index does not change meanwhile.
func (p *planner) withIndexLocked(volumes *index.Index, plan func()) {
	if volumes == nil {
		volumes = &index.Index{}
	}
	volumes.Read(func(reader index.Reader) {
		for _, claim := range p.unbound {
			claim.Query = reader.Query(&claim.criteria)
		}
		plan()
	})
}

// on returns the plan for a node.
func (p *planner) on(node *corev1.Node) Plan {
	plan := Plan{Pod: p.pod, PodUID: p.podUID, Node: node, Refused: p.refused}
	if len(p.refused) > 0 {
		return plan
	}
	for _, bound := range p.bound {
		if bound.failed = !bound.exists || !bound.on(node); bound.failed {
			plan.Reasons = append(plan.Reasons, bound.reason)
		}
	}
	if elsewhere := p.provisionedElsewhere(node); len(elsewhere) > 0 {
		plan.Reasons = append(plan.Reasons, elsewhere...)
		plan.nodeReasons.add(p.checks.firstBound())
		plan.nodeReasons.add(CauseProvisionedElsewhere)
		return plan
	}
	for _, claim := range p.unbound {
		claim.findOptions(node, len(p.unbound))
	}
	p.assignment.assign(p.unbound)
	for _, claim := range p.unbound {
		p.addTo(&plan, claim)
	}
	if !plan.Fits() {
		plan.Bindings, plan.Provisions = nil, nil
		plan.nodeReasons.add(p.checks.firstBound())
		plan.nodeReasons.add(p.checks.firstUnbound())
	}
	return plan
}

// provisionedElsewhere returns a reason for each claim whose volume is being provisioned for another node: then the rest
// does not matter (S4).
func (p *planner) provisionedElsewhere(node *corev1.Node) []Reason {
	var reasons []Reason
	for _, claim := range p.unbound {
		if claim.hasSelected && claim.selected != node.Name {
			detail := "its volume is being provisioned for node " + claim.selected
			reasons = append(reasons, Reason{CauseProvisionedElsewhere, obj.KeyOf(claim.Claim), "", detail})
		}
	}
	return reasons
}

// findOptions finds what the claim can get on a node: the volume pre-bound to it, or else as many free candidates as the pod has
// unbound claims. A volume that the Index has reserved for the claim counts as pre-bound. If the plan of another pod assumes a
// volume for the claim, only that one will do until the plan is reverted (M13).
func (c *unboundClaim) findOptions(node *corev1.Node, claims int) {
	c.Node = node
	c.option = option{candidates: c.candidates[:0]}
	c.pool, c.blocked = c.provisionOn(node)
	if c.hasSelected {
		return
	}
	c.assigned, c.elsewhere = c.PreBound()
	switch {
	case c.promised != "" && (c.assigned == nil || c.assigned.Name != c.promised):
		c.assigned, c.elsewhere, c.blocked = nil, c.promised, CausePreBoundElsewhere
	case c.assigned == nil && c.elsewhere == "":
		c.candidates = c.Best(claims, c.candidates)
	}
}

// addTo adds to the plan what the claim gets, or why it gets nothing.
func (p *planner) addTo(plan *Plan, claim *unboundClaim) {
	switch {
	case claim.assigned != nil:
		plan.Bindings = append(plan.Bindings, index.Binding{Claim: claim.Claim, Volume: claim.assigned})
	case claim.blocked == "":
		plan.Provisions = append(plan.Provisions, Provision{claim.Claim, claim.pool})
	default:
		plan.Reasons = append(plan.Reasons, p.reason(claim))
	}
}

// reason returns why the claim can have no volume on the node: one reason, the one that kube-scheduler would give. It has the
// search summary, unless volumes fit that others of the pod's claims need or the volume is being provisioned.
func (p *planner) reason(c *unboundClaim) Reason {
	reason := Reason{Cause: c.blocked, Claim: obj.KeyOf(c.Claim)}
	switch {
	case c.blocked == CauseStorage:
		reason.Detail = "no storage of class " + c.class.Name + " that the node can use has room for a volume of this size"
	case c.elsewhere != "":
		reason.Cause, reason.Volume = CausePreBoundElsewhere, c.elsewhere
		reason.Detail = "the volume is pre-bound to the claim and cannot be used on the node"
	case len(c.candidates) > 0:
		reason.Cause, reason.Volume = CauseContended, c.candidates[0].Volume.Name
		reason.Detail = "the volumes that fit the claim are needed by other claims of the pod"
	case c.blocked == CauseTopology:
		reason.Detail = "class " + c.class.Name + " does not allow volumes to be provisioned for the node"
	default:
		reason.Detail = "class " + c.class.Name + " provisions none"
	}
	if p.summarizes && !c.hasSelected && reason.Cause != CauseContended {
		reason.Detail += "; " + c.Summary().String()
	}
	return reason
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

// pools are what a class can provision a claim's volume from, by a label that a node must have; those that require none in
// particular are under the zero label. Nearly all require one: a driver with local storage has as many as there are
// nodes (S5).
type pools map[nodeLabel][]pool

// nodeLabel is a label of a node.
type nodeLabel struct{ key, value string }

// pool is a capacity that suffices for the claim on some nodes.
type pool struct {
	*storagev1.CSIStorageCapacity
	nodes *requirements.Set
}

// poolsOf returns the pools that are large enough for the claim; nil if they do not count: the claim requests no size, or
// the provisioner is no CSI driver that publishes its capacity.
func poolsOf(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, request Request) pools {
	size, requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !requested || !storageclass.Provisions(class) {
		return nil
	}
	driver := request.View.CSIDriver(class.Provisioner)
	if driver == nil || driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity {
		return nil
	}
	found := pools{}
	for _, capacity := range request.View.CSIStorageCapacities(class.Name) {
		if HasRoom(capacity, size) {
			found.add(capacity, request.Assumptions)
		}
	}
	return found
}

// HasRoom reports whether a volume of the size can be provisioned from the capacity, on some node (S5).
func HasRoom(capacity *storagev1.CSIStorageCapacity, size resource.Quantity) bool {
	limit := cmp.Or(capacity.MaximumVolumeSize, capacity.Capacity)
	return capacity.NodeTopology != nil && limit != nil && quantities.Compare(*limit, size) >= 0
}

// add adds a capacity. One with a malformed topology is for no node.
func (p pools) add(capacity *storagev1.CSIStorageCapacity, assumptions *Assumptions) {
	nodes := assumptions.topologyOf(capacity)
	if nodes == nil {
		return
	}
	key, values := nodes.In(maxTopologyValues)
	if key == "" {
		p[nodeLabel{}] = append(p[nodeLabel{}], pool{capacity, nodes})
	}
	for _, value := range values {
		label := nodeLabel{key, value}
		p[label] = append(p[label], pool{capacity, nodes})
	}
}

// maxTopologyValues is how many values of a label a capacity's topology may have to be found by each.
const maxTopologyValues = 64

// largestOn returns the pool with the most free storage that the node can use; nil if there is none.
func (p pools) largestOn(node *corev1.Node) *storagev1.CSIStorageCapacity {
	var largest *storagev1.CSIStorageCapacity
	among := func(some []pool) {
		for _, pool := range some {
			if pool.nodes.Matches(node.Labels) && (largest == nil || roomier(pool.CSIStorageCapacity, largest)) {
				largest = pool.CSIStorageCapacity
			}
		}
	}
	among(p[nodeLabel{}])
	if len(node.Labels) > len(p) {
		for label, some := range p {
			if value, has := node.Labels[label.key]; has && value == label.value {
				among(some)
			}
		}
		return largest
	}
	for key, value := range node.Labels {
		among(p[nodeLabel{key, value}])
	}
	return largest
}

// roomier reports whether a has more free storage than b; ties are broken by name.
func roomier(a, b *storagev1.CSIStorageCapacity) bool {
	order := quantities.Compare(freeIn(b), freeIn(a))
	return cmp.Or(order, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// freeIn returns how much is left; the largest size of one volume counts if the total is not published.
func freeIn(capacity *storagev1.CSIStorageCapacity) resource.Quantity {
	return *cmp.Or(capacity.Capacity, capacity.MaximumVolumeSize, &resource.Quantity{})
}
