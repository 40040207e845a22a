package decision

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Repair is what to do about a pair. It is one step, as every decision is: after it the pair is checked again.
type Repair struct {
	By Repairer `json:"by"`
	// Action is the step: most often the object to write, on the resourceVersion it was decided on.
	Action Action `json:"-"`
	// Why is the reason in one line: of the step, or why there is none.
	Why string `json:"why"`
	// Risk is what a person must know before the step; "" if there is none.
	Risk string `json:"risk,omitempty"`
}

// Repairer says who repairs a pair.
type Repairer string

const (
	// ByController: the Controller, or kube-controller-manager, repairs it by itself. Repair.Action is its next step.
	ByController Repairer = "Controller"
	// ByPerson: Repair.Action repairs it, if a person takes the risk. The Controller does the rest. A volume to create
	// lacks its source, which only a person can know, and Repair.Why says what comes before it.
	ByPerson Repairer = "Person"
	// ByNobody: no write is known to be safe.
	ByNobody Repairer = "Nobody"
)

// MarshalJSON returns the step with the object to write, complete with apiVersion and kind:
//
//	{"by": "Person", "why": "…", "risk": "…", "step": {"kind": "UpdateVolume", "rule": "L4", "object": {…}}}
func (r Repair) MarshalJSON() ([]byte, error) {
	type step struct {
		Kind   ActionKind     `json:"kind"`
		Rule   string         `json:"rule"`
		On     obj.Key        `json:"on,omitzero"`
		Object runtime.Object `json:"object,omitempty"`
	}
	type fields Repair
	all := struct {
		fields
		Step *step `json:"step,omitempty"`
	}{fields: fields(r)}
	if r.Action.Kind != Nothing {
		all.Step = &step{r.Action.Kind, r.Action.Rule, r.Action.Target(), written(r.Action)}
	}
	return json.Marshal(all)
}

// written returns the object that the action writes, as a client would send it; nil if it writes none.
func written(action Action) runtime.Object {
	if !action.Writes() {
		return nil
	}
	object, kind := runtime.Object(action.Claim.DeepCopy()), obj.KindClaim
	if action.Volume != nil {
		object, kind = action.Volume.DeepCopy(), obj.KindVolume
	}
	object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind)))
	return object
}

func (r *PairRequest) repair(violations []Violation) (Repair, error) {
	switch kind := violations[0].Kind; kind {
	case PairUIDDiffers, PairUIDCleared:
		return r.setUID()
	case PairContended:
		return r.chooseOwner()
	case PairVolumeTaken:
		return byNobody(fmt.Sprintf("the volume serves another claim, and spec.volumeName cannot be changed: for another volume, set reclaim policy Retain "+
			"on every volume whose claimRef has UID %s, then delete the claim and create it anew without that name", r.Claim.UID)), nil
	case PairVolumeAbsent:
		if r.Claim.DeletionTimestamp != nil {
			return r.awaitFinalizers(violations[1:])
		}
		return r.recreateVolume()
	case PairUnrelated:
		return byNobody("neither the claim nor the volume refers to the other"), nil
	case PairIncompatible:
		return r.repairByUnbinding()
	case PairClaimTerminating, PairVolumeTerminating:
		return r.awaitFinalizers(violations)
	}
	return r.byController()
}

func byNobody(why string) Repair { return Repair{By: ByNobody, Why: why} }

// byController leaves the repair to the Controller, if that has a step to make for the claim or else for the volume.
func (r *PairRequest) byController() (Repair, error) {
	var action Action
	var err error
	if r.Claim != nil {
		action, err = NextForClaim(r.Claim, r.View, r.Options)
	}
	if r.Volume != nil && err == nil && !r.isStep(action) {
		var forVolume Action
		forVolume, err = NextForVolume(r.Volume, r.View, r.Options)
		if r.isStep(forVolume) || action.Kind == Nothing {
			action = forVolume
		}
	}
	switch {
	case err != nil:
		return Repair{}, err
	case !r.isStep(action):
		return byNobody(action.Why), nil
	}
	return Repair{By: ByController, Action: action, Why: action.Why}, nil
}

// isStep tells a step from a reason for none. Requeueing the pair's own claim is not a step, for the claim has none.
func (r *PairRequest) isStep(action Action) bool {
	switch action.Kind {
	case Nothing, Wait:
		return false
	case Requeue:
		return r.Claim == nil || action.Key != obj.KeyOf(r.Claim)
	}
	return true
}

// repairByUnbinding takes a volume from a claim that was never bound to it and does not fit it (V4). If the Controller
// has another volume for the claim, it does that itself.
func (r *PairRequest) repairByUnbinding() (Repair, error) {
	repair, err := r.byController()
	if err != nil || repair.By == ByController || r.claimRefState() != phase.ClaimRefBound {
		return repair, err
	}
	why, unbound := "the claim was never bound to the volume, and cannot be", unbind(r.Volume)
	risk := "the volume is free for other claims then, with what is on it"
	if unbound.Spec.ClaimRef != nil { // a person's reservation stays one
		risk = "the volume stays reserved for the claim's name, and the next claim of that name gets what is on it"
	}
	return Repair{By: ByPerson, Action: updateVolume(unbound, "V4", why), Why: why, Risk: risk}, nil
}

