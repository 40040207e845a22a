package main

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// fullClaim is one claim in full. As JSON it has these fields.
type fullClaim struct {
	*claimGroup
	// Report has every volume with every reason, if volumes were searched for the claim.
	Report *match.Report `json:"report,omitempty"`
	// Pair is the claim and the volume that it names, if they are not as they should be.
	Pair *pairGroup `json:"pair,omitempty"`
}

func (w *world) writeClaim(o options, out io.Writer) error {
	claim, _ := w.Claim(o.claim.Namespace, o.claim.Name)
	if claim == nil {
		return &dump.UsageError{Err: fmt.Errorf("-claim %s/%s: there is no such claim in the input", o.claim.Namespace, o.claim.Name)}
	}
	full := w.fullClaim(claim)
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

func (w *world) fullClaim(claim *corev1.PersistentVolumeClaim) fullClaim {
	full := fullClaim{claimGroup: w.explainClaim(claim)}
	if takes(full.Explanation) {
		full.Contenders = contenders(w.takersOf(full.Volume))
	}
	if full.Search != nil {
		terms := w.Terms(claim)
		terms.Owners = w.Owners
		if found, err := match.Explain(match.Request{Claim: claim, Volumes: w.Volumes, Terms: terms}); err == nil {
			full.Report = &found
		}
	}
	if p, ok := w.pairOfClaim(claim); ok {
		full.Pair = w.checkPair(p.claim, p.volume)
	}
	return full
}
