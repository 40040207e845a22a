package reclaim

import "strings"

// ObjectionReason is why a verb refuses.
type ObjectionReason string

// The reasons.
const (
	// Unknown: something was not read from the server; Objection.Read says what. What a cache lacks proves nothing.
	Unknown ObjectionReason = "Unknown"
	// Deleting: the volume or the claim is being deleted.
	Deleting ObjectionReason = "Deleting"
	// ClaimLives: the claim that has the volume, or is Bound to it though it has lost its claimRef, exists. Whoever accepts
	// ClaimLost takes the volume from it.
	ClaimLives ObjectionReason = "ClaimLives"
	// InUse: pods that have not finished use the volume. Lifted by PodsDisturbed.
	InUse ObjectionReason = "InUse"
	// PolicyDestroys: the claim is gone and the reclaim policy is not Retain, so that the data may be on its way out.
	// Lifted by DataDestroyed; Retain is the better answer.
	PolicyDestroys ObjectionReason = "PolicyDestroys"
	// SetAside: the volume is reserved for a claim by name. Lifted by ReservationLost.
	SetAside ObjectionReason = "SetAside"
	// Unfit: the claim that is to have the volume asks for something else (M3 to M5, M7).
	Unfit ObjectionReason = "Unfit"
	// Taken: the claim that is to have the volume has, or had, a volume, or the volume is not that of the claim it is
	// to be moved from.
	Taken ObjectionReason = "Taken"
	// Moving: a move of the volume is under way.
	Moving ObjectionReason = "Moving"
	// Missing: what is to be moved does not exist, or not where it is to be moved to.
	Missing ObjectionReason = "Missing"
)

// Objection is one reason why a verb refuses.
type Objection struct {
	Reason  ObjectionReason
	Message string // with the values that count, in one line
	// Risk is what a caller has to accept to lift the objection; "" if nothing lifts it.
	Risk Risk
	// Read is what to read from the server, for Unknown.
	Read Read
}

// String is "PolicyDestroys: the reclaim policy is Delete (unless DataDestroyed is accepted)".
func (o Objection) String() string {
	text := string(o.Reason) + ": " + o.Message
	if o.Risk != "" {
		text += " (unless " + string(o.Risk) + " is accepted)"
	}
	return text
}

// Refusal is the error of a verb that does not do what it was asked for. Nothing is to be written.
type Refusal struct {
	Verb       string // "open", "reserve" or "move"
	Volume     string
	Objections []Objection // all of them; never empty
}

// Error names the volume and every objection, in one line.
func (r *Refusal) Error() string {
	texts := make([]string, len(r.Objections))
	for i, objection := range r.Objections {
		texts[i] = objection.String()
	}
	return r.Verb + " pv/" + r.Volume + " refused: " + strings.Join(texts, "; ")
}

// Reads are what must be read from the server before the verb can know; none if that would not help.
func (r *Refusal) Reads() []Read {
	var reads []Read
	for _, objection := range r.Objections {
		if objection.Reason == Unknown {
			reads = append(reads, objection.Read)
		}
	}
	return reads
}
