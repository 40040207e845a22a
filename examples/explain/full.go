package main

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/phase"
)

// fullClaim is one claim in full. As JSON it has these fields.
type fullClaim struct {
	*claimGroup
	// Report lists every volume with every reason, if volumes were searched for the claim.
	Report *match.Report `json:"report,omitempty"`
	// Pair is the claim and the volume that it names, if they are not as they should be.
	Pair *pairGroup `json:"pair,omitempty"`
}

func (c *cluster) writeClaim(o options, out io.Writer) error {
	claim, _ := c.Claim(o.claim.Namespace, o.claim.Name)
	if claim == nil {
		return &dump.UsageError{Err: fmt.Errorf("-claim %s/%s: there is no such claim in the input", o.claim.Namespace, o.claim.Name)}
	}
	full := c.fullClaim(claim)
	if o.format == formatJSON {
		return writeJSON(out, full)
	}
	p := &printer{to: out}
	p.line(0, full.Claim.String()+": "+orElse(string(full.State), "Malformed"))
	full.printBody(p)
	if full.Report != nil {
		p.line(0, "")
		p.block(1, full.Report.Table())
	}
	if full.Pair != nil {
		p.line(0, "")
		full.Pair.print(p)
	}
	return p.err
}

func (c *cluster) fullClaim(claim *corev1.PersistentVolumeClaim) fullClaim {
	full := fullClaim{claimGroup: c.explainClaim(claim)}
	if takes(full.Explanation) {
		full.Contenders = contenders(c.takersOf(full.Volume))
	}
	if full.Search != nil {
		terms := c.Terms(claim)
		terms.Owners = c.Owners
		if found, err := match.Explain(match.Request{Claim: claim, Volumes: c.Volumes, Terms: terms}); err == nil {
			full.Report = &found
		}
	}
	if p, ok := c.pairOfClaim(claim); ok {
		full.Pair = c.checkPair(p.claim, p.volume)
	}
	return full
}

// fullVolume is one volume in full. As JSON it has these fields.
type fullVolume struct {
	*volumeGroup
	// Fits has for each claim that waits for a volume why this one does not fit it. Like claims are together.
	Fits []*claimFit `json:"waiting,omitempty"`
	// Pair is the volume and the claim in its claimRef, if they are not as they should be.
	Pair *pairGroup `json:"pair,omitempty"`
}

// claimFit is a claim that waits, and others for which the same holds.
type claimFit struct {
	Claim      obj.Key          `json:"claim"`
	Mismatches match.Mismatches `json:"mismatches,omitempty"` // none: it fits
	Alike      []obj.Key        `json:"alike,omitempty"`
}

func (c *cluster) writeVolume(o options, out io.Writer) error {
	volume, _ := c.Volume(o.volume)
	if volume == nil {
		return &dump.UsageError{Err: fmt.Errorf("-volume %s: there is no such volume in the input", o.volume)}
	}
	full := c.fullVolume(volume)
	if o.format == formatJSON {
		return writeJSON(out, full)
	}
	p := &printer{to: out}
	full.volumeGroup.print(p)
	for _, fit := range full.Fits {
		p.line(1, fit.String())
	}
	if full.Pair != nil {
		p.line(0, "")
		full.Pair.print(p)
	}
	return p.err
}

func (c *cluster) fullVolume(volume *corev1.PersistentVolume) fullVolume {
	full := fullVolume{volumeGroup: c.stuck(volume), Fits: c.fits(volume)}
	if full.volumeGroup == nil {
		full.volumeGroup = describe(volume)
		full.Why = c.availability(volume)
	}
	if owners := c.Owners(volume.Name); len(owners) > 0 {
		claim, _ := c.Claim(owners[0].Namespace, owners[0].Name)
		full.Pair = c.checkPair(claim, volume)
	} else if p, ok := c.pairOf(volume, false); ok || p.claim != nil {
		full.Pair = c.checkPair(p.claim, volume)
	}
	if full.Pair != nil && full.Pair.onlyTerminating() {
		full.Pair = nil
	}
	return full
}

// availability says which claims the volume is for.
func (c *cluster) availability(volume *corev1.PersistentVolume) string {
	switch {
	case volume.Spec.ClaimRef == nil && len(c.Owners(volume.Name)) > 0:
		return "it has no claimRef, and is for the claim that is bound to it alone"
	case volume.Spec.ClaimRef == nil:
		return "any claim that it fits can have it"
	case volume.Spec.ClaimRef.UID == "":
		return "it is pre-bound to a claim of that name"
	}
	return "it is for that claim alone"
}

// fits compares the volume with every claim that waits for one. It returns none if the claim in its claimRef exists.
func (c *cluster) fits(volume *corev1.PersistentVolume) []*claimFit {
	if _, source := c.Claim(claimNameIn(volume)); source == decision.FromLiveRead {
		return nil
	}
	var fits []*claimFit
	known := map[string]*claimFit{}
	for _, claim := range c.Claims {
		if claim.Spec.VolumeName != "" || phase.BindCompleted(claim) || claim.DeletionTimestamp != nil {
			continue
		}
		terms := c.Terms(claim)
		terms.Owners = c.Owners
		mismatches, err := match.Check(claim, volume, terms)
		if err != nil {
			continue
		}
		key := mismatches.String()
		if first := known[key]; first != nil {
			first.Alike = append(first.Alike, obj.KeyOf(claim))
			continue
		}
		known[key] = &claimFit{Claim: obj.KeyOf(claim), Mismatches: mismatches}
		fits = append(fits, known[key])
	}
	return fits
}

func claimNameIn(volume *corev1.PersistentVolume) (namespace, name string) {
	if ref := volume.Spec.ClaimRef; ref != nil {
		return ref.Namespace, ref.Name
	}
	return "", ""
}

func (f *claimFit) String() string {
	subject := f.Claim.String() + " waits" + others(f.Alike)
	if len(f.Mismatches) == 0 {
		return subject + ": it fits"
	}
	return subject + ": " + f.Mismatches.String()
}
