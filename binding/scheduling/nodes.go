package scheduling

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/obj"
)

// Plans are the plans of one pod for many nodes.
type Plans struct {
	Pod obj.Key
	// Plans has one for each node, in the order given.
	Plans []Plan
	// Refused is why the pod must wait whatever the node; then there is no plan for any (S1, S2).
	Refused []Reason
	nodes   int
}

// PlanPodOnNodes plans a pod on every node, as PlanPod does on one. Errors are those of PlanPod. The reasons leave out
// what became of the volumes, which those of PlanPod have. The Index can be read but not changed meanwhile.
//
// It takes about as long as to look at each node once: the pod's claims are looked up once, and so are the volumes that its
// selectors match and those that a node can use by its labels. Only volumes with a node affinity that requires no label to
// have one of at most 16 values are tried one by one for every node, until enough fit.
func PlanPodOnNodes(request Request, nodes []*corev1.Node) (Plans, error) {
	claims, err := readClaims(request)
	if err != nil {
		return Plans{}, err
	}
	plans := Plans{Pod: claims.pod, Refused: claims.refused, nodes: len(nodes)}
	if len(claims.refused) > 0 {
		return plans, nil
	}
	plans.Plans = make([]Plan, len(nodes))
	request.index().Read(func(index index.Reader) {
		p := newPlanner(claims, index)
		for _, claim := range p.unbound {
			claim.Preselect()
		}
		for i, node := range nodes {
			plans.Plans[i] = p.on(node)
		}
	})
	return plans, nil
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
// Score is one such function.
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

// MaxScore is the best score that Score returns.
const MaxScore = 100

// Score returns from 0 to MaxScore how well a plan that fits uses what there is, so that nodes can be compared: the mean over
// the claims that get something. A claim that gets a volume scores the part of the volume's capacity that it requests, so
// that the least is wasted. A claim that is provisioned for scores the part of the storage that is still free after all that
// the plan takes from it, so that nodes fill evenly; 0 if it is not known how much there is. A plan with nothing to do scores
// 0, as all plans of its pod do.
func Score(plan Plan) int {
	claims := len(plan.Bindings) + len(plan.Provisions)
	if claims == 0 {
		return 0
	}
	total := 0.0
	for _, b := range plan.Bindings {
		total += share(requestOf(b.Claim), b.Volume.Spec.Capacity[corev1.ResourceStorage])
	}
	for _, p := range plan.Provisions {
		if p.Capacity != nil {
			total += 1 - share(plan.takenFrom(p), freeIn(p.Capacity))
		}
	}
	return int(math.Round(MaxScore * total / float64(claims)))
}

// takenFrom returns what all claims of the plan together take from the storage of one.
func (p Plan) takenFrom(from Provision) resource.Quantity {
	var taken resource.Quantity
	for _, other := range p.Provisions {
		if other.Capacity == from.Capacity {
			taken.Add(requestOf(other.Claim))
		}
	}
	return taken
}

func requestOf(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// share returns the part of the whole, from 0 to 1; all of it if there is nothing.
func share(part, whole resource.Quantity) float64 {
	if whole.Sign() <= 0 || quantities.Compare(part, whole) >= 0 {
		return 1
	}
	return max(0, part.AsApproximateFloat64()/whole.AsApproximateFloat64())
}
