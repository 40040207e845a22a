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
	// number comes first, and equals are in the order of the M rules.
	Counts []Count `json:"counts,omitempty"`
	// Nearest is the near miss: the volume that needs least to fit, if none fits. If a volume that is set aside
	// for the claim would do but for the node, it is that one, whatever fits (M13). Nil: there is none, for what
	// is another claim's or is being deleted is not near.
	Nearest *Verdict `json:"nearest,omitempty"`
}

// Count is how many volumes fail for one reason first.
type Count struct {
	Reason  Reason `json:"reason"`
	Volumes int    `json:"volumes"`
	// Largest is the capacity of the largest of them, if they are TooSmall.
	Largest string `json:"largest,omitempty"`
}

// String is the summary in one line of at most 512 bytes:
//
//	0/12 volumes fit: 7 StorageClass, 3 TooSmall (largest 5Gi), 2 Claimed; pv-7 would fit but for its class: "slow", the claim asks "fast"
func (s Summary) String() string {
	line := strconv.Itoa(s.Fit) + "/" + strconv.Itoa(s.Volumes) + " volumes fit: "
	return oneline.Text(line+strings.Join(s.parts(), "; "), maxSummary)
}

func (s Summary) parts() []string {
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
	return parts
}

// countsText is "7 StorageClass, 3 TooSmall (largest 5Gi)".
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

// Tally counts volumes for a Summary. The zero value has counted nothing. An index that knows without a look why whole
// buckets of volumes do not fit counts these by Count, AddTooSmall and AddMiss.
type Tally struct {
	Total, Fit int
	Chosen     string
	counts     [len(fitRules)]int       // by first reason, in the order of the rules
	largest    *corev1.PersistentVolume // of those counted as TooSmall
	nearest    Verdict
	Elsewhere  Verdict // set aside for the claim and good but for the node (M13)
}

// Add counts one volume.
func (t *Tally) Add(v Verdict) {
	t.Total++
	if v.Chosen {
		t.Chosen = v.Volume.Name
	}
	if v.Fits() {
		t.Fit++
		return
	}
	first := v.Mismatches[0].Reason
	t.Count(first, 1)
	if first == TooSmall {
		t.AddTooSmall(v.Volume)
	}
	t.AddMiss(v)
	if v.elsewhere() && (t.Elsewhere.Volume == nil || v.Volume.Name < t.Elsewhere.Volume.Name) {
		t.Elsewhere = v
	}
}

// AddMiss keeps the verdict if it is the nearest miss so far.
func (t *Tally) AddMiss(v Verdict) {
	if v.nearby() && (t.nearest.Volume == nil || CompareMisses(missOf(v), missOf(t.nearest)) < 0) {
		t.nearest = v
	}
}

// Count adds volumes that fail for this reason first.
func (t *Tally) Count(first Reason, volumes int) { t.counts[position(first)] += volumes }

// AddTooSmall keeps the largest; of equals the first by name, for they may be written differently.
func (t *Tally) AddTooSmall(volume *corev1.PersistentVolume) {
	if t.largest == nil || cmp.Or(-compareCapacities(volume, t.largest), cmp.Compare(volume.Name, t.largest.Name)) < 0 {
		t.largest = volume
	}
}

// Summary is what was counted so far.
func (t *Tally) Summary() Summary {
	s := Summary{Volumes: t.Total, Fit: t.Fit, Chosen: t.Chosen, Counts: t.ordered()}
	switch {
	case t.Chosen == "" && t.Elsewhere.Volume != nil:
		s.Nearest = &Verdict{}
		*s.Nearest = t.Elsewhere
	case t.Fit == 0 && t.nearest.Volume != nil:
		s.Nearest = &Verdict{}
		*s.Nearest = t.nearest
	}
	return s
}

