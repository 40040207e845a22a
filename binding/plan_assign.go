package binding

import (
	"cmp"
	"slices"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// assigner gives volumes to claims (S6), for one node after the other. It takes two steps, for which volumes to
// use and which claims to serve can be told apart:
//
//  1. Volumes are taken from the best on, each that can be given to some claim in addition to those taken.
//     The sets of volumes that can be given away at once are a matroid, so that this greedy way ends with as
//     many as can be, and of the least total capacity.
//  2. Among these volumes, claims are served from the neediest on, each that can be served in addition. That
//     leaves no volume unused, and serves every claim that must be, if all of those can be served at all:
//     where some way serves these claims, and some way uses those volumes, one way does both (Mendelsohn and
//     Dulmage).
//
// What it has allocated it keeps for the next node.
type assigner struct {
	open    []*wish        // the claims that could have some volume
	volumes []index.Choice // what they could have, each once, the best first
	pairing
}

// assign sets what each claim is given.
func (a *assigner) assign(wishes []wish) {
	a.gather(wishes)
	if len(a.open) == 1 {
		a.open[0].given = a.volumes[0].Volume
		return
	}
	a.reset(len(a.volumes), len(a.open))
	a.eachChoice(func(claim, volume int) { a.edges[volume] = append(a.edges[volume], claim) })
	a.takeVolumes()
	slices.SortStableFunc(a.open, compareNeed)
	a.reset(len(a.open), len(a.volumes))
	a.eachChoice(func(claim, volume int) { a.edges[claim] = append(a.edges[claim], volume) })
	for claim := range a.open {
		a.add(claim)
	}
	for volume, claim := range a.partner {
		a.open[claim].given = a.volumes[volume].Volume
	}
}

// gather finds out which claims there are to be given a choice, and what there is to choose from.
func (a *assigner) gather(wishes []wish) {
	a.open, a.volumes = a.open[:0], a.volumes[:0]
	for i := range wishes {
		switch w := &wishes[i]; {
		case w.setAside != nil:
			w.given = w.setAside
		case len(w.choices) > 0:
			a.open = append(a.open, w)
			a.volumes = append(a.volumes, w.choices...)
		}
	}
	slices.SortFunc(a.volumes, index.Choice.Compare)
	a.volumes = slices.CompactFunc(a.volumes, func(a, b index.Choice) bool { return a.Volume == b.Volume })
}

// eachChoice visits every claim with every volume that it could have, by their places in the lists.
func (a *assigner) eachChoice(visit func(claim, volume int)) {
	for claim, w := range a.open {
		for _, choice := range w.choices {
			if volume, listed := slices.BinarySearchFunc(a.volumes, choice, index.Choice.Compare); listed {
				visit(claim, volume)
			}
		}
	}
}

// takeVolumes leaves those that are to be used, until there is one for every claim.
func (a *assigner) takeVolumes() {
	taken := a.volumes[:0]
	for volume := 0; volume < len(a.volumes) && len(taken) < len(a.open); volume++ {
		if a.add(volume) {
			taken = append(taken, a.volumes[volume])
		}
	}
	a.volumes = taken
}

// compareNeed puts claims first that no volume can be made for, then those that ask for most.
func compareNeed(a, b *wish) int {
	needs := func(w *wish) int {
		if w.must != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(needs(a), needs(b)), quantities.Compare(b.Request, a.Request))
}

// pairing pairs things of one side, by their number, with things of the other.
type pairing struct {
	edges   [][]int // what each thing can be paired with
	partner []int   // of each thing of the other side; -1: none
	seen    []bool  // of the other side
}

// reset is for so many things on each side, with no edges yet.
func (p *pairing) reset(ones, others int) {
	p.edges = slices.Grow(p.edges[:0], ones)[:ones]
	for i := range p.edges {
		p.edges[i] = p.edges[i][:0]
	}
	p.partner, p.seen = p.partner[:0], p.seen[:0]
	for range others {
		p.partner, p.seen = append(p.partner, -1), append(p.seen, false)
	}
}

// add pairs one thing more, and reports whether it could: others may change their partners, but none loses
// its own. What a search in vain has seen leads nowhere later either, so that it need not be seen again until
// something has changed.
func (p *pairing) add(one int) bool {
	if !p.search(one) {
		return false
	}
	clear(p.seen)
	return true
}

func (p *pairing) search(one int) bool {
	for _, other := range p.edges[one] {
		if p.partner[other] < 0 {
			p.partner[other] = one
			return true
		}
	}
	for _, other := range p.edges[one] {
		if !p.seen[other] {
			p.seen[other] = true
			if p.search(p.partner[other]) {
				p.partner[other] = one
				return true
			}
		}
	}
	return false
}
