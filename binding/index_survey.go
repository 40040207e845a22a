package binding

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
)

// passing counts, of the volumes that are left, those that the selector matches, and of these the ones
// that are usable on the node.
func (s *survey) passing(f *shelf, left int) (selected, usable int) {
	if s.c.Selector == nil {
		usable = s.enough(&f.anywhere)
		f.surelyOn(s.c.Node, func(k *rack[stock]) { usable += s.enough(k) })
		f.perhapsOn(s.c.Node, func(k *rack[stock]) {
			s.each(k, func(volume *corev1.PersistentVolume) {
				if s.c.Usable(volume) {
					usable++
				}
			})
		})
		return left, usable
	}
	s.selectable(f, func(k *rack[stock]) {
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

// selectable visits the racks that have every volume that the selector matches.
func (s *survey) selectable(f *shelf, visit func(*rack[stock])) {
	if sought, _ := f.narrowest(s.c.Claim.Spec.Selector); sought.key != "" {
		f.having(sought, visit)
		return
	}
	visit(&f.anywhere)
	visit(&f.placed)
}

// enough counts the volumes of a rack that are large enough and have the modes.
func (s *survey) enough(k *rack[stock]) (count int) {
	if k == nil {
		return 0
	}
	for slot, rest := (k.used & s.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		count += k.in(slot).len() - k.in(slot).below(&s.ask)
	}
	return count
}

// each visits the same volumes.
func (s *survey) each(k *rack[stock], visit func(*corev1.PersistentVolume)) {
	if k == nil {
		return
	}
	for slot, rest := (k.used & s.serving).next(); slot < len(narrowest); slot, rest = rest.next() {
		for at := k.in(slot).seek(&s.ask); at.ok(); at = at.forward() {
			visit(at.item().PersistentVolume)
		}
	}
}

// part is the volumes of a shelf against which the same of three reasons stand.
type part struct{ short, unselected, unusable bool }

// seekMisses looks for the volume that is nearest to fitting. What is alike but for its size is
// represented by the one that is nearest in size.
func (s *survey) seekMisses(shelves catalog, idle bool) {
	for group, shelf := range shelves {
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
			s.having(shelf, part, func(k *rack[stock]) { s.seekMiss(k, part, m) })
		}
	}
}

// having visits racks that have all volumes of a part.
func (s *survey) having(f *shelf, p part, visit func(*rack[stock])) {
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

// seekMiss looks in a rack for a volume of a part, against which the reasons of m stand, and perhaps its
// modes.
func (s *survey) seekMiss(k *rack[stock], p part, m match.Miss) {
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
func (s *survey) nearest(order *ordered[stock], p part) *corev1.PersistentVolume {
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
