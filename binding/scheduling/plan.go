package scheduling

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
)

// PlanPod plans the volumes of all claims of a pod on one node.
//
// All claims are assigned together: if there is any way to give each claim a volume that fits, or to have one provisioned,
// one is found. Among these the plan has the most claims with a volume that exists, and then the least total capacity.
// Among volumes of one capacity those with the fewest access modes come first; further ties are broken by name. A claim
// that a volume is pre-bound to gets that and no other (M13). If there are fewer volumes than claims, those get one that
// cannot be provisioned for, then those that request most. Among the claims that get one, those that request less get the
// smaller ones (S6).
//
// Claims that differ only in what they request are assigned in one pass through the volumes that they get. Others that could have
// the same volumes are assigned by a matching, for which the k best volumes of each suffice for k claims: if one got a worse
// volume, the k-1 others would leave one of its k best free, and to take that instead would be better. More than 32 such claims
// are assigned in one pass for each sort. So the time is that of as many look-ups in the Index as there are claims, or of their
// square if they are few, and does not grow with the volumes there are.
//
// The error is an *AbsentError for a claim that does not exist, or an *InvalidError about a claim or class.
func PlanPod(request Request, node *corev1.Node) (Plan, error) {
	p, err := newPlanner(request)
	if err != nil {
		return Plan{}, err
	}
	p.summarizes, p.maxReasons = maxDetailed, math.MaxInt
	var plan Plan
	p.hold(func() { plan = p.on(node) })
	return plan, nil
}

// PlanPodOnNodes plans a pod on every node, as PlanPod does on one. Errors are those of PlanPod. The reasons leave out
// what became of the volumes, which those of PlanPod have, and all but 32 of a node's. Plans may share their lists, which must
// not be modified. The Index is kept from changing only for so short a time that the plans of different nodes may know different
// versions of it: Assumptions.Assume notices what is outdated.
//
// It takes about as long as to look at each node once: the pod's claims are looked up once, and so are the volumes that its
// selectors match and those that a node can use by its labels. Only volumes with a node affinity that requires no label to
// have one of at most 16 values are tried one by one for every node, until enough fit.
func PlanPodOnNodes(request Request, nodes []*corev1.Node) (Plans, error) {
	p, err := newPlanner(request)
	if err != nil {
		return Plans{}, err
	}
	plans := Plans{Pod: p.pod, Refused: p.refused, nodes: len(nodes)}
	if len(p.refused) > 0 {
		return plans, nil
	}
	plans.Plans, p.maxReasons = make([]Plan, len(nodes)), maxDetailed
	p.hold(p.preselect)
	for from, atOnce := 0, max(1, maxLookUps/max(1, len(p.unbound))); from < len(nodes); from += atOnce {
		p.hold(func() {
			for i := from; i < min(from+atOnce, len(nodes)); i++ {
				plans.Plans[i] = p.on(nodes[i])
			}
		})
	}
	return plans, nil
}

// maxDetailed is of how many of a pod's claims a plan among many says why they get nothing, and a single plan what became of the
// volumes (X9).
const maxDetailed = 32

// Request is a pod to plan, and what is known of the cluster. Nothing in it is modified.
type Request struct {
	Pod  *corev1.Pod
	View View
	// Index has the volumes to choose from; nil: there are none.
	Index *index.Index
	// Assumptions are what was decided for other pods and may not show in the objects yet; nil: nothing.
	Assumptions *Assumptions
}

// ObjectView looks up claims and volumes. A View is one, and so is every decision.View.
type ObjectView interface {
	// Volume looks up a volume by name.
	Volume(name string) (*corev1.PersistentVolume, decision.Source)
	// Claim looks up a claim.
	Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source)
	// Owners returns the claims that are Bound and name the volume, to which it belongs without a claimRef too (M2).
	Owners(volume string) []obj.Key
}

// View is what a plan may know of the cluster beside the volumes to choose from. Everything in it is read only. Snapshot
// implements it on plain lists. A View may be a CSINodeView as well.
type View interface {
	ObjectView
	// Class looks up a class; nil if it is not known.
	Class(name string) *storagev1.StorageClass
	// CSIDriver looks up a driver by the name of its provisioner; nil if there is none, or if the provisioner
	// is no CSI driver.
	CSIDriver(name string) *storagev1.CSIDriver
	// CSIStorageCapacities returns those whose storageClassName is the class, in any order.
	CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity
}

// Snapshot is a View on plain lists, in any order.
type Snapshot struct {
	decision.Snapshot
	CSIDrivers []*storagev1.CSIDriver
	Capacities []*storagev1.CSIStorageCapacity
	CSINodes   []*storagev1.CSINode
}

var (
	_ View        = Snapshot{}
	_ CSINodeView = Snapshot{}
)

// CSINode implements CSINodeView.
func (s Snapshot) CSINode(node string) *storagev1.CSINode {
	for _, found := range s.CSINodes {
		if found.Name == node {
			return found
		}
	}
	return nil
}

