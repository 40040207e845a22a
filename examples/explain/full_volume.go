package main

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/phase"
)

// fullVolume is one volume in full. As JSON it has these fields.
type fullVolume struct {
	*volumeGroup
	// Fits says of each claim that waits for a volume what keeps it from this one. Like claims are together.
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

func (w *world) writeVolume(o options, out io.Writer) error {
	volume, _ := w.Volume(o.volume)
	if volume == nil {
		return &dump.UsageError{Err: fmt.Errorf("-volume %s: there is no such volume in the input", o.volume)}
	}
	full := w.fullVolume(volume)
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

func (w *world) fullVolume(volume *corev1.PersistentVolume) fullVolume {
	full := fullVolume{volumeGroup: w.stuck(volume), Fits: w.fits(volume)}
	if full.volumeGroup == nil {
		full.volumeGroup = describe(volume)
		full.Why = w.phaseWords(volume)
	}
	if owners := w.Owners(volume.Name); len(owners) > 0 {
		claim, _ := w.Claim(owners[0].Namespace, owners[0].Name)
		full.Pair = w.checkPair(claim, volume)
	} else if p, ok := w.pairOf(volume, false); ok || p.claim != nil {
		full.Pair = w.checkPair(p.claim, volume)
	}
	if full.Pair != nil && full.Pair.onlyTerminating() {
		full.Pair = nil
	}
	return full
}

func (w *world) phaseWords(volume *corev1.PersistentVolume) string {
	switch {
	case volume.Spec.ClaimRef == nil && len(w.Owners(volume.Name)) > 0:
		return "it has no claimRef, and is for whoever is bound to it alone"
	case volume.Spec.ClaimRef == nil:
		return "any claim that it fits can have it"
	case volume.Spec.ClaimRef.UID == "":
		return "it is set aside for a claim of that name"
	}
	return "it is for that claim alone"
}

// fits compares the volume with every claim that waits for one, unless it has a claim.
func (w *world) fits(volume *corev1.PersistentVolume) []*claimFit {
	if _, served := w.Claim(claimNameIn(volume)); served == binding.Live {
		return nil
	}
	var fits []*claimFit
	known := map[string]*claimFit{}
	for _, claim := range w.Claims {
		if claim.Spec.VolumeName != "" || phase.BindCompleted(claim) || claim.DeletionTimestamp != nil {
			continue
		}
		terms := w.Terms(claim)
		terms.Owners = w.Owners
		mismatches, err := match.Check(claim, volume, terms)
		if err != nil {
			continue
		}
		likeness := mismatches.String()
		if first := known[likeness]; first != nil {
			first.Alike = append(first.Alike, obj.KeyOf(claim))
			continue
		}
		known[likeness] = &claimFit{Claim: obj.KeyOf(claim), Mismatches: mismatches}
		fits = append(fits, known[likeness])
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
