package extender

import (
	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/extender/v1"
)

// requested returns the nodes of a request: those that it has, or those of its names. Names that are not in the cache are
// listed: the scheduler may have seen a node first.
func (s *Server) requested(args *schedulerv1.ExtenderArgs) (nodes []*corev1.Node, unknown []string) {
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
