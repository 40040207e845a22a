package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// pairGroups checks every claim with the volume that it names, and every volume with the claim that it names.
func (c *cluster) pairGroups() []*pairGroup {
	groups := []*pairGroup{}
	known := map[string]*pairGroup{}
	for i, pair := range c.pairs() {
		c.progress.tell("checked pairs:", i, len(c.Claims))
		group := c.checkPair(pair.claim, pair.volume)
		if group == nil || group.onlyTerminating() {
			continue
		}
		key := group.groupKey()
		if first := known[key]; first != nil && group.Repair.By != decision.ByPerson {
			first.Alike = append(first.Alike, pairName{group.Claim, group.Volume})
			continue
		}
		known[key] = group
		groups = append(groups, group)
	}
	return groups
}

// pair is a claim and a volume, one of which may be nil.
type pair struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

// pairs returns all that could be one, but those of which the input lacks a half.
func (c *cluster) pairs() []pair {
	var pairs []pair
	named := map[string]bool{}
	for _, claim := range c.Claims {
		if p, ok := c.pairOfClaim(claim); ok {
			named[claim.Spec.VolumeName] = p.volume != nil
			pairs = append(pairs, p)
		}
	}
	for _, volume := range c.Volumes {
		if p, ok := c.pairOf(volume, named[volume.Name]); ok {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// pairOfClaim returns the claim with the volume that it names. One that names none and is being deleted may be kept by
// something; any other stands for itself.
func (c *cluster) pairOfClaim(claim *corev1.PersistentVolumeClaim) (pair, bool) {
	if claim.Spec.VolumeName == "" {
		return pair{claim, nil}, claim.DeletionTimestamp != nil
	}
	volume, source := c.Volume(claim.Spec.VolumeName)
	return pair{claim, volume}, source != decision.NotInCache
}

// pairOf returns the volume with the claim in its claimRef, unless that claim names it and was looked at before.
func (c *cluster) pairOf(volume *corev1.PersistentVolume, named bool) (pair, bool) {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return pair{nil, volume}, !named
	}
	claim, source := c.Claim(ref.Namespace, ref.Name)
	known := source != decision.NotInCache || ref.UID == ""
	return pair{claim, volume}, known && (claim == nil || claim.Spec.VolumeName != volume.Name)
}

// checkPair returns what is wrong with a pair, and nil for a healthy one.
func (c *cluster) checkPair(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *pairGroup {
	request := decision.PairRequest{Claim: claim, Volume: volume, View: c, Options: optionsFor(claim)}
	report, err := decision.CheckPair(request)
	if report.Repair.By == decision.ByPerson && volume != nil {
		request.SameStorage = c.sameStorage(volume)
		report, err = decision.CheckPair(request)
	}
	if report.Healthy() {
		return nil
	}
	group := &pairGroup{PairReport: report}
	if claim != nil {
		group.uid = string(claim.UID)
	}
	if err != nil {
		group.Problem = err.Error()
	}
	if report.Repair.Action.Kind == decision.UpdateVolume && report.Repair.By == decision.ByPerson {
		group.Command = patchCommand(volume, report.Repair.Action.Volume)
	}
	return group
}

// onlyTerminating reports whether the volume is merely being deleted: the part about volumes tells that.
func (g *pairGroup) onlyTerminating() bool {
	return g.Violations[0].Kind == decision.PairVolumeTerminating
}

// optionsFor returns options under which the protection finalizer is removed from a claim that is being deleted, as a
// controller in kube-controller-manager does. That it adds the finalizer to other claims is no news.
func optionsFor(claim *corev1.PersistentVolumeClaim) decision.Options {
	if claim != nil && claim.DeletionTimestamp != nil {
		return decision.Options{}
	}
	return decision.Options{Protection: decision.ProtectionOff}
}

// groupKey is equal for pairs whose answers differ in names and UIDs only.
func (g *pairGroup) groupKey() string {
	said := []string{g.Problem, string(g.Repair.By), g.Repair.Action.Rule, g.Repair.Why}
	for _, violation := range g.Violations {
		said = append(said, string(violation.Kind))
	}
	var names []string
	if g.uid != "" {
		names = append(names, g.uid, "X")
	}
	for _, key := range []obj.Key{g.Claim, g.Volume} {
		if key != (obj.Key{}) {
			names = append(names, key.String(), "X", key.Namespace+"/"+key.Name, "X", key.Name, "X")
		}
	}
	return strings.NewReplacer(names...).Replace(strings.Join(said, "\n"))
}
