package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
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
}

// Verdict is what Find made of one volume. As JSON it names the volume: {"volume": "pv-7", "claimRef": "None",
// "mismatches": [{"reason": "StorageClass", "requested": "fast", "actual": "slow"}]}, and "chosen": true if it is.
type Verdict struct {
	Volume *corev1.PersistentVolume
	// Link is the state of the volume's claimRef, as seen by the claim.
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
	report := Report{Claim: obj.KeyOf(c.Claim), Verdicts: make([]Verdict, len(request.Volumes))}
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
	var counts Counts
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
