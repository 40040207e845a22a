package index

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
	s.countBuckets(x.free, false)
	s.countBuckets(x.idle, true)
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

// addOneByOne adds the volumes that are in no bucket.
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
	serving modeMask
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

func (s *survey) countBuckets(all buckets, idle bool) {
	for group, bucket := range all {
		against := against(s.c, group)
		left := 0
		for _, trees := range []*modeTrees[stock]{&bucket.anywhere, &bucket.placed} {
			left += s.countTrees(trees)
		}
		if len(against) > 0 {
			s.Count(against[0], left)
			continue
		}
		s.countLeft(bucket, left, idle)
	}
}

// countTrees counts what fails for its size or modes, and returns how many are left.
func (s *survey) countTrees(k *modeTrees[stock]) (left int) {
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
func (s *survey) countLeft(f *bucket, left int, idle bool) {
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

// passing counts, of the volumes that are left, those that the selector matches, and of these the ones
// that are usable on the node.
func (s *survey) passing(f *bucket, left int) (selected, usable int) {
	if s.c.Selector == nil {
		usable = s.enough(&f.anywhere)
		f.surelyOn(s.c.Node, func(k *modeTrees[stock]) { usable += s.enough(k) })
		f.perhapsOn(s.c.Node, func(k *modeTrees[stock]) {
			s.each(k, func(volume *corev1.PersistentVolume) {
				if s.c.Usable(volume) {
					usable++
				}
			})
		})
		return left, usable
	}
	s.selectable(f, func(k *modeTrees[stock]) {
		s.each(k, func(volume *corev1.PersistentVolume) {
			if !s.c.Selects(volume) {
				return
			}
			selected++
			if s.c.Usable(volume) {
				usable++
			}
		})
	})
	return selected, usable
}

// selectable visits the trees that have every volume that the selector matches.
func (s *survey) selectable(f *bucket, visit func(*modeTrees[stock])) {
	if sought, _ := f.narrowest(s.c.Claim.Spec.Selector); sought.key != "" {
		f.having(sought, visit)
		return
	}
	visit(&f.anywhere)
	visit(&f.placed)
}

// enough counts the volumes of the trees that are large enough and have the modes.
func (s *survey) enough(k *modeTrees[stock]) (count int) {
	if k == nil {
		return 0
	}
	for slot, rest := (k.used & s.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		count += k.in(slot).len() - k.in(slot).below(&s.ask)
	}
	return count
}

// each visits the same volumes.
func (s *survey) each(k *modeTrees[stock], visit func(*corev1.PersistentVolume)) {
	if k == nil {
		return
	}
	for slot, rest := (k.used & s.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		for at := k.in(slot).seek(&s.ask); at.ok(); at = at.forward() {
			visit(at.item().PersistentVolume)
		}
	}
}

// part is the volumes of a bucket against which the same of three reasons stand.
type part struct{ short, unselected, unusable bool }

// seekMisses looks for the volume that is nearest to fitting. What is alike but for its size is
// represented by the one that is nearest in size.
func (s *survey) seekMisses(all buckets, idle bool) {
	for group, bucket := range all {
		base := match.Miss{Reasons: len(against(s.c, group))}
		base.Add(idle, 1)
		base.Add(s.c.Delayed && s.c.Node == nil, 1)
		for bits := range 8 {
			part := part{short: bits&1 != 0, unselected: bits&2 != 0, unusable: bits&4 != 0}
			if part.unselected && s.c.Selector == nil || part.unusable && s.c.Node == nil {
				continue
			}
			m := base
			m.Add(part.unselected, 0)
			m.Add(part.unusable, 0)
			if part.short {
				m.Add(true, 0)
				m.Short = 1
			}
			s.having(bucket, part, func(k *modeTrees[stock]) { s.seekMiss(k, part, m) })
		}
	}
}

// having visits trees that have all volumes of a part.
func (s *survey) having(f *bucket, p part, visit func(*modeTrees[stock])) {
	switch {
	case s.c.Selector != nil && !p.unselected:
		s.selectable(f, visit)
		return
	case p.unusable:
	case s.c.Node != nil:
		visit(&f.anywhere)
		f.surelyOn(s.c.Node, visit)
		f.perhapsOn(s.c.Node, visit)
		return
	default:
		visit(&f.anywhere)
	}
	visit(&f.placed)
}

// seekMiss looks in the trees for a volume of a part, against which the reasons of m stand, and perhaps its
// modes.
func (s *survey) seekMiss(k *modeTrees[stock], p part, m match.Miss) {
	if k == nil {
		return
	}
	for slot, rest := k.used.next(); slot < len(narrowest); slot, rest = rest.next() {
		found := m
		found.Add(s.serving>>slot&1 == 0, 0)
		if s.best.Volume != nil && found.CompareReasons(s.best) > 0 {
			continue
		}
		found.Volume = s.nearest(k.in(slot), p)
		if found.Volume != nil && (s.best.Volume == nil || match.CompareMisses(found, s.best) < 0) {
			s.best = found
		}
	}
}

// nearest is the volume of a part whose size is nearest to the request.
func (s *survey) nearest(order *btree[stock], p part) *corev1.PersistentVolume {
	if !p.short {
		for at := order.seek(&s.ask); at.ok(); at = at.forward() {
			if s.isIn(p, at) {
				return at.item().PersistentVolume
			}
		}
		return nil
	}
	for last := order.last(&s.ask); last.ok(); {
		first := order.start(last)
		for at := first; ; at = at.forward() {
			if s.isIn(p, at) {
				return at.item().PersistentVolume
			}
			if at == last {
				break
			}
		}
		last = first.back()
	}
	return nil
}

func (s *survey) isIn(p part, at cursor[stock]) bool {
	volume := at.item().PersistentVolume
	return s.c.Selects(volume) != p.unselected && s.c.Usable(volume) != p.unusable
}
