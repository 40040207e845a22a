package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Report explains a Match: what Find made of every volume (E1). Its String is the summary in one line, and its
// Table groups like volumes for a terminal. As JSON it has the fields below.
type Report struct {
	Claim obj.Key `json:"claim"`
	// Chosen is the name of the volume that Find chooses; "" if it chooses none.
	Chosen string `json:"chosen,omitempty"`
	// Verdicts has every volume of the Request, in name order.
	Verdicts []Verdict `json:"verdicts"`

	provisions bool // see Criteria
}

// Verdict is what Find made of one volume. As JSON it names the volume: {"volume": "pv-7", "claimRef": "None",
// "mismatches": [{"reason": "StorageClass", "requested": "fast", "actual": "slow"}]}, and "chosen": true if it is.
type Verdict struct {
	Volume *corev1.PersistentVolume
	// ClaimRef is the state of the volume's claimRef, as seen by the claim.
	ClaimRef phase.ClaimRefState
	// Mismatches are all the reasons why it does not fit. If there are none, it fits.
	Mismatches Mismatches
	// Chosen is set for the one volume that Find chooses. Others may fit as well.
	Chosen bool
}

// Explain answers a Request as Find does, and tells why (E1). Errors are those of Check.
func Explain(request Request) (Report, error) {
	c, err := NewCriteria(request.Claim, request.Terms)
	if err != nil {
		return Report{}, err
	}
	report := Report{Claim: obj.KeyOf(c.Claim), Verdicts: make([]Verdict, len(request.Volumes)), provisions: c.Provisions}
	chosen := c.Find(request.Volumes).Volume
	for i, volume := range request.Volumes {
		report.Verdicts[i] = c.Verdict(volume)
		if volume == chosen {
			report.Verdicts[i].Chosen = true
			report.Chosen = volume.Name
		}
	}
	slices.SortFunc(report.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Volume.Name, b.Volume.Name) })
	return report, nil
}

// Summary counts the volumes, each once, under its first reason (E2).
func (r Report) Summary() Summary {
	counts := Counts{NoNearMiss: r.provisions}
	for _, verdict := range r.Verdicts {
		counts.Add(verdict)
	}
	return counts.Summary()
}

// String returns the Summary in one line of at most 512 bytes.
func (r Report) String() string { return r.Summary().String() }

// Table writes the report for a terminal. It has a row for all volumes that fail for the same reasons, with the values of
// the nearest of them: first those that fit, then the largest group first.
func (r Report) Table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "VOLUMES\tNEAREST\tWHY NOT")
	for _, row := range r.rows() {
		fmt.Fprintf(w, "%d\t%s\t%s\n", row.volumes, oneline.Text(row.nearest.Volume.Name, maxName), row.why())
	}
	w.Flush()
	return text.String()
}

// Fits reports whether the volume would do, were there no better one.
func (v Verdict) Fits() bool { return len(v.Mismatches) == 0 }

// MarshalJSON writes the name of the volume and leaves the rest of it out.
func (v Verdict) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Volume     string              `json:"volume"`
		ClaimRef   phase.ClaimRefState `json:"claimRef"`
		Mismatches Mismatches          `json:"mismatches,omitempty"`
		Chosen     bool                `json:"chosen,omitempty"`
	}{v.Volume.Name, v.ClaimRef, v.Mismatches, v.Chosen})
}

// String returns the verdict as a sentence: `pv-7 would fit but for its class: "slow", the claim requests "fast"`.
func (v Verdict) String() string {
	name := oneline.Text(v.Volume.Name, maxName)
	switch {
	case v.Chosen:
		return name + " is chosen"
	case v.Fits():
		return name + " fits"
	case v.elsewhere() && v.ClaimRef == phase.ClaimRefBound:
		name += " is bound to the claim, and"
	case v.elsewhere():
		name += " is pre-bound to the claim, and"
	}
	return name + " would fit but for " + v.Mismatches.join(Mismatch.phrase)
}

