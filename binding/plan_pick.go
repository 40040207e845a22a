package binding

import (
	"cmp"
	"slices"

	"github.com/pvbind/pvbind/accessmode"
)

// pick is a volume that fits a claim on a node.
type pick struct {
	stock
	size  int64
	modes accessmode.Set
}

// comparePicks orders the volumes that fit, on a node, whatever the claim (M13): the smallest capacity first,
// then the fewest access modes, then by name.
func comparePicks(a, b pick) int {
	bySize := cmp.Compare(a.size, b.size)
	if bySize == 0 && !exact(a.size) {
		bySize = compareQuantities(a.amount(), b.amount())
	}
	return cmp.Or(bySize, accessmode.Compare(a.modes, b.modes), cmp.Compare(a.Name, b.Name))
}

// picker looks for the best of the free volumes for a claim.
type picker struct {
	*openClaim
	most    int // how many
	ask     rank
	serving slots
	recheck bool // what is found must be compared with the claim once more
	found   []pick
}

// pick appends the best of the free volumes that fit, at most so many, the best first.
func (o *openClaim) pick(most int, to []pick) []pick {
	if o.stocks == nil {
		return to
	}
	p := picker{openClaim: o, most: most, ask: askOf(&o.criteria), serving: serving(o.modes), found: to}
	p.onShelf(o.stocks)
	slices.SortFunc(p.found[len(to):], comparePicks)
	return p.found[:min(len(to)+most, len(p.found))]
}

// onShelf looks where search.onShelf looks.
func (p *picker) onShelf(f *shelf) {
	if p.selector != nil && !p.preselected {
		p.recheck = true
		if sought, count := f.narrowest(p.claim.Spec.Selector); sought.key != "" && count <= f.countOn(p.node) {
			f.having(sought, p.in)
			return
		}
	}
	p.in(&f.anywhere)
	f.surelyOn(p.node, p.in)
	p.recheck = true
	f.perhapsOn(p.node, p.in)
}

func (p *picker) in(k *rack[stock]) {
	if k == nil {
		return
	}
	for slot, rest := (k.used & p.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		p.inOrder(k.in(slot), narrowest[slot])
	}
}

// inOrder takes the first ones that will do: no other of the same modes is better.
func (p *picker) inOrder(order *ordered[stock], modes accessmode.Set) {
	left := p.most
	for at := order.seek(&p.ask); at.ok() && left > 0; at = at.forward() {
		if volume := at.item(); !p.recheck || p.fits(p.candidate(volume.PersistentVolume)) {
			p.found = append(p.found, pick{volume, at.size(), modes})
			left--
		}
	}
}
