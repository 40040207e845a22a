package main

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
)

// explainClaims explains each claim that is not Bound.
func (c *cluster) explainClaims() []*claimGroup {
	var groups claimGroups
	var takers []*claimGroup
	for i, claim := range c.Claims {
		c.progress.tell("explained claims:", i, len(c.Claims))
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if group := c.explainClaim(claim); takes(group.Explanation) {
			takers = append(takers, group)
		} else {
			groups.add(group)
		}
	}
	groups.addTakers(takers)
	return groups.sorted()
}

// explainClaim explains why the claim is not Bound. Beside the explanation there may be a problem (C9).
func (c *cluster) explainClaim(claim *corev1.PersistentVolumeClaim) *claimGroup {
	explanation, err := decision.ExplainClaim(claim, c, decision.Options{})
	group := &claimGroup{Explanation: explanation}
	if err != nil {
		group.Problem = err.Error()
	}
	if explanation.State == decision.ClaimAwaitsScheduling {
		group.Scheduling = c.scheduling(claim, explanation.Pods)
	}
	return group
}

// scheduling returns what the scheduler wrote about the pods, and on which nodes their volumes allow them.
func (c *cluster) scheduling(claim *corev1.PersistentVolumeClaim, names []string) []podWait {
	waits := make([]podWait, 0, len(names))
	pods, _ := c.PodsOf(claim.Namespace, claim.Name)
	for _, name := range names {
		wait := podWait{Pod: name}
		for _, pod := range pods {
			if pod.Name == name {
				wait.Message = unscheduled(pod)
				wait.Volumes, wait.Nodes = c.placement(pod)
			}
		}
		waits = append(waits, wait)
	}
	return waits
}

// unscheduled returns why the scheduler found no node for the pod, in its words.
func unscheduled(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status != corev1.ConditionTrue {
			return condition.Message
		}
	}
	return ""
}

// claimGroups groups like claims as they come, so that not all of them are in memory at once. The zero value is
// empty.
type claimGroups struct {
	groups []*claimGroup
	byKey  map[string]*claimGroup
}

func (g *claimGroups) add(group *claimGroup) {
	key := group.groupKey()
	if first := g.byKey[key]; first != nil {
		first.Alike = append(first.Alike, group.Claim)
		return
	}
	if g.byKey == nil {
		g.byKey = map[string]*claimGroup{}
	}
	g.byKey[key] = group
	g.groups = append(g.groups, group)
}

// addTakers adds the claims that are about to be bound to a free volume. Each is explained as if it were alone, so that
// several may be about to get the same.
func (g *claimGroups) addTakers(takers []*claimGroup) {
	of := map[string]int{}
	for _, group := range takers {
		of[group.Volume]++
	}
	for _, group := range takers {
		group.Contenders = contenders(of[group.Volume])
		g.add(group)
	}
}

func (g *claimGroups) sorted() []*claimGroup {
	slices.SortFunc(g.groups, func(a, b *claimGroup) int {
		return cmp.Or(cmp.Compare(a.Claim.Namespace, b.Claim.Namespace), cmp.Compare(a.Claim.Name, b.Claim.Name))
	})
	return append([]*claimGroup{}, g.groups...) // a list in JSON too if there are none
}

// takes reports whether the claim is about to be bound to a volume that is still free (B1).
func takes(e decision.Explanation) bool { return e.State == decision.ClaimBinding && e.Rule == "B1" }

// takersOf counts the claims that are about to be bound to the volume.
func (c *cluster) takersOf(volume string) int {
	count := 0
	for _, claim := range c.Claims {
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if e, err := decision.ExplainClaim(claim, c, decision.Options{}); err == nil && takes(e) && e.Volume == volume {
			count++
		}
	}
	return count
}

// contenders returns how many claims there are for a volume, 0 for one alone.
func contenders(takers int) int {
	if takers == 1 {
		return 0
	}
	return takers
}

// groupKey is equal for claims whose answers differ in names only.
func (g *claimGroup) groupKey() string {
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