// elsewhere reports whether the volume is bound or pre-bound to the claim and would fit but for the node (M13).
func (v Verdict) elsewhere() bool {
	return candidate{state: v.ClaimRef}.ours() && v.Mismatches.Only(NodeAffinity)
}

// phrase returns `its class: "slow", the claim requests "fast"`.
func (m Mismatch) phrase(width int) string {
	requested, actual := oneline.Text(m.Requested, width), oneline.Text(m.Actual, width)
	if m.Reason == StorageClass || m.Reason == AttributesClass {
		requested, actual = quoted(requested), quoted(actual)
	}
	return fitRules[position(m.Reason)].subject + ": " + actual + ", the claim requests " + requested
}

// quoted puts a name in quotes, so that it is not taken for a word of the sentence.
func quoted(name string) string {
	if name == oneline.None {
		return name
	}
	return `"` + name + `"`
}

// row is the volumes that fail for the same reasons, or that fit.
type row struct {
	volumes int
	// nearest is the one that needs least to fit or, of those that fit, the chosen one if it is among them.
	nearest Verdict
}

func (r Report) rows() []row {
	byReasons := map[string]row{}
	for _, verdict := range r.Verdicts {
		reasons := fmt.Sprint(verdict.Mismatches.reasons())
		row := byReasons[reasons]
		if row.volumes++; row.volumes == 1 || verdict.Chosen || !row.nearest.Chosen && verdict.compareNearness(row.nearest) < 0 {
			row.nearest = verdict
		}
		byReasons[reasons] = row
	}
	return slices.SortedFunc(maps.Values(byReasons), compareRows)
}

func compareRows(a, b row) int {
	fit := func(r row) int { return min(len(r.nearest.Mismatches), 1) }
	return cmp.Or(cmp.Compare(fit(a), fit(b)), cmp.Compare(b.volumes, a.volumes), cmp.Compare(a.nearest.Volume.Name, b.nearest.Volume.Name))
}

func (r row) why() string {
	switch {
	case r.nearest.Chosen:
		return "chosen"
	case r.nearest.Fits():
		return "they fit"
	}
	return r.nearest.Mismatches.join(Mismatch.phrase)
}

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
	// that another claim has, that is being deleted or that the node cannot use is not near, and none is for a claim whose
	// class provisions.
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
		parts = append(parts, oneline.Join(s.Counts, ", ", Count.text))
	}
	if s.Nearest != nil {
		parts = append(parts, s.Nearest.String())
	}
	line := strconv.Itoa(s.Fit) + "/" + strconv.Itoa(s.Volumes) + " volumes fit: "
	return oneline.Text(line+strings.Join(parts, "; "), maxSummary)
}

// text returns "7 StorageClass", or "3 TooSmall (largest 5Gi)".
func (c Count) text() string {
	text := strconv.Itoa(c.Volumes) + " " + string(c.Reason)
	if c.Largest != "" {
		text += " (largest " + c.Largest + ")"
	}
	return text
}

// Counts counts volumes for a Summary. The zero value has counted nothing. An index that need not look at each volume
// calls Count, AddTooSmall and AddNearMiss instead of Add.
type Counts struct {
	Total, Fit int
	Chosen     string
	NoNearMiss bool                     // the Summary is to name none
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
	case c.Fit == 0 && c.nearest.Volume != nil && !c.NoNearMiss:
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
			count.Largest = quantities.Text(capacity)
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

// near reports whether the volume can be called a near miss at all: it stays, the node can use it, and either no claim has
// it or its claimRef has the claim's name. No change mends the rest: a node affinity stays as it is (A4).
func (v Verdict) near() bool {
	switch {
	case v.Mismatches.Has(Deleting), v.Mismatches.Has(NodeAffinity), v.ClaimRef == phase.ClaimRefOther:
		return false
	case v.ClaimRef == phase.ClaimRefNone:
		return !v.Mismatches.Has(BoundToAnotherClaim)
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
