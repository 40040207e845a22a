package binding

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	maxSummary = 512 // bytes
	maxName    = 63  // bytes of a volume's name in a summary
)

// summary counts verdicts for one line of text (E2). The zero value has counted nothing.
type summary struct {
	total, fit int
	chosen     string
	counts     [len(fitRules)]int // by first reason, in the order of the rules
	largest    resource.Quantity
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
	s.count(v)
	if s.nearest.Volume == nil || compareMisses(v, s.nearest) < 0 {
		s.nearest = v
	}
	if v.setAside() && v.Mismatches.only(NodeAffinity) {
		s.elsewhere = v
	}
}

func (s *summary) count(v Verdict) {
	first := v.Mismatches[0].Reason
	s.counts[position(first)]++
	capacity, _ := candidate{PersistentVolume: v.Volume}.capacity()
	if first == TooSmall && capacity.Cmp(s.largest) > 0 {
		s.largest = capacity
	}
}

// position is a reason's place in the order of the rules.
func position(reason Reason) int {
	return slices.IndexFunc(fitRules[:], func(r fitRule) bool { return r.reason == reason })
}

// compareMisses puts first the volume that is nearest to fitting: the one that the fewest reasons
// stand against that no field could mend, then the fewest reasons, then by name.
func compareMisses(a, b Verdict) int {
	return cmp.Or(
		cmp.Compare(beyondMending(a.Mismatches), beyondMending(b.Mismatches)),
		cmp.Compare(len(a.Mismatches), len(b.Mismatches)),
		cmp.Compare(a.Volume.Name, b.Volume.Name),
	)
}

// beyondMending counts the reasons that no change of a field of claim or volume would mend.
func beyondMending(mismatches Mismatches) int {
	count := 0
	for _, mismatch := range mismatches {
		switch mismatch.Reason {
		case Deleting, Claimed, NotAvailable, Delayed:
			count++
		}
	}
	return count
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
			texts[n] += " (largest " + s.largest.String() + ")"
		}
	}
	return strings.Join(texts, ", ")
}
