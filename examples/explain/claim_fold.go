package main

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
)

// claimFold puts like claims together as they come, so that not all of them are in memory at once. The zero value is
// empty.
type claimFold struct {
	groups []*claimGroup
	known  map[string]*claimGroup
}

func (f *claimFold) add(group *claimGroup) {
	likeness := group.likeness()
	if first := f.known[likeness]; first != nil {
		first.Alike = append(first.Alike, group.Claim)
		return
	}
	if f.known == nil {
		f.known = map[string]*claimGroup{}
	}
	f.known[likeness] = group
	f.groups = append(f.groups, group)
}

// addTakers adds the claims that are to have a free volume. Each is explained as if it were alone, so that several may
// be said to have the same.
func (f *claimFold) addTakers(takers []*claimGroup) {
	of := map[string]int{}
	for _, group := range takers {
		of[group.Volume]++
	}
	for _, group := range takers {
		group.Contenders = contenders(of[group.Volume])
		f.add(group)
	}
}

func (f *claimFold) sorted() []*claimGroup {
	slices.SortFunc(f.groups, func(a, b *claimGroup) int {
		return cmp.Or(cmp.Compare(a.Claim.Namespace, b.Claim.Namespace), cmp.Compare(a.Claim.Name, b.Claim.Name))
	})
	return append([]*claimGroup{}, f.groups...) // a list in JSON too if there are none
}

// takes reports whether the claim is to have a volume that nobody holds yet (B1).
func takes(e binding.Explanation) bool { return e.State == binding.ClaimBinding && e.Rule == "B1" }

// takersOf counts the claims that are to have the volume.
func (w *world) takersOf(volume string) int {
	count := 0
	for _, claim := range w.Claims {
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if e, err := binding.ExplainClaim(claim, w, binding.Rules{}); err == nil && takes(e) && e.Volume == volume {
			count++
		}
	}
	return count
}

// contenders is how many claims there are for a volume, if it is not one alone.
func contenders(takers int) int {
	if takers == 1 {
		return 0
	}
	return takers
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
