package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/hooks"
)

// unsupported returns what of the request a new directory would silently lack; "" if nothing. A controller does not check
// these once a provisioner has answered.
func unsupported(request hooks.ProvisionRequest) string {
	claim := request.Claim.Spec
	switch {
	case claim.VolumeMode != nil && *claim.VolumeMode == corev1.PersistentVolumeBlock:
		return "spec.volumeMode is Block, and a directory is no block device"
	case claim.Selector != nil:
		return "spec.selector is set, and a new directory has no labels to choose it by"
	case claim.DataSource != nil || claim.DataSourceRef != nil:
		return "spec.dataSource is set, and a new directory is empty"
	case len(request.Class.MountOptions) > 0:
		return "the class has mountOptions, and a directory is not mounted"
	}
	return ""
}

// only returns the affinity to one node; nil for "", for then no node was chosen. The label has the node's name, unless
// somebody gave the node another host name.
func only(node string) *corev1.VolumeNodeAffinity {
	if node == "" {
		return nil
	}
	here := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{here}}},
	}}
}
