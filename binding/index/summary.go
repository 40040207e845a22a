package index

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
)

// Summary returns the Summary of the Report that match.Explain returns for the same volumes; errors are those of Find
// (E2).
//
// It counts volumes by groups of like ones, so that it costs in groups, not in volumes. A selector costs as many checks as
// volumes have its rarest label, or match it. A node costs as many as there are volumes that may be usable on it. With
// Terms.Owners, every volume is checked.
func (x *Index) Summary(claim *corev1.PersistentVolumeClaim, terms match.Terms) (match.Summary, error) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	if terms.Owners != nil {
		terms.Owners = x.ownersOr(terms.Owners)
		report, err := match.Explain(match.Request{Claim: claim, Volumes: slices.Collect(maps.Values(x.volumes)), Terms: terms})
		return report.Summary(), err
	}
	c, err := match.NewCriteria(claim, terms)
	if err != nil {
		return match.Summary{}, err
	}
	counts := x.counts(&c)
	return counts.Summary(), nil
}

func (x *Index) counts(criteria *match.Criteria) match.Counts {
	c := newCounter(criteria)
	q := x.query(criteria)
	if chosen := q.find().Volume; chosen != nil {
		c.Chosen = chosen.Name
	}
	c.countOthers(x)
	c.countBuckets(x.free, "")
	c.countBuckets(x.notAvailable, match.NotAvailable)
	if c.Fit == 0 && c.Elsewhere.Volume == nil {
		c.findNearMiss(x.free)
		c.findNearMiss(x.notAvailable, match.NotAvailable)
		if c.nearest.Volume != nil {
			c.AddNearMiss(criteria.Verdict(c.nearest.Volume))
		}
	}
	c.Total = len(x.volumes)
	return c.Counts
}

// counter counts the volumes of an Index for a claim.
type counter struct {
	match.Counts
	*match.Criteria
	least   key // before the first volume that is large enough
	nearest match.NearMiss
}

func newCounter(c *match.Criteria) counter { return counter{Criteria: c, least: lowest(c.Request)} }

// waits reports whether the claim is to wait for a node (M11).
func (c *counter) waits() bool { return c.WaitsForFirstConsumer && c.Node == nil }

// countOthers counts the volumes that are in no bucket.
func (c *counter) countOthers(x *Index) {
	others := maps.Clone(x.others)
	withOwners := *c.Criteria
	withOwners.Owners = x.ownersOf
	for _, volume := range x.relatedTo(c.Claim) {
		c.Add(withOwners.Verdict(volume))
		others[x.unavailable(volume)]--
	}
	for _, volume := range x.malformed {
		c.Add(c.Verdict(volume))
	}
	for reason, volumes := range others {
		c.Count(reason, volumes)
	}
}

// mismatches returns the reasons that count against every volume of a group, in the order of the rules.
func (c *counter) mismatches(g match.Group) []match.Reason {
	var reasons []match.Reason
	if g.VolumeMode != c.VolumeMode {
		reasons = append(reasons, match.VolumeMode)
	}
	if g.Class != c.Class {
		reasons = append(reasons, match.StorageClass)
	}
	if g.AttributesClass != c.AttributesClass {
		reasons = append(reasons, match.AttributesClass)
	}
	return reasons
}

// countBuckets counts the volumes in buckets under their first reason. unavailable is a reason against all of them, or "".
func (c *counter) countBuckets(all buckets, unavailable match.Reason) {
	for group, bucket := range all {
		left := c.countTrees(bucket.anywhere) + c.countTrees(bucket.affine)
		if reasons := c.mismatches(group); len(reasons) > 0 {
			c.Count(reasons[0], left)
			continue
		}
		selected, usable := c.passing(bucket, left)
		c.Count(match.Selector, left-selected)
		switch {
		case unavailable != "":
			c.Count(unavailable, selected)
		case c.waits():
			c.Count(match.WaitForFirstConsumer, selected)
		default:
			c.Count(match.NodeAffinity, selected-usable)
			c.Fit += usable
		}
	}
}

// countTrees counts what is too small or lacks an access mode, and returns how many volumes are left.
func (c *counter) countTrees(trees volumeTrees) (left int) {
	for i := range trees {
		tree := &trees[i]
		below := tree.below(&c.least)
		c.Count(match.TooSmall, below)
		if largest, found := tree.last(&c.least); found {
			first, _ := tree.first(new(lowest(largest.capacity())))
			c.AddTooSmall(first.PersistentVolume)
		}
		if tree.modes.Contains(c.Modes) {
			left += tree.len() - below
		} else {
			c.Count(match.AccessModes, tree.len()-below)
		}
	}
	return left
}

