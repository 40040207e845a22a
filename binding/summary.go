package binding

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	maxSummary = 512 // bytes
	maxName    = 63  // bytes of a volume's name in a summary
)

// summary counts verdicts for one line of text (E2). The zero value has counted nothing.
type summary struct {
	total, fit int
	chosen     string
	counts     [len(fitRules)]int       // by first reason, in the order of the rules
	largest    *corev1.PersistentVolume // of those counted as TooSmall
	nearest    Verdict
	elsewhere  Verdict // set aside for the claim and good but for the node (M13)
}

func (s *summary) add(v Verdict) {
	s.total++
	if v.Chosen {
		s.chosen = v.Volume.Name
	}
	if v.Fits() {
		s.fit++
		return
	}
	first := v.Mismatches[0].Reason
	s.count(first, 1)
	if first == TooSmall {
		s.addTooSmall(v.Volume)
	}
	s.addMiss(v)
	if v.setAside() && v.Mismatches.only(NodeAffinity) && (s.elsewhere.Volume == nil || v.Volume.Name < s.elsewhere.Volume.Name) {
		s.elsewhere = v
	}
}

func (s *summary) addMiss(v Verdict) {
	if v.nearby() && (s.nearest.Volume == nil || compareMisses(missOf(v), missOf(s.nearest)) < 0) {
		s.nearest = v
	}
}

func (s *summary) count(first Reason, volumes int) { s.counts[position(first)] += volumes }

// addTooSmall keeps the largest; of equals the first by name, for they may be written differently.
func (s *summary) addTooSmall(volume *corev1.PersistentVolume) {
	if s.largest == nil || cmp.Or(-compareCapacities(volume, s.largest), cmp.Compare(volume.Name, s.largest.Name)) < 0 {
		s.largest = volume
	}
}

// position is a reason's place in the order of the rules.
func position(reason Reason) int {
	return slices.IndexFunc(fitRules[:], func(r fitRule) bool { return r.reason == reason })
}

func (s *summary) String() string {
	line := strconv.Itoa(s.fit) + "/" + strconv.Itoa(s.total) + " volumes fit: "
	return oneLine(line+strings.Join(s.parts(), "; "), maxSummary)
}

func (s *summary) parts() []string {
	var parts []string
	switch {
	case s.total == 0:
		parts = append(parts, "there are none")
	case s.chosen != "":
		parts = append(parts, oneLine(s.chosen, maxName)+" chosen")
	case s.fit > 0:
		parts = append(parts, "none chosen")
	}
	if counts := s.countsText(); counts != "" {
		parts = append(parts, counts)
	}
	switch {
	case s.chosen == "" && s.elsewhere.Volume != nil:
		parts = append(parts, "set aside for the claim is "+missText(s.elsewhere))
	case s.fit == 0 && s.nearest.Volume != nil:
		parts = append(parts, "nearest "+missText(s.nearest))
	}
	return parts
}

func missText(v Verdict) string {
	return oneLine(v.Volume.Name, maxName) + ": " + v.Mismatches.String()
}

// countsText is "7 StorageClass, 3 TooSmall (largest 5Gi)", the highest number first.
func (s *summary) countsText() string {
	var order []int
	for i, count := range s.counts {
		if count > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.counts[b], s.counts[a]) })
	texts := make([]string, len(order))
	for n, i := range order {
		texts[n] = strconv.Itoa(s.counts[i]) + " " + string(fitRules[i].reason)
		if fitRules[i].reason == TooSmall {
			capacity, _ := candidate{PersistentVolume: s.largest}.capacity()
			texts[n] += " (largest " + capacity.String() + ")"
		}
	}
	return strings.Join(texts, ", ")
}
