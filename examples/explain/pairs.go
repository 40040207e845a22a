package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// pairGroups checks every claim with the volume that it names, and every volume with the claim that it names.
func (w *world) pairGroups() []*pairGroup {
	groups := []*pairGroup{}
	known := map[string]*pairGroup{}
	for i, pair := range w.pairs() {
		w.progress.tell("checked pairs:", i, len(w.Claims))
		group := w.checkPair(pair.claim, pair.volume)
		if group == nil || group.onlyTerminating() {
			continue
		}
		likeness := group.likeness()
		if first := known[likeness]; first != nil && group.Repair.By != binding.ByPerson {
			first.Alike = append(first.Alike, pairName{group.Claim, group.Volume})
			continue
		}
		known[likeness] = group
		groups = append(groups, group)
	}
	return groups
}

// pair is a claim and a volume, one of which may be nil.
type pair struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
}

// pairs are all that could be one. What the input cannot tell is left out.
func (w *world) pairs() []pair {
	var pairs []pair
	named := map[string]bool{}
	for _, claim := range w.Claims {
		if p, ok := w.pairOfClaim(claim); ok {
			named[claim.Spec.VolumeName] = p.volume != nil
			pairs = append(pairs, p)
		}
	}
	for _, volume := range w.Volumes {
		if p, ok := w.pairOf(volume, named[volume.Name]); ok {
			pairs = append(pairs, p)
		}
	}
	return pairs
}

// pairOfClaim is the claim with the volume that it names. One that names none and is being deleted may be kept by
// something; any other stands for itself.
func (w *world) pairOfClaim(claim *corev1.PersistentVolumeClaim) (pair, bool) {
	if claim.Spec.VolumeName == "" {
		return pair{claim, nil}, claim.DeletionTimestamp != nil
	}
	volume, evidence := w.Volume(claim.Spec.VolumeName)
	return pair{claim, volume}, evidence != binding.Unknown
}

// pairOf is the volume with the claim in its claimRef, unless that claim names it and was looked at before.
func (w *world) pairOf(volume *corev1.PersistentVolume, named bool) (pair, bool) {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return pair{nil, volume}, !named
	}
	claim, evidence := w.Claim(ref.Namespace, ref.Name)
	known := evidence != binding.Unknown || ref.UID == ""
	return pair{claim, volume}, known && (claim == nil || claim.Spec.VolumeName != volume.Name)
}

// checkPair is nil for a healthy pair.
func (w *world) checkPair(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *pairGroup {
	request := binding.PairRequest{Claim: claim, Volume: volume, View: w, Rules: rulesFor(claim)}
	report, err := binding.CheckPair(request)
	if report.Repair.By == binding.ByPerson && volume != nil {
		request.SameStorage = w.sameStorage(volume)
		report, err = binding.CheckPair(request)
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
	if report.Repair.Action.Kind == binding.UpdateVolume && report.Repair.By == binding.ByPerson {
		group.Command = patchCommand(volume, report.Repair.Action.Volume)
	}
	return group
}

// onlyTerminating reports whether the volume is merely being deleted: that is told of the volume.
func (g *pairGroup) onlyTerminating() bool {
	return g.Violations[0].Kind == binding.PairVolumeTerminating
}

// rulesFor has the controller take the protection off a claim that is being deleted, as one in kube-controller-manager
// does. That it puts it on others is no news.
func rulesFor(claim *corev1.PersistentVolumeClaim) binding.Rules {
	if claim != nil && claim.DeletionTimestamp != nil {
		return binding.Rules{Protection: binding.ProtectionOn}
	}
	return binding.Rules{}
}

// likeness is the same for pairs of which there is the same to say but for names and UIDs.
func (g *pairGroup) likeness() string {
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
