package binding

import (
	"strconv"
	"strings"
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
	return oneLine(line+strings.Join(s.parts(), "; "), maxSummary)
}

func (s Summary) parts() []string {
	var parts []string
	switch {
	case s.Volumes == 0:
		parts = append(parts, "there are none")
	case s.Chosen != "":
		parts = append(parts, oneLine(s.Chosen, maxName)+" chosen")
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
