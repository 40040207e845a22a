package reclaim

import (
	"strings"

	"github.com/pvbind/pvbind/binding/obj"
)

// Risk is what an operation can do to data, or to those who use it. An operation that fails because of a risk goes on
// for a caller who accepts it (R7).
type Risk string

// The risks.
const (
	// DataDisclosed means that whoever gets the volume next can read what its last claim left on it.
	DataDisclosed Risk = "DataDisclosed"
	// DataDestroyed means that the data is, or may be, deleted or scrubbed, as the reclaim policy says.
	DataDestroyed Risk = "DataDestroyed"
	// PodsDisturbed means that pods that use the volume lose it, or share it with others.
	PodsDisturbed Risk = "PodsDisturbed"
	// ClaimLost means that a claim that exists loses its volume.
	ClaimLost Risk = "ClaimLost"
	// ReservationLost means that a claim to which somebody pre-bound the volume does not get it.
	ReservationLost Risk = "ReservationLost"
)

// A Warning is a risk that a change runs, and how.
type Warning struct {
	Risk    Risk
	Message string // which data of whom is at risk, in one line
}

// String returns risk and message: "DataDisclosed: whoever gets the volume can read what shop/data left on it".
func (w Warning) String() string { return string(w.Risk) + ": " + w.Message }

// ReasonCode is the kind of a Reason.
type ReasonCode string

// The codes of reasons.
const (
	// Unknown means that something was not read from the server; Reason.Read says what. What a cache lacks may exist.
	Unknown ReasonCode = "Unknown"
	// Deleting means that the volume or the claim is being deleted.
	Deleting ReasonCode = "Deleting"
	// ClaimLives means that the claim that has the volume, or is Bound to it though it has lost its claimRef, exists.
	// Whoever accepts ClaimLost takes the volume from it.
	ClaimLives ReasonCode = "ClaimLives"
	// InUse means that pods that have not finished use the volume. Accept PodsDisturbed to go on.
	InUse ReasonCode = "InUse"
	// PolicyDestroys means that the claim is gone and the reclaim policy is not Retain, so that the data may be on its
	// way out. Use SetRetain first, or accept DataDestroyed to go on.
	PolicyDestroys ReasonCode = "PolicyDestroys"
	// PreBound means that the volume is pre-bound to another claim. Accept ReservationLost to go on.
	PreBound ReasonCode = "PreBound"
	// Unfit means that the volume is not what the claim that is to have it requests (M3 to M5, M7).
	Unfit ReasonCode = "Unfit"
	// Taken means that the claim that is to have the volume has, or had, a volume, or that the volume is not that of the
	// claim it is to be transferred from.
	Taken ReasonCode = "Taken"
	// Transferring means that a transfer of the volume is under way.
	Transferring ReasonCode = "Transferring"
	// Missing means that what is to be transferred does not exist, or not where it is to be transferred to.
	Missing ReasonCode = "Missing"
)

// acceptable has the risk that a caller has to accept to go on in spite of a reason.
var acceptable = map[ReasonCode]Risk{
	ClaimLives:     ClaimLost,
	InUse:          PodsDisturbed,
	PolicyDestroys: DataDestroyed,
	PreBound:       ReservationLost,
}

// A Reason is one of the reasons why an operation fails.
type Reason struct {
	Code    ReasonCode
	Message string // with the values that count, in one line
	// Risk is what a caller has to accept to go on; "" if the reason stands whatever is accepted.
	Risk Risk
	// Read is what to read from the server, for Unknown.
	Read obj.Key
}

// String returns the reason in one line: "PolicyDestroys: the reclaim policy is Delete (unless DataDestroyed is accepted)".
func (r Reason) String() string {
	text := string(r.Code) + ": " + r.Message
	if r.Risk != "" {
		text += " (unless " + string(r.Risk) + " is accepted)"
	}
	return text
}

// Error is the error of an operation that fails because of what is known of the objects. Nothing is to be written.
type Error struct {
	Operation string // "make available", "reserve" or "transfer"
	Volume    string
	Reasons   []Reason // all of them; never empty
}

// Error returns the volume and every reason, in one line.
func (e *Error) Error() string {
	texts := make([]string, len(e.Reasons))
	for i, reason := range e.Reasons {
		texts[i] = reason.String()
	}
	return "cannot " + e.Operation + " pv/" + e.Volume + ": " + strings.Join(texts, "; ")
}

// Reads returns what to read from the server before the operation is tried again; none if that would not help.
func (e *Error) Reads() []obj.Key {
	var reads []obj.Key
	for _, reason := range e.Reasons {
		if reason.Code == Unknown {
			reads = append(reads, reason.Read)
		}
	}
	return reads
}
