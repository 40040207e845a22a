package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
)

// turn is a pod whose turn it is, and what it is placed with.
type turn struct {
	binding.PodRequest
	nodes []*corev1.Node
	users users
}

// notNow is why no node is looked for; "" if one is.
func (t turn) notNow() string {
	if gates := t.Pod.Spec.SchedulingGates; len(gates) > 0 {
		return "it is not to be placed before its scheduling gate " + gates[0].Name + " is removed"
	}
	if len(t.nodes) == 0 {
		return "there are no nodes to place it on"
	}
	return ""
}

// whyNowhere is the scheduler's line, and then what it leaves open: which claim it is about, or on the first of the nodes
// what became of the volumes.
func (t turn) whyNowhere(plans binding.PodPlans) string {
	line := plans.String()
	plan, err := binding.PlanPod(t.PodRequest, t.nodes[0])
	if err != nil {
		return line
	}
	for _, reason := range plan.Refused {
		if !strings.Contains(line, reason.String()) {
			line += " " + reason.String()
		}
	}
	said := " On " + plan.Node.Name + ": "
	for _, reason := range plan.Reasons {
		line += said + reason.String()
		said = "; "
	}
	return line
}