// awaitFinalizers says what keeps an object that is being deleted, and who must take it off.
func (r *PairRequest) awaitFinalizers(violations []Violation) (Repair, error) {
	repair, err := r.byController()
	if err != nil || repair.By == ByController {
		return repair, err
	}
	var kept []string
	for _, violation := range violations {
		kept = append(kept, violation.Actual)
	}
	return byNobody("each finalizer is removed by the component that added it, once its reason is gone; removing it by hand bypasses what it protects: " + strings.Join(kept, "; ")), nil
}

// setUID gives the volume to the claim that names it and whose name is in its claimRef. The Controller never gives a claim what
// an earlier one of its name had (X3): only a person can know that it is the same claim.
func (r *PairRequest) setUID() (Repair, error) {
	mismatches, err := match.CheckNamed(r.Claim, r.Volume)
	if err == nil && r.Claim.UID == "" {
		err = missingUID(r.Claim)
	}
	owners := r.View.Owners(r.Volume.Name)
	switch {
	case err != nil:
		return Repair{}, err
	case len(mismatches) > 0 && !r.deleting():
		return byNobody("the volume does not fit the claim: " + mismatches.String()), nil
	case match.OwnedByAnother(obj.KeyOf(r.Claim), owners) && !r.deleting():
		return byNobody("the volume was bound to " + oneline.Join(owners, ", ", obj.Key.String) + " too"), nil
	}
	why := fmt.Sprintf("the claim names volume %q, which fits it; with the claim's UID in its claimRef the two are bound again", r.Volume.Name)
	risk := "the volume was pre-bound to a claim of that name; if that is not this one, this one gets another's data"
	if uid := r.Volume.Spec.ClaimRef.UID; uid != "" {
		risk = fmt.Sprintf("the volume has the data of the claim with UID %s; if this claim is not its restored copy, it gets another's data", uid)
	}
	return r.setClaimRef("L4", why, risk), nil
}

// chooseOwner gives a volume without claimRef to this one of the claims that are bound to it. Only a
// person can know whose data it is. The fit does not count, for the claim has the volume already.
func (r *PairRequest) chooseOwner() (Repair, error) {
	if r.Claim.UID == "" {
		return Repair{}, missingUID(r.Claim)
	}
	why := fmt.Sprintf("several claims are bound to volume %q; with this claim's UID in claimRef it is this one's", r.Volume.Name)
	losers := others(obj.KeyOf(r.Claim), r.View.Owners(r.Volume.Name))
	risk := "these claims become Lost, and if the data is theirs, this one gets it: " + oneline.Join(losers, ", ", obj.Key.String)
	return r.setClaimRef("C11", why, oneline.Text(risk, messageLimit)), nil
}

// setClaimRef gives the volume to the claim, unless it is not safe to give it to any claim.
func (r *PairRequest) setClaimRef(rule, why, risk string) Repair {
	at, policy := r.Volume.Status.Phase, r.Volume.Spec.PersistentVolumeReclaimPolicy
	switch {
	case r.deleting():
		return byNobody("the claim or the volume is being deleted")
	case len(r.SameStorage) > 0:
		return byNobody("the storage is also that of " + strings.Join(r.SameStorage, ", "))
	case (at == corev1.VolumeReleased || at == corev1.VolumeFailed) && policy != corev1.PersistentVolumeReclaimRetain:
		return byNobody(fmt.Sprintf("the volume is %s with reclaim policy %s: its data may be deleted already, or soon; set the policy to Retain first, and then see what is left", at, policy))
	}
	changed := r.Volume.DeepCopy()
	changed.Spec.ClaimRef = referenceTo(r.Claim)
	return Repair{By: ByPerson, Action: updateVolume(changed, rule, why), Why: why, Risk: risk}
}

// recreateVolume creates the volume of a claim whose volume does not exist (C6, C10). Only a person can know where its storage
// is. The rest is fixed: the claim binds only to a volume of that name with its UID (C11), and the policy Retain keeps the
// storage if the person errs.
func (r *PairRequest) recreateVolume() (Repair, error) {
	claim := r.Claim
	switch {
	case claim.UID == "":
		return Repair{}, missingUID(claim)
	case claim.Spec.VolumeName == "":
		return byNobody(fmt.Sprintf("the claim was bound and names no volume: set reclaim policy Retain on every volume whose claimRef has UID %s, "+
			"and then spec.volumeName to the name of the one with the claim's data; if there is no such volume, delete the claim and create it anew", claim.UID)), nil
	}
	volume := volumeFor(claim, claim.Spec.VolumeName, corev1.PersistentVolumeReclaimRetain)
	volume.Spec.ClaimRef.ResourceVersion = "" // it would be stale by the time of the write
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	if had := claim.Status.Capacity[corev1.ResourceStorage]; quantities.Compare(had, size) > 0 {
		size = had.DeepCopy()
		volume.Spec.Capacity[corev1.ResourceStorage] = size
	}
	why := fmt.Sprintf("first set reclaim policy Retain on every volume with UID %s in its claimRef, and on every volume of the storage that the claim had, and delete those of that storage; "+
		"then create one with reclaim policy Retain, no annotation, that storage as its source, if it is still there, at least %s, access modes %v, volume mode %s, "+
		"exactly the name %q, and claimRef to %s/%s with UID %s: with that the claim has it again",
		claim.UID, size.String(), volume.Spec.AccessModes, match.VolumeModeOf(volume.Spec.VolumeMode), volume.Name, claim.Namespace, claim.Name, claim.UID)
	return Repair{By: ByPerson, Action: Action{Kind: CreateVolume, Volume: volume, Rule: "C11", Why: why}, Why: why,
		Risk: "the claim gets what is on that storage; if it is not the claim's, it gets another's data"}, nil
}
