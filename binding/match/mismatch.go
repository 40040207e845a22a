package match

import (
	"slices"
	"strings"

	"github.com/pvbind/pvbind/binding/internal/oneline"
)

// Reason is why a volume does not fit a claim. The values are in the order of the M rules.
type Reason string

const (
	// Deleting (M1): the volume has a deletionTimestamp.
	Deleting Reason = "Deleting"
	// Claimed (M2): the volume serves, or served, or belongs to another claim.
	Claimed Reason = "Claimed"
	// Malformed (M3, X7): the volume has no storage capacity, a negative one, or an access mode that
	// the Kubernetes API does not define. Its size is then not compared.
	Malformed Reason = "Malformed"
	// TooSmall (M3): the volume's capacity is below the claim's request.
	TooSmall Reason = "TooSmall"
	// AccessModes (M4): the claim asks for a mode that the volume does not list.
	AccessModes Reason = "AccessModes"
	// VolumeMode (M5): one is Block and the other Filesystem.
	VolumeMode Reason = "VolumeMode"
	// StorageClass (M6): the class names differ.
	StorageClass Reason = "StorageClass"
	// AttributesClass (M7): the volume attributes class names differ.
	AttributesClass Reason = "AttributesClass"
	// Selector (M8): the claim's selector does not match the volume's labels.
	Selector Reason = "Selector"
	// NotAvailable (M9): the volume is free, but its phase says that it cannot be had.
	NotAvailable Reason = "NotAvailable"
	// NodeAffinity (M10): the volume cannot be used on the node, or its node affinity is malformed.
	NodeAffinity Reason = "NodeAffinity"
	// Delayed (M11): the claim's class waits for a pod, and no node is given.
	Delayed Reason = "Delayed"
)

// Mismatch is one reason why a volume does not fit a claim, with the values that differ.
type Mismatch struct {
	Reason Reason `json:"reason"`
	Asks   string `json:"asks"` // what the claim asks for
	Has    string `json:"has"`  // what the volume has
}

// String is "TooSmall: asks 10Gi, has 5Gi", in one line; long values are cut.
func (m Mismatch) String() string { return m.text(maxValue) }

func (m Mismatch) text(width int) string {
	return string(m.Reason) + ": asks " + oneline.Text(m.Asks, width) + ", has " + oneline.Text(m.Has, width)
}

// Mismatches are all the reasons why a volume does not fit a claim, in the order of the M rules. None: it fits.
type Mismatches []Mismatch

const (
	maxValue = 100 // bytes of a value in a line
	minValue = 20
	// maxLine is what an event's message may hold (1024 bytes), less what its author has to say.
	maxLine = 800
	// aroundValues is about what a mismatch needs beside its two values.
	aroundValues = 28
)

// String joins the reasons with semicolons, in one line of at most about 800 bytes. It names every
// reason; the more there are, the shorter long values are cut.
func (m Mismatches) String() string {
	width := m.width()
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].text(width)
	}
	return strings.Join(lines, "; ")
}

// width is how much of a value there is room for.
func (m Mismatches) width() int {
	if len(m) == 0 {
		return maxValue
	}
	return max(minValue, min(maxValue, (maxLine/len(m)-aroundValues)/2))
}

// Only reports whether reason is the one and only mismatch.
func (m Mismatches) Only(reason Reason) bool { return len(m) == 1 && m[0].Reason == reason }

// Has reports whether the reason is among them.
func (m Mismatches) Has(reason Reason) bool {
	return slices.ContainsFunc(m, func(mismatch Mismatch) bool { return mismatch.Reason == reason })
}
