package binding

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// Repairer is who is to repair a pair.
type Repairer string

const (
	// ByController: the Controller, or kube-controller-manager, mends it by itself. Repair.Action is its next step.
	ByController Repairer = "Controller"
	// ByPerson: Repair.Action mends it, if a person takes the risk. The Controller does the rest.
	ByPerson Repairer = "Person"
	// ByNobody: no write is known to be safe.
	ByNobody Repairer = "Nobody"
)

// Repair is what to do about a pair. It is one step, as every decision is: after it the pair is to be checked again.
type Repair struct {
	By Repairer
	// Action is the step: most often the object to write, on the resourceVersion it was decided on.
	Action Action
	// Why is the reason in one line: of the step, or why there is none.
	Why string
	// Risk is what a person must know before the step; "" if there is none.
	Risk string
}

func (r *PairRequest) repair(violations []Violation) (Repair, error) {
	switch kind := violations[0].Kind; kind {
	case PairUIDDiffers, PairUIDCleared:
		return r.repoint()
	case PairVolumeTaken:
		return nobody("the volume serves another claim; a claim that is to have another volume must be deleted and made anew"), nil
	case PairVolumeAbsent:
		return nobody("only a volume with its storage could mend that: create one whose claimRef names the claim, if the storage is still there"), nil
	case PairUnrelated:
		return nobody("they have nothing to do with each other"), nil
	case PairMisfit:
		return r.part()
	case PairClaimTerminating, PairVolumeTerminating:
		return r.letGo(violations)
	}
	return r.leave()
}

func nobody(why string) Repair { return Repair{By: ByNobody, Why: why} }

// leave leaves the repair to the Controller, if that does anything.
func (r *PairRequest) leave() (Repair, error) {
	action, err := r.next()
	if err != nil {
		return Repair{}, err
	}
	if !r.acts(action) {
		return nobody(action.Why), nil
	}
	return Repair{By: ByController, Action: action, Why: action.Why}, nil
}

// next is the next step of the Controller, for the claim or else for the volume; if there is none, why.
func (r *PairRequest) next() (Action, error) {
	if r.Claim == nil {
		return NextForVolume(r.Volume, r.View, r.Rules)
	}
	forClaim, err := NextForClaim(r.Claim, r.View, r.Rules)
	if r.Volume == nil || r.acts(forClaim) || err != nil {
		return forClaim, err
	}
	forVolume, err := NextForVolume(r.Volume, r.View, r.Rules)
	if r.acts(forVolume) || err != nil || forClaim.Kind == Nothing {
		return forVolume, err
	}
	return forClaim, nil
}

// acts tells a step from a reason for none. To hand over to a claim that has none itself is no step.
func (r *PairRequest) acts(action Action) bool {
	switch action.Kind {
	case Nothing, Wait:
		return false
	case HandOver:
		return r.Claim == nil || action.Key != KeyOf(r.Claim)
	}
	return true
}

// repoint gives the volume the UID of the claim, if nothing speaks against it. That a claim gets what an earlier one
// of its name had is what the Controller never does (X3): only a person can know that it is the same claim.
func (r *PairRequest) repoint() (Repair, error) {
	against, err := r.againstRepointing()
	if err != nil {
		return Repair{}, err
	}
	if against != "" {
		return nobody(against), nil
	}
	repointed := r.Volume.DeepCopy()
	repointed.Spec.ClaimRef = referenceTo(r.Claim)
	why := fmt.Sprintf("the claim asks for volume %q by name and fits it; with the claim's UID in claimRef it has it again", r.Volume.Name)
	risk := "the volume was set aside for a claim of that name; if that is not this one, this one gets another's data"
	if uid := r.Volume.Spec.ClaimRef.UID; uid != "" {
		risk = fmt.Sprintf("the volume has the data of the claim with UID %s; if this claim is not its restored copy, it gets another's data", uid)
	}
	return Repair{By: ByPerson, Action: updateVolume(repointed, "L4", why), Why: why, Risk: risk}, nil
}

// againstRepointing is why a volume cannot safely be given to a claim that names it; "" if it can.
func (r *PairRequest) againstRepointing() (string, error) {
	mismatches, err := CheckNamed(r.Claim, r.Volume)
	owner := r.View.Owner(r.Volume.Name)
	at, policy := r.Volume.Status.Phase, r.Volume.Spec.PersistentVolumeReclaimPolicy
	switch {
	case err != nil:
		return "", err
	case r.Claim.UID == "":
		return "", &InvalidError{KeyOf(r.Claim).String(), "metadata.uid", "is missing"}
	case r.deleting():
		return "the claim or the volume is being deleted", nil
	case len(mismatches) > 0:
		return "the volume does not fit the claim: " + mismatches.String(), nil
	case owner != (Key{}) && owner != KeyOf(r.Claim):
		return "the volume was bound to " + owner.String() + " too", nil
	case len(r.SameStorage) > 0:
		return "the storage is also that of " + strings.Join(r.SameStorage, ", "), nil
	case (at == corev1.VolumeReleased || at == corev1.VolumeFailed) && policy != corev1.PersistentVolumeReclaimRetain:
		return fmt.Sprintf("the volume is %s with reclaim policy %s: its data may be on the way out or gone; keep it first (policy Retain), and see what is left", at, policy), nil
	}
	return "", nil
}

// part takes a volume from a claim that holds it, was never bound to it, and does not fit it (V4). If the Controller
// has another volume for the claim, it does that itself.
func (r *PairRequest) part() (Repair, error) {
	left, err := r.leave()
	if err != nil || left.By == ByController {
		return left, err
	}
	if r.link() != phase.Held {
		return left, nil
	}
	why := "the claim was never bound to the volume, and cannot be"
	return Repair{By: ByPerson, Action: updateVolume(unbind(r.Volume), "V4", why), Why: why,
		Risk: "the volume is free for other claims then, with what is on it"}, nil
}

// letGo says what keeps an object that is being deleted, and who must let it go.
func (r *PairRequest) letGo(violations []Violation) (Repair, error) {
	left, err := r.leave()
	if err != nil || left.By == ByController {
		return left, err
	}
	var kept []string
	for _, violation := range violations {
		kept = append(kept, violation.Has)
	}
	return nobody("each finalizer is for whoever set it to take off, once its reason is gone; by hand it would skip what it protects: " + strings.Join(kept, "; ")), nil
}

// MarshalJSON gives the step with the object to write, complete with apiVersion and kind:
//
//	{"by": "Person", "why": "…", "risk": "…", "step": {"kind": "UpdateVolume", "rule": "L4", "object": {…}}}
func (r Repair) MarshalJSON() ([]byte, error) {
	type step struct {
		Kind   ActionKind `json:"kind"`
		Rule   string     `json:"rule"`
		On     Key        `json:"on,omitzero"`
		Object Object     `json:"object,omitempty"`
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
func objectIn(action Action) Object {
	switch {
	case !action.Writes():
		return nil
	case action.Volume != nil:
		volume := *action.Volume
		volume.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(KindVolume)))
		return &volume
	}
	claim := *action.Claim
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(KindClaim)))
	return &claim
}
