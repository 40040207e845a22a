package extender

import (
	"context"
	"math"

	schedulerv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pvbind/pvbind/binding/scheduling"
)

// prioritize compares nodes by how well the pod's volumes there use what there is, from 0 to 10. A node on which it
// cannot have them has 0.
func (s *Server) prioritize(_ context.Context, args *schedulerv1.ExtenderArgs) (schedulerv1.HostPriorityList, error) {
	if err := checkArgs(args); err != nil {
		return nil, err
	}
	nodes, unknown := s.requested(args)
	plans, _ := scheduling.PlanPodOnNodes(s.Cluster.Request(args.Pod), nodes) // filter has reported errors
	priorities := schedulerv1.HostPriorityList{}
	shape := scheduling.PackingShape()
	for i, node := range nodes {
		priority := schedulerv1.HostPriority{Host: node.Name}
		if i < len(plans.Plans) && plans.Plans[i].Fits() {
			priority.Score = scaled(shape.Score(plans.Plans[i]))
		}
		priorities = append(priorities, priority)
	}
	for _, name := range unknown {
		priorities = append(priorities, schedulerv1.HostPriority{Host: name})
	}
	return priorities, nil
}

func scaled(score int) int64 {
	return int64(math.Round(float64(score) / scheduling.MaxScore * float64(schedulerv1.MaxExtenderPriority)))
}