// passing counts, of the volumes that are left, those that the selector matches, and of these the ones that are usable on
// the node.
func (c *counter) passing(b *bucket, left int) (selected, usable int) {
	switch {
	case c.Claim.Spec.Selector != nil:
		c.selectable(b, func(trees volumeTrees) {
			c.each(trees, func(volume *corev1.PersistentVolume) {
				if c.Selects(volume) {
					selected++
					usable += c.countUsable(volume)
				}
			})
		})
		return selected, usable
	case c.Node == nil:
		return left, left
	}
	enough := func(trees volumeTrees) {
		for i := range trees {
			if tree := &trees[i]; tree.modes.Contains(c.Modes) {
				usable += tree.len() - tree.below(&c.least)
			}
		}
	}
	enough(b.anywhere)
	b.exactOn(c.Node, enough)
	b.candidatesOn(c.Node, func(trees volumeTrees) {
		c.each(trees, func(volume *corev1.PersistentVolume) { usable += c.countUsable(volume) })
	})
	return left, usable
}

func (c *counter) countUsable(volume *corev1.PersistentVolume) int {
	if c.Usable(volume) {
		return 1
	}
	return 0
}

// selectable visits the trees that have every volume that the selector matches.
func (c *counter) selectable(b *bucket, visit func(volumeTrees)) {
	if required, _ := b.narrowest(c.Claim.Spec.Selector); required.key != "" {
		required.eachLabel(func(l label) { visit(b.labelled[l]) })
		return
	}
	visit(b.anywhere)
	visit(b.affine)
}

// each visits the volumes that are large enough and have the access modes.
func (c *counter) each(trees volumeTrees, visit func(*corev1.PersistentVolume)) {
	for i := range trees {
		if !trees[i].modes.Contains(c.Modes) {
			continue
		}
		for _, entry := range trees[i].from(&c.least) {
			visit(entry.PersistentVolume)
		}
	}
}

// part is the volumes of a bucket that have the same of three reasons against them.
type part struct{ tooSmall, unselected, unusable bool }

// reasons appends the reasons against the volumes of the part.
func (p part) reasons(reasons []match.Reason) []match.Reason {
	if p.tooSmall {
		reasons = append(reasons, match.TooSmall)
	}
	if p.unselected {
		reasons = append(reasons, match.Selector)
	}
	if p.unusable {
		reasons = append(reasons, match.NodeAffinity)
	}
	return reasons
}

// findNearMiss searches buckets for the volume that is nearest to fitting. Of volumes with the same reasons against them,
// only the one that is nearest in size counts. The reasons are against every volume in the buckets.
func (c *counter) findNearMiss(all buckets, reasons ...match.Reason) {
	if c.waits() {
		reasons = append(reasons, match.WaitForFirstConsumer)
	}
	room := make([]match.Reason, 0, 12)
	for group, bucket := range all {
		ofGroup := append(append(room, reasons...), c.mismatches(group)...)
		for bits := range 8 {
			p := part{tooSmall: bits&1 != 0, unselected: bits&2 != 0, unusable: bits&4 != 0}
			if p.unselected && c.Claim.Spec.Selector == nil || p.unusable && c.Node == nil {
				continue
			}
			ofPart := p.reasons(ofGroup)
			c.eachTreeOf(bucket, p, func(trees volumeTrees) { c.findNearMissIn(trees, p, ofPart) })
		}
	}
}

// eachTreeOf visits trees that have all volumes of a part.
func (c *counter) eachTreeOf(b *bucket, p part, visit func(volumeTrees)) {
	switch {
	case c.Claim.Spec.Selector != nil && !p.unselected:
		c.selectable(b, visit)
	case p.unusable:
		visit(b.affine)
	case c.Node != nil:
		visit(b.anywhere)
		b.exactOn(c.Node, visit)
		b.candidatesOn(c.Node, visit)
	default:
		visit(b.anywhere)
		visit(b.affine)
	}
}

// findNearMissIn searches trees for a volume of a part. The reasons are against each, and its access modes may be too.
func (c *counter) findNearMissIn(trees volumeTrees, p part, reasons []match.Reason) {
	for i := range trees {
		found := match.NearMissOf(nil, reasons...)
		if !trees[i].modes.Contains(c.Modes) {
			found = match.NearMissOf(nil, append(reasons, match.AccessModes)...)
		}
		if c.nearest.Volume != nil && found.Compare(c.nearest) > 0 {
			continue
		}
		found.Volume = c.nearestInSize(&trees[i].btree, p)
		if found.Volume != nil && (c.nearest.Volume == nil || found.Compare(c.nearest) < 0) {
			c.nearest = found
		}
	}
}

// nearestInSize returns the volume of a part whose capacity is nearest to the request, of equals the first by name; nil if
// the tree has none.
func (c *counter) nearestInSize(tree *btree[volumeEntry], p part) *corev1.PersistentVolume {
	if !p.tooSmall {
		for _, entry := range tree.from(&c.least) {
			if c.isIn(p, entry.PersistentVolume) {
				return entry.PersistentVolume
			}
		}
		return nil
	}
	from := c.least
	for largest, found := tree.last(&from); found; largest, found = tree.last(&from) {
		from = lowest(largest.capacity())
		for _, entry := range tree.from(&from) {
			if c.isIn(p, entry.PersistentVolume) {
				return entry.PersistentVolume
			}
			if entry == largest {
				break
			}
		}
	}
	return nil
}

func (c *counter) isIn(p part, volume *corev1.PersistentVolume) bool {
	return c.Selects(volume) != p.unselected && c.Usable(volume) != p.unusable
}
