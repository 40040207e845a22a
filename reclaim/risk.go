package reclaim

import "slices"

// Risk is what a verb can do to data, or to those who use it. A verb that a risk keeps back goes on for a caller
// who names it (R7).
type Risk string

// The risks.
const (
	// DataDisclosed: whoever gets the volume next can read what its last claim left on it.
	DataDisclosed Risk = "DataDisclosed"
	// DataDestroyed: the data is, or may be, deleted or scrubbed, as the reclaim policy says.
	DataDestroyed Risk = "DataDestroyed"
	// PodsDisturbed: pods that use the volume lose it, or share it with others.
	PodsDisturbed Risk = "PodsDisturbed"
	// ClaimLost: a claim that exists loses its volume.
	ClaimLost Risk = "ClaimLost"
	// ReservationLost: a claim for which somebody set the volume aside does not get it.
	ReservationLost Risk = "ReservationLost"
)

// Hazard is a risk that a change runs, and how.
type Hazard struct {
	Risk    Risk
	Message string // which data of whom is at risk, in one line
}

// String is "DataDisclosed: whoever gets the volume can read what shop/data left on it".
func (h Hazard) String() string { return string(h.Risk) + ": " + h.Message }

// review gathers what there is to say about a change: what keeps it back, and what it risks.
type review struct {
	accepting  []Risk
	objections []Objection
	hazards    []Hazard
}

// warn notes a risk that does not keep the change back.
func (r *review) warn(risk Risk, message string) {
	r.hazards = append(r.hazards, Hazard{risk, message})
}

// object notes what keeps the change back. Where the caller accepts the risk, it is only a hazard.
func (r *review) object(objection Objection) {
	if objection.Risk != "" && slices.Contains(r.accepting, objection.Risk) {
		r.warn(objection.Risk, objection.Message)
		return
	}
	r.objections = append(r.objections, objection)
}

// refusal is the error, if anything keeps the change back.
func (r *review) refusal(verb, volume string) error {
	if len(r.objections) == 0 {
		return nil
	}
	return &Refusal{Verb: verb, Volume: volume, Objections: r.objections}
}
