package binding

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// MarshalJSON gives the step with the object to write, complete with apiVersion and kind:
//
//	{"by": "Person", "why": "…", "risk": "…", "step": {"kind": "UpdateVolume", "rule": "L4", "object": {…}}}
func (r Repair) MarshalJSON() ([]byte, error) {
	type step struct {
		Kind   ActionKind `json:"kind"`
		Rule   string     `json:"rule"`
		On     obj.Key    `json:"on,omitzero"`
		Object obj.Object `json:"object,omitempty"`
	}
	var does *step
	if r.Action.Kind != Nothing {
		does = &step{r.Action.Kind, r.Action.Rule, r.Action.Target(), objectIn(r.Action)}
	}
	return json.Marshal(struct {
		By   Repairer `json:"by"`
		Why  string   `json:"why"`
		Risk string   `json:"risk,omitempty"`
		Step *step    `json:"step,omitempty"`
	}{r.By, r.Why, r.Risk, does})
}

// objectIn is the object that the action writes, as a client would send it; nil if it writes none.
func objectIn(action Action) obj.Object {
	switch {
	case !action.Writes():
		return nil
	case action.Volume != nil:
		volume := *action.Volume
		volume.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(obj.KindVolume)))
		return &volume
	}
	claim := *action.Claim
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(obj.KindClaim)))
	return &claim
}
