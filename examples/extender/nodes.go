package extender

import (
	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pvbind/pvbind/binding"
)

// asked are the nodes that a scheduler asks about: those it sends, or those of the names it sends. Names that are not
// known are listed: the scheduler may have heard of a node first.
func (s *Server) asked(args *schedulerv1.ExtenderArgs) (nodes []*corev1.Node, unknown []string) {
	if args.NodeNames == nil {
		for i := range args.Nodes.Items {
			nodes = append(nodes, &args.Nodes.Items[i])
		}
		return nodes, nil
	}
	for _, name := range *args.NodeNames {
		if node, err := s.Cluster.nodes.Get(name); err == nil {
			nodes = append(nodes, node)
		} else {
			unknown = append(unknown, name)
		}
	}
	return nodes, unknown
}

func (s *Server) request(pod *corev1.Pod) binding.PodRequest {
	return binding.PodRequest{Pod: pod, View: s.Cluster, Index: &s.Cluster.index, Assumed: &s.Cluster.assumed}
}
