package binding

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Summary is that of the Report which Explain gives for the same volumes (E2); errors are those of Find.
//
// It counts volumes by groups of like ones, so that it costs in groups, not in volumes. A selector costs
// as many looks as volumes have the label of it that the fewest have, or that match it; a node, as many
// as it can use. With Terms.Owners, every volume is looked at.
func (x *Index) Summary(claim *corev1.PersistentVolumeClaim, terms Terms) (Summary, error) {
	c, err := newCriteria(claim, terms)
	if err != nil {
		return Summary{}, err
	}
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	if c.owners != nil {
		c.owners = x.ownersBeside(c.owners)
		return c.report(slices.Collect(maps.Values(x.volumes))).Summary(), nil
	}
	t := x.tally(&c)
	return t.summary(), nil
}

func (x *Index) tally(c *criteria) tally {
	s := survey{c: c, ask: askOf(c), serving: serving(c.modes)}
	q := x.query(c)
	if chosen := q.find().Volume; chosen != nil {
		s.chosen = chosen.Name
	}
	x.addOneByOne(&s.tally, c)
	s.countShelves(x.free, false)
	s.countShelves(x.idle, true)
	if s.fit == 0 && s.elsewhere.Volume == nil {
		s.seekMisses(x.free, false)
		s.seekMisses(x.idle, true)
		if s.best.volume != nil {
			s.addMiss(c.verdict(s.best.volume))
		}
	}
	s.total = len(x.volumes)
	return s.tally
}

// addOneByOne adds the volumes that are on no shelf.
func (x *Index) addOneByOne(t *tally, c *criteria) {
	deleting, claimed := x.deleting, x.claimed
	withOwners := *c
	withOwners.owners = x.ownersOf
	for _, volume := range x.related[sharedName(KeyOf(c.claim))] {
		t.add(withOwners.verdict(volume))
		if x.standingOf(volume) == standsDeleting {
			deleting--
		} else {
			claimed--
		}
	}
	for _, volume := range x.malformed {
		t.add(c.verdict(volume))
	}
	t.count(Deleting, deleting)
	t.count(Claimed, claimed)
}

// survey is a tally in the making.
type survey struct {
	tally
	c       *criteria
	ask     rank
	serving slots
	best    miss
}

// against are the reasons that stand against every volume of a group.
func against(c *criteria, g group) []Reason {
	var reasons []Reason
	if g.volumeMode != c.volumeMode {
		reasons = append(reasons, VolumeMode)
	}
	if g.class != c.class {
		reasons = append(reasons, StorageClass)
	}
	if g.attributesClass != c.attributesClass {
		reasons = append(reasons, AttributesClass)
	}
	return reasons
}

func (s *survey) countShelves(shelves catalog, idle bool) {
	for group, shelf := range shelves {
		against := against(s.c, group)
		left := 0
		for _, rack := range []*rack[stock]{&shelf.anywhere, &shelf.placed} {
			left += s.countRack(rack)
		}
		if len(against) > 0 {
			s.count(against[0], left)
			continue
		}
		s.countLeft(shelf, left, idle)
	}
}

// countRack counts what fails for its size or modes, and returns how many are left.
func (s *survey) countRack(k *rack[stock]) (left int) {
	for slot, rest := k.used.next(); slot < len(narrowest); slot, rest = rest.next() {
		order := k.in(slot)
		below := order.below(&s.ask)
		s.count(TooSmall, below)
		if below > 0 {
			s.addTooSmall(order.start(order.last(&s.ask)).item().PersistentVolume)
		}
		if s.serving>>slot&1 == 0 {
			s.count(AccessModes, order.len()-below)
			continue
		}
		left += order.len() - below
	}
	return left
}

// countLeft counts what the rules after the group's tell apart.
func (s *survey) countLeft(f *shelf, left int, idle bool) {
	selected, usable := left, left
	if s.c.selector != nil || s.c.node != nil {
		selected, usable = s.passing(f, left)
	}
	s.count(Selector, left-selected)
	switch {
	case idle:
		s.count(NotAvailable, selected)
	case s.c.delayed && s.c.node == nil:
		s.count(Delayed, selected)
	default:
		s.count(NodeAffinity, selected-usable)
		s.fit += usable
	}
}
