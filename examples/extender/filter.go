package extender

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pvbind/pvbind/binding/scheduling"
)

const unknownNode = "the node is not known to the extender"

// filter returns the nodes on which the pod can have its volumes, and of the others why not, in kube-scheduler's words.
// Preempting other pods would help with none of these reasons, so they count as unresolvable. That a node is not known
// yet resolves itself.
func (s *Server) filter(_ context.Context, args *schedulerv1.ExtenderArgs) (*schedulerv1.ExtenderFilterResult, error) {
	if err := checkArgs(args); err != nil {
		return nil, err
	}
	nodes, unknown := s.requested(args)
	plans, err := scheduling.PlanPodOnNodes(s.Cluster.Request(args.Pod), nodes)
	result := &schedulerv1.ExtenderFilterResult{FailedNodes: schedulerv1.FailedNodesMap{}, FailedAndUnresolvableNodes: schedulerv1.FailedNodesMap{}}
	for _, name := range unknown {
		result.FailedNodes[name] = unknownNode
	}
	var fitting []*corev1.Node
	everywhere := whyNowhere(plans, err)
	for i, node := range nodes {
		switch {
		case everywhere != "":
			result.FailedAndUnresolvableNodes[node.Name] = everywhere
		case plans.Plans[i].Fits():
			fitting = append(fitting, node)
		default:
			result.FailedAndUnresolvableNodes[node.Name] = joined(plans.Plans[i].NodeReasons())
		}
	}
	setNodes(result, args, fitting)
	return result, nil
}

// setNodes returns the nodes in the form of the request.
func setNodes(result *schedulerv1.ExtenderFilterResult, args *schedulerv1.ExtenderArgs, fitting []*corev1.Node) {
	if args.NodeNames == nil {
		result.Nodes = &corev1.NodeList{Items: []corev1.Node{}}
		for _, node := range fitting {
			result.Nodes.Items = append(result.Nodes.Items, *node)
		}
		return
	}
	names := []string{}
	for _, node := range fitting {
		names = append(names, node.Name)
	}
	result.NodeNames = &names
}

// whyNowhere returns why the pod can be on no node; "" if that depends on the node. Such a pod is not an error, for a
// scheduler would try it again at once, but unschedulable until something changes.
func whyNowhere(plans scheduling.Plans, err error) string {
	var absent *scheduling.AbsentError
	switch {
	case errors.As(err, &absent):
		return `persistentvolumeclaim "` + absent.Claim.Name + `" not found`
	case err != nil:
		return err.Error()
	case len(plans.Refused) == 0:
		return ""
	case plans.Refused[0].Cause == scheduling.CauseClaimUnbound:
		return scheduling.UnboundImmediate
	}
	return plans.Refused[0].String()
}

func joined(reasons []scheduling.NodeReason) string {
	texts := make([]string, len(reasons))
	for i, reason := range reasons {
		texts[i] = string(reason)
	}
	return strings.Join(texts, ", ")
}
