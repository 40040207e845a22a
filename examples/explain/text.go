package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
)

// printer writes lines, and keeps the first error.
type printer struct {
	to  io.Writer
	err error
}

// line writes a line, cut if it is too long.
func (p *printer) line(indent int, text string) { p.whole(indent, dump.OneLine(text)) }

// whole writes a line of any length.
func (p *printer) whole(indent int, text string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.to, strings.TrimRight(strings.Repeat("    ", indent)+text, " "))
	}
}

// block writes several lines.
func (p *printer) block(indent int, text string) {
	for line := range strings.Lines(text) {
		p.line(indent, strings.TrimSuffix(line, "\n"))
	}
}

func (c *cluster) writeText(out io.Writer) error {
	p, r := &printer{to: out}, c.report()
	switch {
	case len(c.Claims)+len(c.Volumes) == 0:
		p.line(0, "There are no claims and no volumes in the input.")
	case len(r.Claims)+len(r.Volumes)+len(r.Pairs) == 0:
		p.line(0, "Every claim is Bound, and nothing is stuck.")
	}
	section(p, "Claims that are not Bound", r.Claims, (*claimGroup).print)
	section(p, "Volumes that nobody can simply use", r.Volumes, (*volumeGroup).print)
	section(p, "Pairs that are not as they should be", r.Pairs, (*pairGroup).print)
	return p.err
}

// section prints groups under a title, with a blank line between them.
func section[G any](p *printer, title string, groups []G, print func(G, *printer)) {
	if len(groups) == 0 {
		return
	}
	p.line(0, "== "+title)
	for _, group := range groups {
		print(group, p)
		p.line(0, "")
	}
}

func (g *claimGroup) print(p *printer) {
	p.line(0, g.Claim.String()+": "+orElse(string(g.State), "Malformed")+others(g.Alike))
	g.printBody(p)
	if g.Search != nil && g.Search.Nearest != nil {
		p.line(1, g.Search.Nearest.String())
	}
}

// printBody prints everything but the near miss.
func (g *claimGroup) printBody(p *printer) {
	if g.Problem != "" {
		p.line(1, g.Problem) // it has the message in it, if there is one (C9)
	} else {
		p.line(1, g.Message)
	}
	if g.Contenders > 0 {
		p.line(1, fmt.Sprintf("%d claims would take that volume, and one of them gets it", g.Contenders))
	}
	if len(g.Finalizers) > 0 {
		p.line(1, "finalizers: "+strings.Join(g.Finalizers, ", "))
	}
	if g.State == decision.ClaimTerminating && len(g.Pods) > 0 {
		p.line(1, "used by the pods "+strings.Join(g.Pods, ", "))
	}
	for _, wait := range g.Scheduling {
		p.line(1, "pod "+wait.Pod+": "+orElse(wait.Message, "the scheduler has not seen it"))
		if wait.Volumes != "" {
			p.line(2, "by its volumes, "+wait.Volumes)
		}
		for _, node := range wait.Nodes {
			p.line(2, node.String())
		}
	}
	if g.Search != nil {
		search := *g.Search
		search.Nearest = nil
		p.line(1, search.String())
	}
}

func (g *volumeGroup) print(p *printer) {
	title := g.Volume.String() + ": " + g.Phase + ", policy " + g.Policy
	if g.Was != (obj.Key{}) {
		title += ", claimRef " + g.Was.String()
	}
	p.line(0, title+others(g.Alike))
	p.line(1, g.Why)
	for _, operation := range g.Operations {
		p.line(1, "- "+operation.String())
		if operation.Command != "" {
			p.whole(1, "  $ "+operation.Command)
		}
	}
}

func (g *pairGroup) print(p *printer) {
	p.line(0, (pairName{g.Claim, g.Volume}).String()+others(g.Alike))
	for _, violation := range g.Violations {
		p.line(1, violation.String())
	}
	switch repair := g.Repair; {
	case g.Problem != "":
		p.line(1, g.Problem)
	case repair.By == decision.ByController:
		p.line(1, "the controller repairs it: "+repair.Action.String())
	case repair.By == decision.ByPerson:
		p.line(1, "a person can repair it:")
		for _, step := range strings.Split(repair.Why, "; ") { // not in one line, which could be cut
			p.line(2, step)
		}
		p.line(1, "risk: "+repair.Risk)
		if g.Command != "" {
			p.whole(1, "$ "+g.Command)
		}
	default:
		p.line(1, "nothing is safe to do: "+repair.Why)
	}
}

func (n pairName) String() string {
	switch {
	case n.Volume == (obj.Key{}):
		return n.Claim.String()
	case n.Claim == (obj.Key{}):
		return n.Volume.String()
	}
	return n.Claim.String() + " and " + n.Volume.String()
}

// shown is how many of like things are named.
const shown = 3

// others names like things: " (and 41 like it: pvc/a/b, pvc/a/c, pvc/a/d, …)".
func others[K fmt.Stringer](alike []K) string {
	if len(alike) == 0 {
		return ""
	}
	var names []string
	for _, key := range alike[:min(shown, len(alike))] {
		names = append(names, key.String())
	}
	if len(alike) > shown {
		names = append(names, "…")
	}
	return fmt.Sprintf(" (and %d like it: %s)", len(alike), strings.Join(names, ", "))
}
