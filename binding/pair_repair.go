package binding

import (
	"fmt"
	"strings"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Repairer is who is to repair a pair.
type Repairer string

const (
	// ByController: the Controller, or kube-controller-manager, mends it by itself. Repair.Action is its next step.
	ByController Repairer = "Controller"
	// ByPerson: Repair.Action mends it, if a person takes the risk. The Controller does the rest. A volume to create
	// lacks its source, which only a person can know, and Repair.Why says what comes before it.
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
	case PairContended:
		return r.award()
	case PairVolumeTaken:
		return nobody(fmt.Sprintf("the volume serves another claim, and spec.volumeName cannot be changed: for another volume, set reclaim policy Retain "+
			"on every volume whose claimRef has UID %s, then delete the claim and create it anew without that name", r.Claim.UID)), nil
	case PairVolumeAbsent:
		if r.Claim.DeletionTimestamp != nil {
			return r.letGo(violations[1:])
		}
		return r.restore()
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
		return r.Claim == nil || action.Key != obj.KeyOf(r.Claim)
	}
	return true
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
	why, unbound := "the claim was never bound to the volume, and cannot be", unbind(r.Volume)
	risk := "the volume is free for other claims then, with what is on it"
	if unbound.Spec.ClaimRef != nil { // a person's reservation stays one
		risk = "the volume stays reserved for the claim's name, and the next claim of that name gets what is on it"
	}
	return Repair{By: ByPerson, Action: updateVolume(unbound, "V4", why), Why: why, Risk: risk}, nil
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
