package decision

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// Repair is what to do about a pair. It is one step, as every decision is: after it the pair is checked again.
type Repair struct {
	By Repairer `json:"by"`
	// Why is the reason in one line: of the step, or why there is none.
	Why string `json:"why"`
	// Risk is what a person must know before the step; "" if there is none.
	Risk string `json:"risk,omitempty"`
	// Action is the step: most often the object to write, on the resourceVersion it was decided on. It is Nothing if there
	// is no step.
	Action Action `json:"step,omitzero"`
}

// Repairer says who repairs a pair.
type Repairer string

const (
	// ByController means that the Controller, or kube-controller-manager, repairs it by itself. Repair.Action is its next step.
	ByController Repairer = "Controller"
	// ByPerson means that Repair.Action repairs it, if a person takes the risk. The Controller does the rest. A volume to
	// create lacks its source, which only a person can know, and Repair.Why says what comes before it, one step after each
	// semicolon.
	ByPerson Repairer = "Person"
	// ByNobody means that no write is known to be safe.
	ByNobody Repairer = "Nobody"
)

func (r *PairRequest) repair(violations []Violation) (Repair, error) {
	switch violations[0].Kind {
	case PairUIDDiffers, PairUIDCleared:
		return r.setUID()
	case PairContended:
		return r.chooseOwner()
	case PairVolumeTaken:
		return byNobody(fmt.Sprintf("the volume serves another claim, and spec.volumeName cannot be changed: for another volume, set reclaim policy Retain "+
			"on every volume whose claimRef has UID %s, then delete the claim and create it anew without that name", r.Claim.UID)), nil
	case PairUnrelated:
		return byNobody("neither the claim nor the volume refers to the other"), nil
	case PairVolumeAbsent:
		if r.Claim.DeletionTimestamp == nil {
			return r.recreateVolume()
		}
		violations = violations[1:]
	}
	repair, err := r.byController()
	if err != nil || repair.By == ByController {
		return repair, err
	}
	switch violations[0].Kind {
	case PairClaimTerminating, PairVolumeTerminating:
		return awaitFinalizers(violations), nil
	case PairIncompatible:
		if r.claimRefState() == phase.ClaimRefBound {
			return r.unbindVolume(), nil
		}
	}
	return repair, nil
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
	own := action.Kind == Requeue && r.Claim != nil && action.Key == obj.KeyOf(r.Claim)
	return action.Kind != Nothing && action.Kind != Wait && !own
}

// unbindVolume takes a volume from a claim that was never bound to it and does not fit it (V4).
func (r *PairRequest) unbindVolume() Repair {
	action := unbind(r.Volume, "V4", "the claim was never bound to the volume, and cannot be").Complete()
	risk := "the volume is free for other claims then, with what is on it"
	if action.Volume.Spec.ClaimRef != nil { // a person's reservation stays one
		risk = "the volume stays reserved for the claim's name, and the next claim of that name gets what is on it"
	}
	return Repair{By: ByPerson, Action: action, Why: action.Why, Risk: risk}
}

// awaitFinalizers says what keeps an object that is being deleted, and who must take it off.
func awaitFinalizers(violations []Violation) Repair {
	var kept []string
	for _, violation := range violations {
		kept = append(kept, violation.Actual)
	}
	return byNobody("each finalizer is removed by the component that added it, once its reason is gone; removing it by hand bypasses what it protects: " + strings.Join(kept, "; "))
}

// setUID gives the volume to the claim that names it and whose name is in its claimRef. The Controller never gives a claim what
// an earlier one of its name had (X3): only a person can know that it is the same claim.
func (r *PairRequest) setUID() (Repair, error) {
	mismatches, err := match.CheckNamed(r.Claim, r.Volume, r.View.Parsed(r.Claim))
	if err == nil && r.Claim.UID == "" {
		err = missingUID(r.Claim)
	}
	owners := claimants(r.Volume, r.View)
	switch {
	case err != nil:
		return Repair{}, err
	case len(mismatches) > 0 && !r.deleting():
		return byNobody("the volume does not fit the claim: " + mismatches.String()), nil
	case match.OwnedByAnother(obj.KeyOf(r.Claim), owners) && !r.deleting():
		return byNobody("the volume was bound to " + oneline.Join(owners, ", ", obj.Key.String) + " too"), nil
	}
	why := fmt.Sprintf("the claim names volume %q, which fits it; with the claim's UID in its claimRef the two are bound again", r.Volume.Name)
	if _, announced := reclaim.AnnouncementOf(r.Volume); announced {
		why += ", once the annotation " + reclaim.AnnouncementAnnotation + " is removed" // which an event tells (R8)
	}
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
	changed := *r.Volume
	changed.Spec.ClaimRef = referenceTo(r.Claim)
	return Repair{By: ByPerson, Action: update(&changed, nil, rule, why).Complete(), Why: why, Risk: risk}
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
	why := fmt.Sprintf("volume %q, which the claim names, does not exist; set reclaim policy Retain on every volume whose claimRef has UID %s; "+
		"set it on every volume of the storage that the claim had; delete the volumes of that storage; "+
		"create a volume with reclaim policy Retain, no annotation, that storage as its source, if it is still there, "+
		"at least %s, access modes %v, volume mode %s, exactly the name %q, and claimRef to %s/%s with UID %s: with that the claim has it again",
		volume.Name, claim.UID, size.String(), volume.Spec.AccessModes, match.VolumeModeOf(volume.Spec.VolumeMode),
		volume.Name, claim.Namespace, claim.Name, claim.UID)
	return Repair{By: ByPerson, Action: Action{Kind: CreateVolume, Volume: volume, Rule: "C11", Why: why}, Why: why,
		Risk: "the claim gets what is on that storage; if it is not the claim's, it gets another's data"}, nil
}
