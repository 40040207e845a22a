package bindingtest

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// nodes looks up nodes; nil if there is none of the name.
type nodes interface {
	node(name string) *corev1.Node
	csiNode(name string) *storagev1.CSINode
}

// topologyOf returns the labels of the nodes from which storage can be used that a driver makes for a node: those whose keys the
// CSINode has for the driver, or else the zone, or else the host name. Nil: all nodes, because none was requested, or because the
// driver has no topology.
func topologyOf(driver, name string, nodes nodes) map[string]string {
	if name == "" {
		return nil
	}
	node := nodes.node(name)
	if node == nil {
		return map[string]string{corev1.LabelHostname: name}
	}
	if csiNode := nodes.csiNode(name); csiNode != nil {
		for _, running := range csiNode.Spec.Drivers {
			if running.Name == driver {
				return segment(node, running.TopologyKeys...)
			}
		}
	}
	if zone := segment(node, corev1.LabelTopologyZone); len(zone) > 0 {
		return zone
	}
	return map[string]string{corev1.LabelHostname: cmp.Or(node.Labels[corev1.LabelHostname], name)}
}

// segment returns those labels of the node.
func segment(node *corev1.Node, keys ...string) map[string]string {
	found := map[string]string{}
	for _, key := range keys {
		if value, has := node.Labels[key]; has {
			found[key] = value
		}
	}
	return found
}

// affinityTo returns the affinity to nodes with these labels; nil for none.
func affinityTo(labels map[string]string) *corev1.VolumeNodeAffinity {
	if len(labels) == 0 {
		return nil
	}
	var term corev1.NodeSelectorTerm
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		term.MatchExpressions = append(term.MatchExpressions,
			corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{labels[key]}})
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}
}
