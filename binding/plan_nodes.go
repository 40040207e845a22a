package binding

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
)

// PodPlans are the plans of one pod for many nodes. String is kube-scheduler's line.
type PodPlans struct {
	Pod obj.Key
	// Plans has one for each node, in the order given; none if the pod is refused.
	Plans []PodPlan
	// Refused is why the pod must wait whatever the node (S1, S2).
	Refused []PodReason
	nodes   int
}

// PlanPodOnNodes is PlanPod for every node, at about the cost of looking at each node once: the pod's claims are
// looked up once, and so are the volumes that its selectors match and those that a node can use by its labels. Only
// volumes with a node affinity that asks for no label to have one of at most 16 values are tried one by one for every node,
// until enough fit. Errors are those of PlanPod.
//
// Its reasons do not tell what became of each volume, as those of PlanPod do. The Index can be read but not
// changed meanwhile.
func PlanPodOnNodes(request PodRequest, nodes []*corev1.Node) (PodPlans, error) {
	d, err := demandOf(request)
	if err != nil {
		return PodPlans{}, err
	}
	plans := PodPlans{Pod: d.pod, Refused: d.refused, nodes: len(nodes)}
	if len(d.refused) > 0 {
		return plans, nil
	}
	plans.Plans = make([]PodPlan, len(nodes))
	request.index().Read(func(index index.Reader) {
		p := newPlanner(d, index)
		for _, open := range p.open {
			open.Preselect()
		}
		for i, node := range nodes {
			plans.Plans[i] = p.on(node)
		}
	})
	return plans, nil
}

// Fitting are the plans of the nodes on which the pod can have its volumes, in their order.
func (p PodPlans) Fitting() []PodPlan {
	var fitting []PodPlan
	for _, plan := range p.Plans {
		if plan.Fits() {
			fitting = append(fitting, plan)
		}
	}
	return fitting
}

// Best is the plan that fits with the highest score, of equals that of the first node by name; false if no plan
// fits. Score is one such function.
func (p PodPlans) Best(score func(PodPlan) int) (PodPlan, bool) {
	var best PodPlan
	highest := 0
	for _, plan := range p.Fitting() {
		got := score(plan)
		if best.Node == nil || cmp.Or(-cmp.Compare(got, highest), cmp.Compare(plan.Node.Name, best.Node.Name)) < 0 {
			best, highest = plan, got
		}
	}
	return best, best.Node != nil
}

// String says on how many nodes the pod can have its volumes and why not on the others, in the form and order of
// kube-scheduler: "0/5 nodes are available: 2 node(s) didn't find available persistent volumes to bind, 3 node(s)
// didn't match PersistentVolume's node affinity." A node with several reasons counts under each.
func (p PodPlans) String() string {
	fitting := 0
	for i := range p.Plans {
		if p.Plans[i].Fits() {
			fitting++
		}
	}
	line := strconv.Itoa(fitting) + "/" + strconv.Itoa(p.nodes) + " nodes are available"
	said := p.causes()
	if len(said) == 0 {
		return line + "."
	}
	return line + ": " + strings.Join(said, ", ") + "."
}

func (p PodPlans) causes() []string {
	var said []string
	for _, reason := range p.Refused {
		text := reason.String()
		if reason.Cause == CauseClaimUnbound {
			text = UnboundImmediate
		}
		if !slices.Contains(said, text) {
			said = append(said, text)
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
	return append(said, counted...)
}