// ordered are the counts, the highest first.
func (t *Tally) ordered() []Count {
	var counts []Count
	for i, volumes := range t.counts {
		if volumes == 0 {
			continue
		}
		count := Count{Reason: fitRules[i].reason, Volumes: volumes}
		if count.Reason == TooSmall {
			capacity, _ := CapacityOf(t.largest)
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

// nearby reports whether the volume can be called a near miss at all: it stays and is nobody's, or its
// claimRef has the claim's name.
func (v Verdict) nearby() bool {
	switch v.Link {
	case phase.Other:
		return false
	case phase.Unclaimed:
		return !v.Mismatches.Has(Deleting) && !v.Mismatches.Has(Claimed)
	}
	return true
}

// elsewhere reports whether the volume is set aside for the claim and would do but for the node (M13).
func (v Verdict) elsewhere() bool { return v.setAside() && v.Mismatches.Only(NodeAffinity) }

// String is the verdict as a sentence: `pv-7 would fit but for its class: "slow", the claim asks "fast"`.
func (v Verdict) String() string {
	name := oneline.Text(v.Volume.Name, maxName)
	switch {
	case v.Chosen:
		return name + " is chosen"
	case v.Fits():
		return name + " fits"
	case v.elsewhere():
		name += " is set aside for the claim, and"
	}
	return name + " would fit but for " + v.Mismatches.phrases()
}

// phrases say in words what keeps the volume from fitting.
func (m Mismatches) phrases() string {
	width := m.width()
	texts := make([]string, len(m))
	for i := range m {
		texts[i] = m[i].phrase(width)
	}
	return strings.Join(texts, "; ")
}

// phrase is `its class: "slow", the claim asks "fast"`.
func (m Mismatch) phrase(width int) string {
	asks, has := oneline.Text(m.Asks, width), oneline.Text(m.Has, width)
	if m.Reason == StorageClass || m.Reason == AttributesClass {
		asks, has = quoted(asks), quoted(has)
	}
	return fitRules[position(m.Reason)].subject + ": " + has + ", the claim asks " + asks
}

// quoted puts a name in quotes, so that it is not taken for a word of the sentence.
func quoted(name string) string {
	if name == oneline.None {
		return name
	}
	return `"` + name + `"`
}

// Miss is what tells how near a volume is to fitting.
type Miss struct {
	Volume  *corev1.PersistentVolume
	beyond  int // how many reasons no field could mend
	Reasons int // how many in all
	Short   int // 1 if TooSmall is among them
}

func missOf(v Verdict) Miss {
	m := Miss{Volume: v.Volume, Reasons: len(v.Mismatches)}
	for _, mismatch := range v.Mismatches {
		switch mismatch.Reason {
		case Deleting, Claimed, NotAvailable, Delayed:
			m.beyond++
		case TooSmall:
			m.Short = 1
		}
	}
	return m
}

// Add counts a reason, if it stands against the volume.
func (m *Miss) Add(reason bool, beyond int) {
	if reason {
		m.Reasons++
		m.beyond += beyond
	}
}

// CompareMisses puts first the volume that is nearest to fitting: the one that the fewest reasons stand
// against that no change of a field of claim or volume would mend, then the fewest reasons, then the one
// whose capacity is nearest to the request, any that is enough before any that is not, then by name.
func CompareMisses(a, b Miss) int {
	byCapacity := compareCapacities(a.Volume, b.Volume)
	if a.Short == 1 {
		byCapacity = -byCapacity
	}
	return cmp.Or(a.CompareReasons(b), byCapacity, cmp.Compare(a.Volume.Name, b.Volume.Name))
}

// CompareReasons is compareMisses as far as the volumes need not be known.
func (m Miss) CompareReasons(other Miss) int {
	return cmp.Or(cmp.Compare(m.beyond, other.beyond), cmp.Compare(m.Reasons, other.Reasons), cmp.Compare(m.Short, other.Short))
}

func compareCapacities(a, b *corev1.PersistentVolume) int {
	return compareCapacity(candidate{PersistentVolume: a}, candidate{PersistentVolume: b})
}
