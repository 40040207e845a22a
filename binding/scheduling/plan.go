package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
)

// Request is a pod to plan, and what is known of the cluster. Nothing in it is modified.
type Request struct {
	Pod  *corev1.Pod
	View View
	// Index has the volumes to choose from; nil: there are none.
	Index *index.Index
	// Assumptions are what was decided for other pods and may not show in the objects yet; nil: nothing.
	Assumptions *Assumptions
}

// Plan is how a pod gets its volumes on one node, or why it cannot. It is data: nothing is done yet. See
// Assumptions.Assume and NextForPlan for that.
type Plan struct {
	Pod obj.Key
	// Node is what was planned for; NextForPlan looks at its labels again, so that a newer version may take its
	// place.
	Node *corev1.Node
	// Bindings are the claims that get a volume that exists, and Provisions those for which one is to be provisioned
	// for this node, both in the order of the claims' names. Claims that are bound are in neither.
	Bindings   []index.Binding
	Provisions []Provision
	// Refused is why the pod must wait whatever the node; then there is no plan for any node (S1, S2).
	Refused []Reason
	// Reasons are why the pod cannot have its volumes on this node (S9).
	Reasons []Reason
}

// Provision is a claim that a volume is to be provisioned for.
type Provision struct {
	Claim *corev1.PersistentVolumeClaim
	// Capacity is the storage with the most room that the node can use; nil if it is not known or not counted.
	Capacity *storagev1.CSIStorageCapacity
}

// Fits reports whether the pod can have its volumes on the node.
func (p Plan) Fits() bool { return len(p.Refused) == 0 && len(p.Reasons) == 0 }

// NodeReasons returns the reasons in kube-scheduler's words and order, each once (S9).
func (p Plan) NodeReasons() []NodeReason {
	var found []NodeReason
	for _, reason := range nodeReasons {
		if slices.ContainsFunc(p.Reasons, func(r Reason) bool { return r.Cause.NodeReason() == reason }) {
			found = append(found, reason)
		}
	}
	return found
}

// PlanPod plans the volumes of all claims of a pod on one node.
//
// All claims are assigned together: if there is any way to give each claim a volume that fits, or to have one provisioned,
// one is found. Among these the plan has the most claims with a volume that exists, and then the least total capacity.
// Among volumes of one capacity those with the fewest access modes come first; further ties are broken by name. A claim
// that a volume is pre-bound to gets that and no other (M13). If there are fewer volumes than claims, those get one that
// cannot be provisioned for, then those that request most (S6).
//
// Why the k best volumes of each claim suffice for k claims: if one got a worse volume, the k-1 others would
// leave one of its k best free, and to take that instead would be better. So the time is that of k look-ups in
// the Index, and does not grow with the volumes there are.
//
// The error is an *AbsentError for a claim that does not exist, or an *InvalidError about a claim or class.
func PlanPod(request Request, node *corev1.Node) (Plan, error) {
	claims, err := readClaims(request)
	if err != nil {
		return Plan{}, err
	}
	var plan Plan
	request.index().Read(func(index index.Reader) {
		p := newPlanner(claims, index)
		plan = p.on(node)
		for i := range plan.Reasons {
			p.explain(&plan.Reasons[i])
		}
	})
	return plan, nil
}

func (r Request) index() *index.Index {
	if r.Index == nil {
		return &index.Index{}
	}
	return r.Index
}
