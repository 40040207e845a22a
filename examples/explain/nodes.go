package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/scheduling"
)

// nodeWait is why a pod cannot have its volumes on some nodes.
type nodeWait struct {
	Nodes []nodeName `json:"nodes"`
	Why   string     `json:"why"` // of the first
}

type nodeName string

func (n nodeName) String() string { return string(n) }

// String names some of the nodes.
func (n nodeWait) String() string {
	return "node " + n.Nodes[0].String() + others(n.Nodes[1:]) + ": " + n.Why
}

// placement returns on which nodes of the input the pod could have its volumes, and why not on the others. Nothing but
// volumes counts; free storage (CSIStorageCapacity) is not in the input. Without nodes it is empty.
func (c *cluster) placement(pod *corev1.Pod) (line string, waits []nodeWait) {
	if len(c.Nodes) == 0 {
		return "", nil
	}
	plans, err := scheduling.PlanPodOnNodes(c.podRequest(pod), c.Nodes)
	if err != nil {
		return err.Error(), nil
	}
	known := map[string]int{}
	for _, plan := range plans.Plans {
		if plan.Fits() {
			continue
		}
		why := reasonsText(plan.Reasons)
		at, found := known[why]
		if !found {
			at = len(waits)
			known[why], waits = at, append(waits, nodeWait{Why: c.whyNot(pod, plan.Node)})
		}
		waits[at].Nodes = append(waits[at].Nodes, nodeName(plan.Node.Name))
	}
	return plans.String(), waits
}

// whyNot returns the reasons against one node in full, with what is wrong with each volume.
func (c *cluster) whyNot(pod *corev1.Pod, node *corev1.Node) string {
	plan, err := scheduling.PlanPod(c.podRequest(pod), node)
	if err != nil {
		return err.Error()
	}
	return reasonsText(plan.Reasons)
}

func (c *cluster) podRequest(pod *corev1.Pod) scheduling.Request {
	return scheduling.Request{Pod: pod, View: c, Index: c.Index()}
}

func reasonsText(reasons []scheduling.Reason) string {
	said := make([]string, len(reasons))
	for i, reason := range reasons {
		said[i] = reason.String()
	}
	return strings.Join(said, "; ")
}
