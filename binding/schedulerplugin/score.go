package schedulerplugin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-scheduler/framework"
)

// PreScore skips what gives every node the same score: a pod without claims, and a plugin without a shape.
func (p *Plugin) PreScore(_ context.Context, state framework.CycleState, _ *corev1.Pod, _ []framework.NodeInfo) *framework.Status {
	if len(p.shape) == 0 || stateOf(state) == nil {
		return p.skip
	}
	return nil
}

// Score returns how well the plan for a node uses its storage.
func (p *Plugin) Score(_ context.Context, state framework.CycleState, _ *corev1.Pod, info framework.NodeInfo) (int64, *framework.Status) {
	if s := stateOf(state); s != nil {
		if plan, known := s.find(info.Node().Name); known {
			return int64(p.shape.Score(plan)), nil
		}
	}
	return 0, nil
}

// ScoreExtensions returns none: scores are from 0 to 100 as they are.
func (p *Plugin) ScoreExtensions() framework.ScoreExtensions { return nil }
