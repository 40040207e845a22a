package binding

import (
	"cmp"
	"slices"
)

// assign gives volumes to the claims (S6). It takes two steps, for which volumes to use and which claims to
// serve can be told apart:
//
//  1. Volumes are taken from the best on, each that can be given to some claim in addition to those taken.
//     The sets of volumes that can be given away at once are a matroid, so that this greedy way ends with as
//     many as can be, and of the least total capacity.
//  2. Among these volumes, claims are served from the neediest on, each that can be served in addition. That
//     leaves no volume unused, and serves every claim that must be, if all of those can be served at all:
//     where some way serves these claims, and some way uses those volumes, one way does both (Mendelsohn and
//     Dulmage).
func assign(wishes []wish) {
	var open []*wish
	for i := range wishes {
		switch w := &wishes[i]; {
		case w.setAside != nil:
			w.given = w.setAside
		case len(w.picks) > 0:
			open = append(open, w)
		}
	}
	if len(open) == 1 {
		open[0].given = open[0].picks[0].PersistentVolume
		return
	}
	volumes := picksOf(open)
	used := pairing{edges: wantedBy(volumes, open), partner: unpaired(len(open))}
	volumes = used.greedily(volumes, len(open))
	slices.SortStableFunc(open, compareNeed)
	served := pairing{edges: wants(open, volumes), partner: unpaired(len(volumes))}
	for i := range open {
		served.add(i)
	}
	for v, i := range served.partner {
		open[i].given = volumes[v].PersistentVolume
	}
}

// compareNeed puts claims first that no volume can be made for, then those that ask for most.
func compareNeed(a, b *wish) int {
	needs := func(w *wish) int {
		if w.must != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(needs(a), needs(b)), b.request.Cmp(a.request))
}

// picksOf are the volumes that some claim could have, each once, the best first.
func picksOf(open []*wish) []pick {
	var all []pick
	for _, w := range open {
		all = append(all, w.picks...)
	}
	slices.SortFunc(all, comparePicks)
	return slices.CompactFunc(all, func(a, b pick) bool { return a.PersistentVolume == b.PersistentVolume })
}

// wants are, for each claim, the volumes that it could have, by their place in the list.
func wants(open []*wish, volumes []pick) [][]int {
	wants := make([][]int, len(open))
	for i, w := range open {
		for _, pick := range w.picks {
			if v, listed := slices.BinarySearchFunc(volumes, pick, comparePicks); listed {
				wants[i] = append(wants[i], v)
			}
		}
	}
	return wants
}

// wantedBy are, for each volume, the claims that could have it.
func wantedBy(volumes []pick, open []*wish) [][]int {
	wantedBy := make([][]int, len(volumes))
	for i, wanted := range wants(open, volumes) {
		for _, v := range wanted {
			wantedBy[v] = append(wantedBy[v], i)
		}
	}
	return wantedBy
}

// pairing pairs things of one side, by their number, with things of the other.
type pairing struct {
	edges   [][]int // what each thing can be paired with
	partner []int   // of each thing of the other side; -1: none
	seen    []bool
}

func unpaired(count int) []int { return slices.Repeat([]int{-1}, count) }

// greedily takes volumes, the best first, until no claim is left.
func (p *pairing) greedily(volumes []pick, claims int) []pick {
	var taken []pick
	for v := 0; v < len(volumes) && len(taken) < claims; v++ {
		if p.add(v) {
			taken = append(taken, volumes[v])
		}
	}
	return taken
}

// add pairs one thing more, and reports whether it could: others may change their partners, but none loses
// its own. What a search in vain has seen leads nowhere later either, so that it need not be seen again until
// something has changed.
func (p *pairing) add(one int) bool {
	if p.seen == nil {
		p.seen = make([]bool, len(p.partner))
	}
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
