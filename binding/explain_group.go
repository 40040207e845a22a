package binding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

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
	if v.Chosen || !g.Nearest.Chosen && compareMisses(missOf(v), missOf(g.Nearest)) < 0 {
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
		fmt.Fprintf(w, "%d\t%s\t%s\n", group.Volumes, oneLine(group.Nearest.Volume.Name, maxName), group.why())
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
