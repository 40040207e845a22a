package bindingtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/reclaim"
)

// scheduler is what a settlement knows of the pods that it places, from one round to the next.
type scheduler struct {
	chosen   map[obj.Key]string // the node that was chosen for a pod, so that the next round does not choose another
	selected map[obj.Key]int    // how often a node was selected for a claim

	// Of this round:
	assumed scheduling.Assumptions
	nodes   []*corev1.Node
	pods    map[string]int       // on each node
	users   map[obj.Key][]string // the pods on nodes that use each claim
	waiting []UnplacedPod
	refused map[obj.Key]string // why a claim cannot have a volume on the node of its pod, where the test chose that
}

// placePods makes an attempt for each pod that names claims: the writes of its plan or, once all its claims are bound, to place
// it. Those whose node is set come first.
func (s *settlement) placePods(ctx context.Context) {
	s.pods = scheduler{chosen: s.pods.chosen, selected: s.pods.selected, nodes: all[*corev1.Node](s.world),
		pods: map[string]int{}, users: map[obj.Key][]string{}, refused: map[obj.Key]string{}}
	var toPlace []*corev1.Pod
	for _, pod := range all[*corev1.Pod](s.world) {
		switch {
		case ended(pod) || len(reclaim.ClaimNames(pod)) == 0:
		case pod.Spec.NodeName != "":
			s.pods.add(pod, pod.Spec.NodeName)
			s.serveOnNode(ctx, pod)
		case pod.DeletionTimestamp == nil && s.options.Pods != PodsLeft:
			toPlace = append(toPlace, pod)
		}
	}
	for _, pod := range toPlace {
		if why := s.place(ctx, pod); why != "" {
			s.pods.waiting = append(s.pods.waiting, UnplacedPod{obj.KeyOfPod(pod), why})
		}
	}
}

// ended reports whether the pod uses its claims no more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (p *scheduler) add(pod *corev1.Pod, node string) {
	p.pods[node]++
	for _, name := range reclaim.ClaimNames(pod) {
		key := obj.ClaimKey(pod.Namespace, name)
		p.users[key] = append(p.users[key], pod.Name)
	}
}

// serveOnNode has the claims of a pod bound on the node that a test has chosen. There may be no such node.
func (s *settlement) serveOnNode(ctx context.Context, pod *corev1.Pod) {
	node := s.world.node(pod.Spec.NodeName)
	if node == nil {
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}
		metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelHostname, node.Name)
	}
	plan, err := scheduling.PlanPod(s.request(pod), node)
	if err != nil {
		return // it is about a claim, and said there
	}
	for _, reason := range plan.Reasons {
		s.pods.refused[reason.Claim] = fmt.Sprintf("on node %s, which %s has: %s", node.Name, obj.KeyOfPod(pod), reason)
	}
	if plan.Fits() {
		s.carryOut(ctx, plan)
	}
}

func (s *settlement) request(pod *corev1.Pod) scheduling.Request {
	return scheduling.Request{Pod: pod, View: s.world, Index: &s.world.index, Assumptions: &s.pods.assumed}
}

// place makes an attempt for a pod without a node, and returns why it still has none.
func (s *settlement) place(ctx context.Context, pod *corev1.Pod) (why string) {
	nodes, why := s.pods.nodesFor(pod)
	if why != "" {
		return why
	}
	plans, err := scheduling.PlanPodOnNodes(s.request(pod), nodes)
	if err != nil {
		return strings.TrimPrefix(err.Error(), obj.KeyOfPod(pod).String()+": ")
	}
	plan, fits := s.pods.choose(plans)
	if !fits {
		return s.whyNowhere(pod, plans, nodes)
	}
	if why := s.pods.excluded(pod, s.world); why != "" {
		return why
	}
	s.pods.chosen[plan.Pod] = plan.Node.Name
	s.pods.add(pod, plan.Node.Name)
	if why := s.carryOut(ctx, plan); why != "" {
		return fmt.Sprintf("node %s is chosen; %s", plan.Node.Name, why)
	}
	if err := s.api.BindPod(ctx, pod, plan.Node.Name); err != nil {
		s.failed(plan.Pod, err)
		return fmt.Sprintf("node %s is chosen, and the server refuses: %v", plan.Node.Name, err)
	}
	return ""
}

