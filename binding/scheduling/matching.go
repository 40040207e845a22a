package scheduling

import (
	"cmp"
	"slices"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// assignment assigns volumes to the claims of a pod, for one node after the other, by two bipartite matchings (S6): first it
// chooses the volumes, then the claims to serve with them. Last it says which claim gets which volume.
//
//  1. Volumes are taken from the best on, each that can be assigned to some claim in addition to those taken.
//     The sets of volumes that can be assigned at once are a matroid, so that this greedy way ends with as
//     many as can be, and of the least total capacity.
//  2. Among these volumes, claims are served from the most urgent on, each that can be served in addition. That
//     leaves no volume unused, and serves every claim that must be, if all of those can be served at all:
//     where some way serves these claims, and some way uses those volumes, one way does both (Mendelsohn and
//     Dulmage).
//  3. The served claims choose, from the one that requests least on: each gets the best volume that leaves one to
//     each of those after it.
//
// What it has allocated it keeps for the next node.
type assignment struct {
	claims  []*unboundClaim // those that have candidates
	volumes []index.Choice  // their candidates, each once, the best first
	order   []int           // places of the served claims, in the order in which they choose
	matching
}

// assign sets what each claim with candidates is assigned.
func (a *assignment) assign(claims []*unboundClaim) {
	a.gather(claims)
	a.reset(len(a.volumes), len(a.claims))
	a.eachCandidate(func(claim, volume int) { a.edges[volume] = append(a.edges[volume], claim) })
	taken := a.volumes[:0]
	for volume, choice := range a.volumes {
		if len(taken) < len(a.claims) && a.add(volume) {
			taken = append(taken, choice)
		}
	}
	a.volumes = taken

	slices.SortStableFunc(a.claims, compareUrgency)
	a.reset(len(a.claims), len(a.volumes))
	a.eachCandidate(func(claim, volume int) { a.edges[claim] = append(a.edges[claim], volume) })
	for claim := range a.claims {
		a.add(claim)
	}
	a.choose()
	for volume, claim := range a.partner {
		a.claims[claim].assigned = a.volumes[volume].Volume
	}
}

// choose has the served claims choose one after the other, from the one that requests least on.
func (a *assignment) choose() {
	a.order = append(a.order[:0], a.partner...)
	slices.SortFunc(a.order, func(i, j int) int { return compareSize(a.claims[i], a.claims[j]) })
	for _, claim := range a.order {
		a.settle(claim)
	}
}

// compareSize puts the claim first that requests least; ties are broken by name.
func compareSize(a, b *unboundClaim) int {
	return cmp.Or(quantities.Compare(a.criteria.Request, b.criteria.Request), cmp.Compare(a.Claim.Name, b.Claim.Name))
}

// gather lists the claims that have a choice, and the volumes to choose from.
func (a *assignment) gather(claims []*unboundClaim) {
	a.claims, a.volumes = a.claims[:0], a.volumes[:0]
	for _, claim := range claims {
		if len(claim.candidates) > 0 {
			claim.best = claim.candidates[0].Volume
			a.claims = append(a.claims, claim)
			a.volumes = append(a.volumes, claim.candidates...)
		}
	}
	slices.SortFunc(a.volumes, index.Choice.Compare)
	a.volumes = slices.CompactFunc(a.volumes, func(a, b index.Choice) bool { return a.Volume == b.Volume })
}

// eachCandidate visits every claim with every volume that it could have, by their places in the lists.
func (a *assignment) eachCandidate(visit func(claim, volume int)) {
	for i, claim := range a.claims {
		for _, candidate := range claim.candidates {
			if volume, listed := slices.BinarySearchFunc(a.volumes, candidate, index.Choice.Compare); listed {
				visit(i, volume)
			}
		}
	}
}

// compareUrgency puts claims first that no volume can be provisioned for, then those that request most.
func compareUrgency(a, b *unboundClaim) int {
	switch {
	case a.blocked != "" && b.blocked == "":
		return -1
	case a.blocked == "" && b.blocked != "":
		return 1
	}
	return quantities.Compare(b.Request, a.Request)
}

// matching is a bipartite matching that grows by augmenting paths. The nodes of each side are numbered.
type matching struct {
	edges   [][]int // of each node of one side, to nodes of the other
	partner []int   // of each node of the other side; -1: none
	seen    []bool  // of the other side
	settled []bool  // of the other side: those whose partner stays
}

// reset makes the matching empty, for so many nodes on each side with no edges yet.
func (m *matching) reset(nodes, others int) {
	m.edges = slices.Grow(m.edges[:0], nodes)[:nodes]
	for i := range m.edges {
		m.edges[i] = m.edges[i][:0]
	}
	m.partner, m.seen, m.settled = m.partner[:0], m.seen[:0], m.settled[:0]
	for range others {
		m.partner, m.seen, m.settled = append(m.partner, -1), append(m.seen, false), append(m.settled, false)
	}
}

// settle gives a matched node the first other on its list that leaves all nodes matched, and keeps that pair from any
// change by later calls.
func (m *matching) settle(node int) {
	settled, old := m.settled, slices.Index(m.partner, node)
	copy(m.seen, settled)
	for _, other := range m.edges[node] {
		if other == old || m.swap(node, other, old) {
			settled[other] = true
			return
		}
	}
}

// swap gives a matched node another partner in place of its old one, and reports whether it could: the node that had that
// partner must find one, in the end the old one that is free now.
func (m *matching) swap(node, other, old int) bool {
	if m.seen[other] {
		return false // it was visited from another place already
	}
	m.seen[other] = true
	m.partner[old] = -1
	if m.augment(m.partner[other]) {
		m.partner[other] = node
		return true
	}
	m.partner[old] = node
	return false
}

// add matches one node more, and reports whether it could: others may change their partners, but none loses its own. After
// a failed search the nodes that it visited stay marked: no augmenting path leads through them until the matching grows.
func (m *matching) add(node int) bool {
	if !m.augment(node) {
		return false
	}
	clear(m.seen)
	return true
}

// augment looks for an augmenting path from the node and takes it.
func (m *matching) augment(node int) bool {
	for _, other := range m.edges[node] {
		if m.partner[other] < 0 {
			m.partner[other] = node
			return true
		}
	}
	for _, other := range m.edges[node] {
		if !m.seen[other] {
			m.seen[other] = true
			if m.augment(m.partner[other]) {
				m.partner[other] = node
				return true
			}
		}
	}
	return false
}
