package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
)

// claimGroups explains every claim that is not Bound.
func (w *world) claimGroups() []*claimGroup {
	groups := []*claimGroup{}
	known := map[string]*claimGroup{}
	for _, group := range w.explained() {
		likeness := group.likeness()
		if first := known[likeness]; first != nil {
			first.Alike = append(first.Alike, group.Claim)
			continue
		}
		known[likeness] = group
		groups = append(groups, group)
	}
	return groups
}

// explained has the claims that are not Bound one by one. Each is explained as if it were alone, and so several may be
// said to take one volume.
func (w *world) explained() []*claimGroup {
	var all []*claimGroup
	takers := map[string]int{}
	for i, claim := range w.Claims {
		w.progress.tell("explained claims:", i, len(w.Claims))
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		group := w.explainClaim(claim)
		all = append(all, group)
		if group.takes() {
			takers[group.Volume]++
		}
	}
	for _, group := range all {
		if of := takers[group.Volume]; group.takes() && of > 1 {
			group.Contenders = of
		}
	}
	return all
}

// takes reports whether the claim is to have a volume that is still free or merely reserved (B1).
func (g *claimGroup) takes() bool { return g.State == binding.ClaimBinding && g.Rule == "B1" }

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

// likeness is the same for claims of which there is the same to say but for names.
func (g *claimGroup) likeness() string {
	names := []string{g.Claim.String(), "CLAIM", g.Claim.Namespace + "/" + g.Claim.Name, "CLAIM"}
	if g.Volume != "" && g.Contenders == 0 { // those who contend for one volume are together
		names = append(names, g.Volume, "VOLUME")
	}
	for _, pod := range g.Pods {
		names = append(names, pod, "POD")
	}
	said := []string{string(g.State), g.String(), g.Problem, g.Mismatches.String(), strings.Join(g.Finalizers, " "), strings.Join(g.Pods, " ")}
	for _, wait := range g.Scheduling {
		said = append(said, wait.Message, wait.Volumes)
	}
	return strings.NewReplacer(names...).Replace(strings.Join(said, "\n"))
}
