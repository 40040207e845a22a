package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
)

// claimGroups explains every claim that is not Bound.
func (w *world) claimGroups() []*claimGroup {
	var found claimFold
	var takers []*claimGroup
	for i, claim := range w.Claims {
		w.progress.tell("explained claims:", i, len(w.Claims))
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if group := w.explainClaim(claim); takes(group.Explanation) {
			takers = append(takers, group)
		} else {
			found.add(group)
		}
	}
	found.addTakers(takers)
	return found.sorted()
}

// explainClaim says why the claim is not Bound. Beside the explanation there may be a problem (C9).
func (w *world) explainClaim(claim *corev1.PersistentVolumeClaim) *claimGroup {
	explanation, err := binding.ExplainClaim(claim, w, binding.Rules{})
	group := &claimGroup{Explanation: explanation}
	if err != nil {
		group.Problem = err.Error()
	}
	if explanation.State == binding.ClaimAwaitsScheduling {
		group.Scheduling = w.scheduling(claim, explanation.Pods)
	}
	return group
}

// scheduling is what the scheduler said of the pods, and what their volumes say.
func (w *world) scheduling(claim *corev1.PersistentVolumeClaim, names []string) []podWait {
	waits := make([]podWait, 0, len(names))
	pods, _ := w.PodsOf(claim.Namespace, claim.Name)
	for _, name := range names {
		wait := podWait{Pod: name}
		for _, pod := range pods {
			if pod.Name == name {
				wait.Message = unscheduled(pod)
				wait.Volumes, wait.Nodes = w.placing(pod)
			}
		}
		waits = append(waits, wait)
	}
	return waits
}

// unscheduled is why the scheduler gave the pod no node, in its words.
func unscheduled(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}
