package binding

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Summary is that of the Report which Explain gives for the same volumes (E2); errors are those of Find.
//
// It counts volumes by groups of like ones, so that it costs in groups, not in volumes. A selector costs
// as many looks as volumes have the label of it that the fewest have, or that match it; a node, as many
// as it can use. With Terms.Owners, every volume is looked at.
func (x *Index) Summary(claim *corev1.PersistentVolumeClaim, terms match.Terms) (match.Summary, error) {
	c, err := match.NewCriteria(claim, terms)
	if err != nil {
		return match.Summary{}, err
	}
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	if c.Owners != nil {
		c.Owners = x.ownersBeside(c.Owners)
		return c.Report(slices.Collect(maps.Values(x.volumes))).Summary(), nil
	}
	t := x.tally(&c)
	return t.Summary(), nil
}

func (x *Index) tally(c *match.Criteria) match.Tally {
	s := survey{c: c, ask: askOf(c), serving: serving(c.Modes)}
	q := x.query(c)
	if chosen := q.find().Volume; chosen != nil {
		s.Chosen = chosen.Name
	}
	x.addOneByOne(&s.Tally, c)
	s.countShelves(x.free, false)
	s.countShelves(x.idle, true)
	if s.Fit == 0 && s.Elsewhere.Volume == nil {
		s.seekMisses(x.free, false)
		s.seekMisses(x.idle, true)
		if s.best.Volume != nil {
			s.AddMiss(c.Verdict(s.best.Volume))
		}
	}
	s.Total = len(x.volumes)
	return s.Tally
}

// addOneByOne adds the volumes that are on no shelf.
func (x *Index) addOneByOne(t *match.Tally, c *match.Criteria) {
	deleting, claimed := x.deleting, x.claimed
	withOwners := *c
	withOwners.Owners = x.ownersOf
	for _, volume := range x.related[sharedName(obj.KeyOf(c.Claim))] {
		t.Add(withOwners.Verdict(volume))
		if x.standingOf(volume) == standsDeleting {
			deleting--
		} else {
			claimed--
		}
	}
	for _, volume := range x.malformed {
		t.Add(c.Verdict(volume))
	}
	t.Count(match.Deleting, deleting)
	t.Count(match.Claimed, claimed)
}

// survey is a tally in the making.
type survey struct {
	match.Tally
	c       *match.Criteria
	ask     rank
	serving slots
	best    match.Miss
}

// against are the reasons that stand against every volume of a group.
func against(c *match.Criteria, g group) []match.Reason {
	var reasons []match.Reason
	if g.volumeMode != c.VolumeMode {
		reasons = append(reasons, match.VolumeMode)
	}
	if g.class != c.Class {
		reasons = append(reasons, match.StorageClass)
	}
	if g.attributesClass != c.AttributesClass {
		reasons = append(reasons, match.AttributesClass)
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
			s.Count(against[0], left)
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
		s.Count(match.TooSmall, below)
		if below > 0 {
			s.AddTooSmall(order.start(order.last(&s.ask)).item().PersistentVolume)
		}
		if s.serving>>slot&1 == 0 {
			s.Count(match.AccessModes, order.len()-below)
			continue
		}
		left += order.len() - below
	}
	return left
}

// countLeft counts what the rules after the group's tell apart.
func (s *survey) countLeft(f *shelf, left int, idle bool) {
	selected, usable := left, left
	if s.c.Selector != nil || s.c.Node != nil {
		selected, usable = s.passing(f, left)
	}
	s.Count(match.Selector, left-selected)
	switch {
	case idle:
		s.Count(match.NotAvailable, selected)
	case s.c.Delayed && s.c.Node == nil:
		s.Count(match.Delayed, selected)
	default:
		s.Count(match.NodeAffinity, selected-usable)
		s.Fit += usable
	}
}
