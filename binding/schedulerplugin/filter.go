package schedulerplugin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/scheduling"
)

// PreFilter plans the pod on all nodes. It skips a pod without claims.
func (p *Plugin) PreFilter(ctx context.Context, state framework.CycleState, pod *corev1.Pod, infos []framework.NodeInfo) (*framework.PreFilterResult, *framework.Status) {
	if !namesClaims(pod) {
		return nil, p.skip
	}
	if status := p.sync(ctx); status != nil {
		return nil, status
	}
	nodes := nodesOf(infos)
	request := p.volumes.Request(pod)
	plans, err := scheduling.PlanPodOnNodes(request, nodes)
	if err != nil || len(plans.Refused) > 0 {
		return nil, refused(pod, request.View, err)
	}
	s := &podState{}
	s.planned.Store(&planned{p.placesOf(nodes), plans.Plans})
	state.Write(stateKey, s)
	return nil, nil
}

// PreFilterExtensions returns none: what other pods are on a node does not change where volumes can be used.
func (p *Plugin) PreFilterExtensions() framework.PreFilterExtensions { return nil }

// Filter rejects a node on which the pod cannot have its volumes, and says why. No preemption would help.
func (p *Plugin) Filter(_ context.Context, state framework.CycleState, pod *corev1.Pod, info framework.NodeInfo) *framework.Status {
	s := stateOf(state)
	if s == nil {
		return nil
	}
	plan, err := p.planOn(s, pod, info.Node())
	if err != nil {
		return framework.AsStatus(err)
	}
	return statusOf(plan)
}

// planOn returns the plan for a node. One that PreFilter has not seen, or not in this version, is planned for now.
func (p *Plugin) planOn(s *podState, pod *corev1.Pod, node *corev1.Node) (scheduling.Plan, error) {
	if plan, known := s.find(node.Name); known && plan.Node == node {
		return plan, nil
	}
	plan, err := scheduling.PlanPod(p.volumes.Request(pod), node)
	if err == nil {
		s.add(plan)
	}
	return plan, err
}

// statusOf returns why a plan does not fit; nil if it does.
func statusOf(plan scheduling.Plan) *framework.Status {
	if plan.Fits() {
		return nil
	}
	status := framework.NewStatus(framework.UnschedulableAndUnresolvable)
	if len(plan.Refused) > 0 {
		status.AppendReason(scheduling.UnboundImmediate)
	}
	for _, reason := range plan.NodeReasons() {
		status.AppendReason(string(reason))
	}
	return status
}

func namesClaims(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if source := &pod.Spec.Volumes[i]; source.PersistentVolumeClaim != nil || source.Ephemeral != nil {
			return true
		}
	}
	return false
}

func nodesOf(infos []framework.NodeInfo) []*corev1.Node {
	nodes := make([]*corev1.Node, 0, len(infos))
	for _, info := range infos {
		if node := info.Node(); node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// placesOf returns where each of the nodes is, which is looked up anew only when nodes come and go.
func (p *Plugin) placesOf(nodes []*corev1.Node) *places {
	known := p.places.Load()
	if !known.are(nodes) {
		known = newPlaces(nodes)
		p.places.Store(known)
	}
	return known
}
