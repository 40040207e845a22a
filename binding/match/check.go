package match

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
)

// Check compares a volume with a claim and returns every reason why it does not fit, in the order of the rules M1 to M12.
// If there is none, it fits.
//
// An error is an *obj.InvalidError: the claim has a malformed selector, an unknown access mode or a
// negative request, or its class has no valid volumeBindingMode. A malformed volume is not an error
// but a Mismatch, for it must not keep a claim from the other volumes (X7).
func Check(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, terms Terms) (Mismatches, error) {
	c, err := NewCriteria(claim, terms)
	if err != nil {
		return nil, err
	}
	return c.Mismatches(volume), nil
}

// CheckNamed compares a volume with a claim that names it in spec.volumeName. It leaves out owner, selector, phase, node
// and binding mode, for whoever names a volume has chosen it (C7). parsed is what Parse returned for the claim, or nil. Errors
// are those of Check.
func CheckNamed(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, parsed *Parsed) (Mismatches, error) {
	return Check(claim, volume, Terms{Parsed: parsed, named: true})
}

// Reason is why a volume does not fit a claim. The values are in the order of the M rules.
type Reason string

// The reasons.
const (
	// Deleting means that the volume has a deletionTimestamp (M1).
	Deleting Reason = "Deleting"
	// BoundToAnotherClaim means that the volume is or was bound to another claim, or belongs to one (M2).
	BoundToAnotherClaim Reason = "BoundToAnotherClaim"
	// Malformed means that the volume has no storage capacity, a negative one, or an access or volume mode that the
	// Kubernetes API does not define. Its size is then not compared (M3, X7).
	Malformed Reason = "Malformed"
	// TooSmall means that the volume's capacity is below the claim's request (M3).
	TooSmall Reason = "TooSmall"
	// AccessModes means that the claim requests a mode that the volume does not list (M4).
	AccessModes Reason = "AccessModes"
	// VolumeMode means that one is Block and the other Filesystem (M5).
	VolumeMode Reason = "VolumeMode"
	// StorageClass means that the class names differ (M6).
	StorageClass Reason = "StorageClass"
	// AttributesClass means that the volume attributes class names differ (M7).
	AttributesClass Reason = "AttributesClass"
	// Selector means that the claim's selector does not match the volume's labels (M8).
	Selector Reason = "Selector"
	// NotAvailable means that the volume is unclaimed, but its phase is not Available, or it is announced that its storage is
	// destroyed (M9).
	NotAvailable Reason = "NotAvailable"
	// NodeAffinity means that the volume cannot be used on the node, or that its node affinity is malformed (M10).
	NodeAffinity Reason = "NodeAffinity"
	// WaitForFirstConsumer means that the claim's class waits for a pod, and no node is given (M11).
	WaitForFirstConsumer Reason = "WaitForFirstConsumer"
)

// Mismatch is one reason why a volume does not fit a claim, with the values that differ.
type Mismatch struct {
	Reason    Reason `json:"reason"`
	Requested string `json:"requested"` // what the claim requests
	Actual    string `json:"actual"`    // what the volume has
}

// String returns "TooSmall: requested 10Gi, actual 5Gi", in one line; long values are cut.
func (m Mismatch) String() string { return m.text(maxValue) }

func (m Mismatch) text(width int) string {
	return string(m.Reason) + ": requested " + oneline.Text(m.Requested, width) + ", actual " + oneline.Text(m.Actual, width)
}

// Mismatches are all the reasons why a volume does not fit a claim, in the order of the M rules. If there are none, it
// fits.
type Mismatches []Mismatch

const (
	maxValue = 100 // bytes of a value in a line
	minValue = 16
	// maxLine is what an event's message may hold (1024 bytes), less what its author adds.
	maxLine = 800
	// aroundValues is about what a mismatch takes beside its two values.
	aroundValues = 36
)

// String joins the reasons with semicolons, in one line of at most about 800 bytes. It names every
// reason; the more there are, the shorter long values are cut.
func (m Mismatches) String() string { return m.join(Mismatch.text) }

// join joins a text of each reason, whose values have as much room as there is in a line.
func (m Mismatches) join(text func(Mismatch, int) string) string {
	width := max(minValue, min(maxValue, (maxLine/max(1, len(m))-aroundValues)/2))
	return oneline.Join(m, "; ", func(mismatch Mismatch) string { return text(mismatch, width) })
}

// Only reports whether reason is the one and only mismatch.
func (m Mismatches) Only(reason Reason) bool { return len(m) == 1 && m[0].Reason == reason }

// Has reports whether the reason is among them.
func (m Mismatches) Has(reason Reason) bool {
	return slices.ContainsFunc(m, func(mismatch Mismatch) bool { return mismatch.Reason == reason })
}

func (m Mismatches) reasons() []Reason {
	var reasons []Reason
	for _, mismatch := range m {
		reasons = append(reasons, mismatch.Reason)
	}
	return reasons
}
