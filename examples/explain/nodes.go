package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
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

// placing is on which nodes of the input the pod could have its volumes, and why not on the others. It counts what
// the volumes need and nothing else; free storage (CSIStorageCapacity) is not in the input. Empty: there are no nodes.
func (w *world) placing(pod *corev1.Pod) (line string, waits []nodeWait) {
	if len(w.Nodes) == 0 {
		return "", nil
	}
	plans, err := binding.PlanPodOnNodes(w.podRequest(pod), w.Nodes)
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
			known[why], waits = at, append(waits, nodeWait{Why: w.whyNot(pod, plan.Node)})
		}
		waits[at].Nodes = append(waits[at].Nodes, nodeName(plan.Node.Name))
	}
	return plans.String(), waits
}

// whyNot tells of one node in full, with what became of each volume.
func (w *world) whyNot(pod *corev1.Pod, node *corev1.Node) string {
	plan, err := binding.PlanPod(w.podRequest(pod), node)
	if err != nil {
		return err.Error()
	}
	return reasonsText(plan.Reasons)
}

func (w *world) podRequest(pod *corev1.Pod) binding.PodRequest {
	return binding.PodRequest{Pod: pod, View: w, Index: w.Index()}
}

func reasonsText(reasons []binding.PodReason) string {
	said := make([]string, len(reasons))
	for i, reason := range reasons {
		said[i] = reason.String()
	}
	return strings.Join(said, "; ")
}
