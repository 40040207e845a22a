package index

import (
	"iter"
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
	q := x.query(&c)
	return q.Summary(), nil
}

// Summary counts why no volume fits the claim. It is rule E2.
func (q *Query) Summary() match.Summary {
	c := counter{Query: q}
	c.NoNearMiss = q.Provisions
	if chosen := q.find().Volume; chosen != nil {
		c.Chosen = chosen.Name
	}
	c.countBuckets(q.x.free, "")
	c.countBuckets(q.x.notAvailable, match.NotAvailable)
	c.countOthers()
	if c.Fit == 0 && c.Elsewhere.Volume == nil && !c.NoNearMiss {
		c.findNearMiss(q.x.free)
		c.findNearMiss(q.x.notAvailable, match.NotAvailable)
		if c.nearest.Volume != nil {
			known := q.Criteria
			known.WellFormed = true
			c.AddNearMiss(known.Verdict(c.nearest.Volume))
		}
	}
	return c.Counts.Summary()
}

// counter counts the volumes of an Index for a claim. Its Total is of those counted so far.
type counter struct {
	match.Counts
	*Query
	nearest match.NearMiss
}

// countOthers counts the volumes that are in no bucket.
func (c *counter) countOthers() {
	withOwners := c.Criteria
	withOwners.Owners = c.x.ownersOf
	deleting := c.x.deleting
	for _, volume := range c.related {
		c.Add(withOwners.Verdict(volume))
		if volume.DeletionTimestamp != nil {
			deleting--
		}
	}
	for _, volume := range c.x.malformed {
		c.Add(c.Verdict(volume))
	}
	c.Count(match.Deleting, deleting)
	c.Count(match.BoundToAnotherClaim, len(c.x.volumes)-c.Total-deleting)
	c.Total = len(c.x.volumes)
}

// countBuckets counts the volumes in buckets under their first reason. unavailable is a reason against all of them, or "".
func (c *counter) countBuckets(all buckets, unavailable match.Reason) {
	for group, bucket := range all {
		c.Total += bucket.len()
		left := c.countTrees(bucket.anywhere) + c.countTrees(bucket.affine)
		if group != c.Group {
			c.Count(c.mismatches(group)[0], left)
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

// countTrees counts what is too small or lacks an access mode, and returns how many volumes are left.
func (c *counter) countTrees(trees volumeTrees) (left int) {
	for i := range trees {
		tree := &trees[i]
		below := tree.below(&c.least)
		c.Count(match.TooSmall, below)
		for largest := range c.tooSmall(tree) {
			c.AddTooSmall(largest)
			break
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
	countUsable := func(volume *corev1.PersistentVolume) {
		if c.Usable(volume) {
			usable++
		}
	}
	if c.Claim.Spec.Selector != nil {
		c.eachSelected(b, func(volume *corev1.PersistentVolume) {
			selected++
			countUsable(volume)
		})
		return selected, usable
	}
	b.eachOn(c.Node, func(trees volumeTrees, exact bool) {
		if !exact {
			c.eachIn(trees, countUsable)
			return
		}
		for i := range trees {
			if tree := &trees[i]; tree.modes.Contains(c.Modes) {
				usable += tree.len() - tree.below(&c.least)
			}
		}
	})
	return left, usable
}

// part is whether the selector matches volumes of a bucket.
type part bool

const (
	selected   part = true
	unselected part = false
)

// findNearMiss searches buckets for the volume that is nearest to fitting, of those that are usable on the node. Of volumes
// with the same reasons against them, only the one that is nearest in size counts. The reasons are against every volume in
// the buckets.
func (c *counter) findNearMiss(all buckets, reasons ...match.Reason) {
	if c.waits() {
		reasons = append(reasons, match.WaitForFirstConsumer)
	}
	for group, bucket := range all {
		ofGroup := append(c.mismatches(group), reasons...)
		c.findNearMissOf(bucket, selected, ofGroup)
		if c.Claim.Spec.Selector != nil {
			c.findNearMissOf(bucket, unselected, append(ofGroup, match.Selector))
		}
	}
}

func (c *counter) findNearMissOf(b *bucket, p part, reasons []match.Reason) {
	search := func(trees volumeTrees) {
		for i := range trees {
			c.findNearMissIn(&trees[i], p, reasons)
		}
	}
	if selector := c.Claim.Spec.Selector; selector != nil && p == selected {
		b.eachSelectable(selector, search)
		return
	}
	b.eachOn(c.Node, func(trees volumeTrees, _ bool) { search(trees) })
}

// findNearMissIn searches a tree for a volume of a part. The reasons are against each; access modes and size may be too.
func (c *counter) findNearMissIn(tree *modeTree[volumeEntry], p part, reasons []match.Reason) {
	if !tree.modes.Contains(c.Modes) {
		reasons = append(reasons, match.AccessModes)
	}
	if c.nearest.Volume != nil && match.NearMissOf(nil, reasons...).Compare(c.nearest) > 0 {
		return
	}
	volume, tooSmall := c.nearestInSize(tree, p)
	if volume == nil {
		return
	}
	if tooSmall {
		reasons = append(reasons, match.TooSmall)
	}
	if found := match.NearMissOf(volume, reasons...); c.nearest.Volume == nil || found.Compare(c.nearest) < 0 {
		c.nearest = found
	}
}

// nearestInSize returns the volume of a part whose capacity is nearest to the request: the smallest that is enough, or else
// the largest that is not, of equals the first by name; nil if the tree has none.
func (c *counter) nearestInSize(tree *modeTree[volumeEntry], p part) (nearest *corev1.PersistentVolume, tooSmall bool) {
	isIn := func(volume *corev1.PersistentVolume) bool { return part(c.Selects(volume)) == p && c.Usable(volume) }
	for _, entry := range tree.from(&c.least) {
		if isIn(entry.PersistentVolume) {
			return entry.PersistentVolume, false
		}
	}
	for volume := range c.tooSmall(tree) {
		if isIn(volume) {
			return volume, true
		}
	}
	return nil, false
}

// tooSmall returns the volumes of the tree that are too small, the largest first, then by name.
func (c *counter) tooSmall(tree *modeTree[volumeEntry]) iter.Seq[*corev1.PersistentVolume] {
	return func(yield func(*corev1.PersistentVolume) bool) {
		from := c.least
		for largest, found := tree.last(&from); found; largest, found = tree.last(&from) {
			from = lowest(largest.capacity())
			for _, entry := range tree.from(&from) {
				if !yield(entry.PersistentVolume) {
					return
				}
				if entry == largest {
					break
				}
			}
		}
	}
}
