package schedulerplugin

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/scheduling"
)

// Reserve assumes the plan for the node that was chosen, so that no other pod gets the same volumes. Nothing is written. It may be
// called again after Unreserve, as the pod-group cycle does.
func (p *Plugin) Reserve(_ context.Context, state framework.CycleState, pod *corev1.Pod, node string) *framework.Status {
	s := stateOf(state)
	if s == nil {
		return nil
	}
	s.revert()
	plan, known := s.find(node)
	if !known {
		return framework.AsStatus(fmt.Errorf("the volumes of the pod were not planned on node %s", node))
	}
	plan, assumption, status := p.assume(plan, pod)
	if status == nil {
		s.reserve(plan, assumption)
	}
	return status
}

// errTaken is returned where the volumes of a plan were taken and there is no other: what took them has happened, so that the
// scheduler has to try again of itself.
var errTaken = errors.New("the volumes planned for the pod were taken, and there are no others for it on the node")

// assume returns the plan that it assumed: the one given or, if that was overtaken, another one for the node.
func (p *Plugin) assume(plan scheduling.Plan, pod *corev1.Pod) (scheduling.Plan, *scheduling.Assumption, *framework.Status) {
	if plan.Fits() && len(plan.Bindings)+len(plan.Provisions) == 0 {
		return plan, nil, nil
	}
	assumption, ok := p.volumes.Assume(plan)
	if !ok {
		var err error
		if plan, err = scheduling.PlanPod(p.volumes.Request(pod), plan.Node); err != nil {
			return plan, nil, framework.AsStatus(err)
		}
		if assumption, ok = p.volumes.Assume(plan); !ok {
			return plan, nil, framework.AsStatus(errTaken)
		}
	}
	return plan, assumption, nil
}

// Unreserve gives up what Reserve has assumed, if anything. What PreBind has written stays: the next plan takes that up.
func (p *Plugin) Unreserve(_ context.Context, state framework.CycleState, _ *corev1.Pod, _ string) {
	if s := stateOf(state); s != nil {
		s.revert()
	}
}

// PreBindPreFlight skips a pod whose claims are bound.
func (p *Plugin) PreBindPreFlight(_ context.Context, state framework.CycleState, _ *corev1.Pod, _ string) (*framework.PreBindPreFlightResult, *framework.Status) {
	if s := stateOf(state); s == nil || s.assumed() == nil {
		return p.preFlight, p.skip
	}
	return p.preFlight, nil
}

// PreBind gets the pod its volumes: it makes the writes, and waits until all claims are bound.
func (p *Plugin) PreBind(ctx context.Context, state framework.CycleState, pod *corev1.Pod, _ string) *framework.Status {
	s := stateOf(state)
	if s == nil {
		return nil
	}
	assumption := s.assumed()
	if assumption == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return framework.AsStatus(p.volumes.BindVolumes(ctx, pod, assumption.Plan().Node, assumption))
}
