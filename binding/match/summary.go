package match

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/phase"
)

const (
	maxSummary = 512 // bytes
	maxName    = 63  // bytes of a volume's name in a summary
)

// Summary is what became of all volumes in a search, in numbers (E2). Its String is one line; as JSON it has the
// fields below.
type Summary struct {
	// Volumes is how many there are, and Fit how many of them would do.
	Volumes int `json:"volumes"`
	Fit     int `json:"fit"`
	// Chosen is the name of the volume that Find chooses; "" if it chooses none.
	Chosen string `json:"chosen,omitempty"`
	// Counts has the volumes that do not fit, each counted once, under the first of its reasons. The highest
	// number comes first, and ties are in the order of the M rules.
	Counts []Count `json:"counts,omitempty"`
	// Nearest is the near miss: the volume that needs least to fit, if none fits. If a volume that is bound or pre-bound
	// to the claim would fit but for the node, it is that one, whatever fits (M13). It is nil if there is none: a volume
	// that another claim has or that is being deleted is not near.
	Nearest *Verdict `json:"nearest,omitempty"`
}

// Count is how many volumes fail for one reason first.
type Count struct {
	Reason  Reason `json:"reason"`
	Volumes int    `json:"volumes"`
	// Largest is the capacity of the largest of them, if they are TooSmall.
	Largest string `json:"largest,omitempty"`
}

// String returns the summary in one line of at most 512 bytes:
//
//	0/12 volumes fit: 7 StorageClass, 3 TooSmall (largest 5Gi), 2 BoundToAnotherClaim; pv-7 would fit but for its class: "slow", the claim requests "fast"
func (s Summary) String() string {
	var parts []string
	switch {
	case s.Volumes == 0:
		parts = append(parts, "there are none")
	case s.Chosen != "":
		parts = append(parts, oneline.Text(s.Chosen, maxName)+" chosen")
	case s.Fit > 0:
		parts = append(parts, "none chosen")
	}
	if len(s.Counts) > 0 {
		parts = append(parts, s.countsText())
	}
	if s.Nearest != nil {
		parts = append(parts, s.Nearest.String())
	}
	line := strconv.Itoa(s.Fit) + "/" + strconv.Itoa(s.Volumes) + " volumes fit: "
	return oneline.Text(line+strings.Join(parts, "; "), maxSummary)
}