// CSIDriver implements View.
func (s Snapshot) CSIDriver(name string) *storagev1.CSIDriver {
	for _, driver := range s.CSIDrivers {
		if driver.Name == name {
			return driver
		}
	}
	return nil
}

// CSIStorageCapacities implements View.
func (s Snapshot) CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity {
	var ofClass []*storagev1.CSIStorageCapacity
	for _, capacity := range s.Capacities {
		if capacity.StorageClassName == class {
			ofClass = append(ofClass, capacity)
		}
	}
	return ofClass
}

// Index returns a new Index of the snapshot's volumes and claims.
func (s Snapshot) Index() *index.Index {
	index := &index.Index{}
	index.Load(s.Volumes...)
	for _, claim := range s.Claims {
		index.SetClaim(claim)
	}
	return index
}

// Plan is how a pod gets its volumes on one node, or why it cannot. It is data: nothing is done yet. See
// Assumptions.Assume and NextForPlan for that.
type Plan struct {
	Pod obj.Key
	// PodUID distinguishes the pod from its successor of the same name; "" if it is not stored yet.
	PodUID types.UID
	// Node is what was planned for; NextForPlan looks at its labels again, so that a newer version may take its
	// place.
	Node *corev1.Node
	// Bindings are the claims that get a volume that exists, and Provisions those for which one is to be provisioned
	// for this node, both in the order of the claims' names. Claims that are bound are in neither.
	Bindings   []index.Binding
	Provisions []Provision
	// Refused is why the pod must wait whatever the node; then there is no plan for any node (S1, S2).
	Refused []Reason
	// Reasons are why the pod cannot have its volumes on this node, for every claim (S9).
	Reasons []Reason

	nodeReasons nodeReasonSet
}

// Provision is a claim that a volume is to be provisioned for.
type Provision struct {
	Claim *corev1.PersistentVolumeClaim
	// Capacity is the storage with the most room that the node can use; nil if it is not known or not counted.
	Capacity *storagev1.CSIStorageCapacity
}

// Fits reports whether the pod can have its volumes on the node.
func (p Plan) Fits() bool { return len(p.Refused) == 0 && len(p.Reasons) == 0 }

// NodeReasons returns the reasons that kube-scheduler has, in its words and order: at most one for the claims that are
// bound, and one for the others, where Reasons has one for every claim (S9). They are those of PlanPod and PlanPodOnNodes; a
// Plan that was made by hand has none.
func (p Plan) NodeReasons() []NodeReason { return p.nodeReasons.list() }

// Plans are the plans of one pod for many nodes.
type Plans struct {
	Pod obj.Key
	// Plans has one for each node, in the order given.
	Plans []Plan
	// Refused is why the pod must wait whatever the node; then there is no plan for any (S1, S2).
	Refused []Reason
	nodes   int
}

// Fitting returns the plans of the nodes on which the pod can have its volumes, in their order.
func (p Plans) Fitting() []Plan {
	var fitting []Plan
	for _, plan := range p.Plans {
		if plan.Fits() {
			fitting = append(fitting, plan)
		}
	}
	return fitting
}

// Best returns the plan that fits with the highest score; false if no plan fits. Ties are broken by the name of the node.
// The Score of a Shape is one such function.
func (p Plans) Best(score func(Plan) int) (Plan, bool) {
	var best Plan
	highest := 0
	for _, plan := range p.Fitting() {
		scored := score(plan)
		if best.Node == nil || cmp.Or(-cmp.Compare(scored, highest), cmp.Compare(plan.Node.Name, best.Node.Name)) < 0 {
			best, highest = plan, scored
		}
	}
	return best, best.Node != nil
}

// String returns on how many nodes the pod can have its volumes and why not on the others, in the form and order of
// kube-scheduler: "0/5 nodes are available: 2 node(s) didn't find available persistent volumes to bind, 3 node(s)
// didn't match PersistentVolume's node affinity." A node with several reasons counts under each.
func (p Plans) String() string {
	line := strconv.Itoa(len(p.Fitting())) + "/" + strconv.Itoa(p.nodes) + " nodes are available"
	if reasons := p.reasons(); len(reasons) > 0 {
		line += ": " + strings.Join(reasons, ", ")
	}
	return line + "."
}

func (p Plans) reasons() []string {
	var refused []string
	for _, reason := range p.Refused {
		text := reason.String()
		if reason.Cause == CauseClaimUnbound {
			text = UnboundImmediate
		}
		if !slices.Contains(refused, text) {
			refused = append(refused, text)
		}
	}
	counts := map[NodeReason]int{}
	for _, plan := range p.Plans {
		for _, reason := range plan.NodeReasons() {
			counts[reason]++
		}
	}
	var counted []string
	for reason, count := range counts {
		counted = append(counted, strconv.Itoa(count)+" "+string(reason))
	}
	slices.Sort(counted)
	return append(refused, counted...)
}