// nodesFor returns the nodes that are considered for a pod, or why there is none.
func (p *scheduler) nodesFor(pod *corev1.Pod) (nodes []*corev1.Node, why string) {
	if gates := pod.Spec.SchedulingGates; len(gates) > 0 {
		return nil, fmt.Sprintf("it is not placed before its scheduling gate %q is removed", gates[0].Name)
	}
	if len(p.nodes) == 0 {
		return nil, "there are no nodes: create one, or set the pod's nodeName"
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, node := range p.nodes {
		if matches, err := affinity.Match(node); err == nil && matches && !node.Spec.Unschedulable {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return nil, fmt.Sprintf("none of %d node(s) is schedulable and matches the pod's node selector and affinity", len(p.nodes))
	}
	return nodes, ""
}

// choose returns the plan for the node that was chosen before, if it still fits, or else for the best: the one that uses most of
// what it takes from, then by the fewest pods, then by name.
func (p *scheduler) choose(plans scheduling.Plans) (plan scheduling.Plan, fits bool) {
	fitting := plans.Fitting()
	if len(fitting) == 0 {
		return plan, false
	}
	chosen := p.chosen[plans.Pod]
	if i := slices.IndexFunc(fitting, func(plan scheduling.Plan) bool { return plan.Node.Name == chosen }); i >= 0 {
		return fitting[i], true
	}
	score := scheduling.PackingShape().Score
	return slices.MinFunc(fitting, func(a, b scheduling.Plan) int {
		return cmp.Or(score(b)-score(a), p.pods[a.Node.Name]-p.pods[b.Node.Name], cmp.Compare(a.Node.Name, b.Node.Name))
	}), true
}

// whyNowhere returns the scheduler's line, and why the volumes do not fit on the first of the nodes.
func (s *settlement) whyNowhere(pod *corev1.Pod, plans scheduling.Plans, nodes []*corev1.Node) string {
	line := plans.String()
	plan, err := scheduling.PlanPod(s.request(pod), nodes[0])
	if err != nil {
		return line
	}
	for _, reason := range plan.Refused {
		if !strings.Contains(line, reason.String()) {
			line += " " + reason.String()
		}
	}
	separator := " On " + plan.Node.Name + ": "
	for _, reason := range plan.Reasons {
		line += separator + reason.String()
		separator = "; "
	}
	return line
}

// excluded returns why the pod has to wait for others that use its claims.
func (p *scheduler) excluded(pod *corev1.Pod, world *world) string {
	for _, name := range reclaim.ClaimNames(pod) {
		key := obj.ClaimKey(pod.Namespace, name)
		claim, _ := world.Claim(pod.Namespace, name)
		if claim == nil {
			continue
		}
		if modes, err := accessmode.Of(claim.Spec.AccessModes...); err == nil && !modes.AllowsPod(pod.Name, p.users[key]...) {
			return fmt.Sprintf("%s is for one pod at a time, and pod %s uses it", key, p.users[key][0])
		}
	}
	return ""
}

// carryOut makes the writes of a plan, up to the step that is none, and returns what the plan waits for.
func (s *settlement) carryOut(ctx context.Context, plan scheduling.Plan) (why string) {
	if _, ok := s.pods.assumed.Assume(&s.world.index, plan); !ok { // until the round ends no other pod may get the same
		s.again = s.mayTryAgain(plan.Pod) || s.again
		return "its volumes changed while it was planned"
	}
	for {
		step, err := scheduling.NextForPlan(plan, s.world)
		if err != nil {
			return err.Error() // about a claim that is malformed
		}
		switch step.Kind {
		case decision.UpdateVolume:
			err = noted(s, s.api.UpdateVolume, ctx, step.Volume)
		case decision.UpdateClaim:
			key := obj.KeyOf(step.Claim)
			if s.pods.selected[key] > retries { // each time somebody has removed it again, because provisioning failed
				return fmt.Sprintf("provisioning for %s has failed %d times", key, s.pods.selected[key])
			}
			s.pods.selected[key]++
			err = noted(s, s.api.UpdateClaim, ctx, step.Claim)
		case decision.Nothing:
			return ""
		default:
			return step.Why
		}
		if err != nil {
			s.failed(plan.Pod, err)
			return err.Error()
		}
	}
}

// noted makes a write, and takes what the server answers.
func noted[T obj.Object](s *settlement, write func(context.Context, T) (T, error), ctx context.Context, object T) error {
	stored, err := write(ctx, object)
	if err == nil {
		s.note(stored)
	}
	return err
}