// countsText returns "7 StorageClass, 3 TooSmall (largest 5Gi)".
func (s Summary) countsText() string {
	texts := make([]string, len(s.Counts))
	for i, count := range s.Counts {
		texts[i] = strconv.Itoa(count.Volumes) + " " + string(count.Reason)
		if count.Largest != "" {
			texts[i] += " (largest " + count.Largest + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// Counts counts volumes for a Summary. The zero value has counted nothing. An index that need not look at each volume
// calls Count, AddTooSmall and AddNearMiss instead of Add.
type Counts struct {
	Total, Fit int
	Chosen     string
	counts     [len(fitRules)]int       // by first reason, in the order of the rules
	largest    *corev1.PersistentVolume // of those counted as TooSmall
	nearest    Verdict
	Elsewhere  Verdict // bound or pre-bound to the claim, and would fit but for the node (M13)
}

// Add counts one volume.
func (c *Counts) Add(v Verdict) {
	c.Total++
	if v.Chosen {
		c.Chosen = v.Volume.Name
	}
	if v.Fits() {
		c.Fit++
		return
	}
	first := v.Mismatches[0].Reason
	c.Count(first, 1)
	if first == TooSmall {
		c.AddTooSmall(v.Volume)
	}
	c.AddNearMiss(v)
	if v.elsewhere() && (c.Elsewhere.Volume == nil || v.Volume.Name < c.Elsewhere.Volume.Name) {
		c.Elsewhere = v
	}
}

// Count adds volumes that fail for this reason first.
func (c *Counts) Count(first Reason, volumes int) { c.counts[position(first)] += volumes }

// AddTooSmall keeps the volume if it is the largest so far; of equals the first by name, for they may be written
// differently.
func (c *Counts) AddTooSmall(volume *corev1.PersistentVolume) {
	if c.largest == nil || cmp.Or(compareCapacity(c.largest, volume), cmp.Compare(volume.Name, c.largest.Name)) < 0 {
		c.largest = volume
	}
}

// AddNearMiss keeps the verdict if its volume is the nearest so far.
func (c *Counts) AddNearMiss(v Verdict) {
	if v.near() && (c.nearest.Volume == nil || v.compareNearness(c.nearest) < 0) {
		c.nearest = v
	}
}

// Summary returns what was counted so far.
func (c *Counts) Summary() Summary {
	s := Summary{Volumes: c.Total, Fit: c.Fit, Chosen: c.Chosen, Counts: c.sorted()}
	switch {
	case c.Chosen == "" && c.Elsewhere.Volume != nil:
		s.Nearest = new(c.Elsewhere)
	case c.Fit == 0 && c.nearest.Volume != nil:
		s.Nearest = new(c.nearest)
	}
	return s
}

// sorted returns the counts, the highest first.
func (c *Counts) sorted() []Count {
	var counts []Count
	for i, volumes := range c.counts {
		if volumes == 0 {
			continue
		}
		count := Count{Reason: fitRules[i].reason, Volumes: volumes}
		if count.Reason == TooSmall {
			capacity, _ := CapacityOf(c.largest)
			count.Largest = capacity.String()
		}
		counts = append(counts, count)
	}
	slices.SortStableFunc(counts, func(a, b Count) int { return cmp.Compare(b.Volumes, a.Volumes) })
	return counts
}

// position returns a reason's place in the order of the rules.
func position(reason Reason) int {
	return slices.IndexFunc(fitRules[:], func(r fitRule) bool { return r.reason == reason })
}

// near reports whether the volume can be called a near miss at all. Either it stays and no claim has it, or its
// claimRef has the claim's name.
func (v Verdict) near() bool {
	switch v.ClaimRef {
	case phase.ClaimRefOther:
		return false
	case phase.ClaimRefNone:
		return !v.Mismatches.Has(Deleting) && !v.Mismatches.Has(BoundToAnotherClaim)
	}
	return true
}

// NearMiss is a volume that does not fit, and how near it is to fitting.
type NearMiss struct {
	Volume *corev1.PersistentVolume // nil if only the reasons are to be compared

	unmendable int // reasons that no change of a field would mend
	reasons    int // all reasons
	tooSmall   int // 1 if TooSmall is among them
}

// NearMissOf returns the near miss of a volume that does not fit for these reasons.
func NearMissOf(volume *corev1.PersistentVolume, reasons ...Reason) NearMiss {
	m := NearMiss{Volume: volume, reasons: len(reasons)}
	for _, reason := range reasons {
		switch reason {
		case Deleting, BoundToAnotherClaim, NotAvailable, WaitForFirstConsumer:
			m.unmendable++
		case TooSmall:
			m.tooSmall = 1
		}
	}
	return m
}

// Compare puts the volume first that is nearest to fitting: the one with the fewest reasons that no change of a field of
// claim or volume would mend, then with the fewest reasons, then the one whose capacity is nearest to the request, any
// that is enough before any that is not, then by name.
func (m NearMiss) Compare(other NearMiss) int {
	order := cmp.Or(cmp.Compare(m.unmendable, other.unmendable), cmp.Compare(m.reasons, other.reasons), cmp.Compare(m.tooSmall, other.tooSmall))
	if order != 0 || m.Volume == nil || other.Volume == nil {
		return order
	}
	byCapacity := compareCapacity(m.Volume, other.Volume)
	if m.tooSmall == 1 {
		byCapacity = -byCapacity
	}
	return cmp.Or(byCapacity, cmp.Compare(m.Volume.Name, other.Volume.Name))
}

func (v Verdict) compareNearness(other Verdict) int {
	return NearMissOf(v.Volume, v.Mismatches.reasons()...).Compare(NearMissOf(other.Volume, other.Mismatches.reasons()...))
}
