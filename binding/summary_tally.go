package binding

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// tally counts verdicts for a Summary. The zero value has counted nothing.
type tally struct {
	total, fit int
	chosen     string
	counts     [len(fitRules)]int       // by first reason, in the order of the rules
	largest    *corev1.PersistentVolume // of those counted as TooSmall
	nearest    Verdict
	elsewhere  Verdict // set aside for the claim and good but for the node (M13)
}

func (t *tally) add(v Verdict) {
	t.total++
	if v.Chosen {
		t.chosen = v.Volume.Name
	}
	if v.Fits() {
		t.fit++
		return
	}
	first := v.Mismatches[0].Reason
	t.count(first, 1)
	if first == TooSmall {
		t.addTooSmall(v.Volume)
	}
	t.addMiss(v)
	if v.elsewhere() && (t.elsewhere.Volume == nil || v.Volume.Name < t.elsewhere.Volume.Name) {
		t.elsewhere = v
	}
}

func (t *tally) addMiss(v Verdict) {
	if v.nearby() && (t.nearest.Volume == nil || compareMisses(missOf(v), missOf(t.nearest)) < 0) {
		t.nearest = v
	}
}

func (t *tally) count(first Reason, volumes int) { t.counts[position(first)] += volumes }

// addTooSmall keeps the largest; of equals the first by name, for they may be written differently.
func (t *tally) addTooSmall(volume *corev1.PersistentVolume) {
	if t.largest == nil || cmp.Or(-compareCapacities(volume, t.largest), cmp.Compare(volume.Name, t.largest.Name)) < 0 {
		t.largest = volume
	}
}

func (t *tally) summary() Summary {
	s := Summary{Volumes: t.total, Fit: t.fit, Chosen: t.chosen, Counts: t.ordered()}
	switch {
	case t.chosen == "" && t.elsewhere.Volume != nil:
		s.Nearest = &Verdict{}
		*s.Nearest = t.elsewhere
	case t.fit == 0 && t.nearest.Volume != nil:
		s.Nearest = &Verdict{}
		*s.Nearest = t.nearest
	}
	return s
}

// ordered are the counts, the highest first.
func (t *tally) ordered() []Count {
	var counts []Count
	for i, volumes := range t.counts {
		if volumes == 0 {
			continue
		}
		count := Count{Reason: fitRules[i].reason, Volumes: volumes}
		if count.Reason == TooSmall {
			capacity, _ := capacityOf(t.largest)
			count.Largest = capacity.String()
		}
		counts = append(counts, count)
	}
	slices.SortStableFunc(counts, func(a, b Count) int { return cmp.Compare(b.Volumes, a.Volumes) })
	return counts
}

// position is a reason's place in the order of the rules.
func position(reason Reason) int {
	return slices.IndexFunc(fitRules[:], func(r fitRule) bool { return r.reason == reason })
}
