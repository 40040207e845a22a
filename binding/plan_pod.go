package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
)

// PodRequest asks where a pod can have the volumes of its claims. Nothing in it is modified.
type PodRequest struct {
	Pod  *corev1.Pod
	View PodView
	// Index has the volumes to choose from; nil: there are none.
	Index *index.Index
	// Assumed is what was decided for other pods and may not show in the objects yet; nil: nothing.
	Assumed *Assumptions
}

// PodPlan is how a pod gets its volumes on one node, or why it cannot. It is data: nothing is done yet. See
// Assumptions.Assume and NextForPlan for that.
type PodPlan struct {
	Pod obj.Key
	// Node is what was planned for; NextForPlan looks at its labels again, so that a newer version may take its
	// place.
	Node *corev1.Node
	// Bindings are the claims that get a volume that exists, and Provisions those for which one is to be made
	// for this node, both in the order of the claims' names. Claims that are bound are in neither.
	Bindings   []index.Binding
	Provisions []PodProvision
	// Refused is why the pod must wait whatever the node (S1, S2); then there is no plan for any node.
	Refused []PodReason
	// Reasons are why the pod cannot have its volumes on this node (S9).
	Reasons []PodReason
}

// PodProvision is a claim that a volume is to be made for.
type PodProvision struct {
	Claim *corev1.PersistentVolumeClaim
	// Capacity is the storage with the most room that the node can use; nil if it is not known or not counted.
	Capacity *storagev1.CSIStorageCapacity
}

// Fits reports whether the pod can have its volumes on the node.
func (p PodPlan) Fits() bool { return len(p.Refused) == 0 && len(p.Reasons) == 0 }

// NodeReasons are the reasons in kube-scheduler's words and order, each once (S9).
func (p PodPlan) NodeReasons() []NodeReason {
	var said []NodeReason
	for _, reason := range nodeReasons {
		if slices.ContainsFunc(p.Reasons, func(r PodReason) bool { return r.Cause.NodeReason() == reason }) {
			said = append(said, reason)
		}
	}
	return said
}

// PlanPod plans the volumes of all claims of a pod on one node (S1 to S9).
//
// All claims are assigned together (S6): if there is any way to give each claim a volume that fits, or to have
// one made, one is found. Among these the plan has the most claims with a volume that exists, and then the
// least total capacity. Volumes of one capacity are told apart by access modes, the fewest first, then by name.
// A claim that a volume is set aside for gets that and no other (M13). If there are fewer volumes than claims,
// those get one that cannot have one made, then those that ask for most.
//
// Why the k best volumes of each claim suffice for k claims: if one got a worse volume, the k-1 others would
// leave one of its k best free, and to take that instead would be better. So the time is that of k look-ups in
// the Index, and does not grow with the volumes there are.
//
// An error is an *AbsentError, a claim that does not exist, or an *InvalidError about a claim or class.
func PlanPod(request PodRequest, node *corev1.Node) (PodPlan, error) {
	d, err := demandOf(request)
	if err != nil {
		return PodPlan{}, err
	}
	var plan PodPlan
	request.index().Read(func(index index.Reader) {
		p := newPlanner(d, index)
		plan = p.on(node)
		for i := range plan.Reasons {
			p.explain(&plan.Reasons[i])
		}
	})
	return plan, nil
}

func (r PodRequest) index() *index.Index {
	if r.Index == nil {
		return &index.Index{}
	}
	return r.Index
}
