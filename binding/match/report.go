package match

import (
	"cmp"
	"encoding/json"
	"fmt"
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

// Verdict is what Find made of one volume. As JSON it names the volume: {"volume": "pv-7", "link": "Unclaimed",
// "mismatches": [{"reason": "StorageClass", "asks": "fast", "has": "slow"}]}, and "chosen": true if it is.
type Verdict struct {
	Volume *corev1.PersistentVolume
	// Link is how the volume relates to the claim.
	Link phase.Link
	// Mismatches are all the reasons why it does not fit; none: it fits.
	Mismatches Mismatches
	// Chosen is set for the one volume that Find chooses. Others may fit as well.
	Chosen bool
}

// Fits reports whether the volume would do, were there no better one.
func (v Verdict) Fits() bool { return len(v.Mismatches) == 0 }

// setAside reports whether the volume is Reserved for or Held by the claim.
func (v Verdict) setAside() bool { return candidate{link: v.Link}.setAside() }

// Explain answers a Request as Find does, and tells why (E1). Errors are those of Check.
func Explain(request Request) (Report, error) {
	c, err := NewCriteria(request.Claim, request.Terms)
	if err != nil {
		return Report{}, err
	}
	return c.Report(request.Volumes), nil
}

// Report is Explain for a claim whose criteria are known.
func (c *Criteria) Report(volumes []*corev1.PersistentVolume) Report {
	chosen := c.Find(volumes).Volume
	report := Report{Claim: obj.KeyOf(c.Claim), Verdicts: make([]Verdict, len(volumes))}
	for i, volume := range volumes {
		report.Verdicts[i] = c.Verdict(volume)
		if volume == chosen {
			report.Verdicts[i].Chosen = true
			report.Chosen = volume.Name
		}
	}
	slices.SortFunc(report.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Volume.Name, b.Volume.Name) })
	return report
}

// Verdict says what Find makes of one volume. Chosen is not set, for that takes all of them.
func (c *Criteria) Verdict(volume *corev1.PersistentVolume) Verdict {
	return Verdict{Volume: volume, Link: phase.LinkOf(volume, c.Claim), Mismatches: c.Mismatches(volume)}
}

// Summary counts the volumes: each once, under its first reason (E2).
func (r Report) Summary() Summary {
	var t Tally
	for _, verdict := range r.Verdicts {
		t.Add(verdict)
	}
	return t.Summary()
}

// String is the Summary in one line of at most 512 bytes.
func (r Report) String() string { return r.Summary().String() }

// MarshalJSON names the volume and leaves the rest of it out.
func (v Verdict) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Volume     string     `json:"volume"`
		Link       phase.Link `json:"link"`
		Mismatches Mismatches `json:"mismatches,omitempty"`
		Chosen     bool       `json:"chosen,omitempty"`
	}{v.Volume.Name, v.Link, v.Mismatches, v.Chosen})
}

// Group is volumes that fail for the same reasons.
type Group struct {
	// Reasons are all that stand against each of them, in the order of the M rules; none: they fit.
	Reasons []Reason `json:"reasons,omitempty"`
	// Volumes is how many there are.
	Volumes int `json:"volumes"`
	// Nearest is the one that needs least to fit or, of those that fit, the chosen one if it is among them.
	Nearest Verdict `json:"nearest"`
}

// Groups puts like volumes together: first those that fit, then the largest group first.
func (r Report) Groups() []Group {
	at := map[string]int{}
	var groups []Group
	for _, verdict := range r.Verdicts {
		reasons := verdict.Mismatches.reasons()
		key := fmt.Sprint(reasons)
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, Group{Reasons: reasons, Nearest: verdict})
		}
		groups[i].add(verdict)
	}
	slices.SortStableFunc(groups, compareGroups)
	return groups
}

func (g *Group) add(v Verdict) {
	g.Volumes++
	if v.Chosen || !g.Nearest.Chosen && CompareMisses(missOf(v), missOf(g.Nearest)) < 0 {
		g.Nearest = v
	}
}

func compareGroups(a, b Group) int {
	fit := func(g Group) int { return min(len(g.Reasons), 1) }
	return cmp.Or(cmp.Compare(fit(a), fit(b)), cmp.Compare(b.Volumes, a.Volumes), cmp.Compare(a.Nearest.Volume.Name, b.Nearest.Volume.Name))
}

func (m Mismatches) reasons() []Reason {
	var reasons []Reason
	for _, mismatch := range m {
		reasons = append(reasons, mismatch.Reason)
	}
	return reasons
}

// Table is the report for a terminal: a row for each of the Groups, with the values of its nearest volume.
func (r Report) Table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "VOLUMES\tNEAREST\tWHY NOT")
	for _, group := range r.Groups() {
		fmt.Fprintf(w, "%d\t%s\t%s\n", group.Volumes, oneline.Text(group.Nearest.Volume.Name, maxName), group.why())
	}
	w.Flush()
	return text.String()
}

func (g Group) why() string {
	switch {
	case g.Nearest.Chosen:
		return "chosen"
	case len(g.Reasons) == 0:
		return "they fit"
	}
	return g.Nearest.Mismatches.phrases()
}
