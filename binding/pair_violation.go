package binding

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// ViolationKind is in which way a pair is not healthy.
type ViolationKind string

const (
	// PairHalfBound (B5): the bind was begun, and some of its four writes are missing, as after a crash.
	PairHalfBound ViolationKind = "HalfBound"
	// PairUnbound (C1, C7): the two are meant for each other and fit, and the bind has not begun.
	PairUnbound ViolationKind = "Unbound"
	// PairMisfit (C7, M12, V2): the two are meant for each other, and do not fit.
	PairMisfit ViolationKind = "Misfit"
	// PairLostThoughThere (X4): the claim is Lost, and its volume is there.
	PairLostThoughThere ViolationKind = "LostThoughThere"
	// PairClaimRefDropped (M2): the claim was bound, and somebody took the volume's claimRef away.
	PairClaimRefDropped ViolationKind = "ClaimRefDropped"
	// PairUIDCleared (C11): the claim was bound, and the volume is merely reserved for its name.
	PairUIDCleared ViolationKind = "UIDCleared"
	// PairUIDDiffers (L4): the claim names the volume, whose claimRef has the UID of another claim of that name, as
	// after both were restored from a backup.
	PairUIDDiffers ViolationKind = "UIDDiffers"
	// PairVolumeTaken (C9, C10): the claim names the volume, which is another claim's.
	PairVolumeTaken ViolationKind = "VolumeTaken"
	// PairVolumeAbsent (C6, C10): the claim names a volume that does not exist, or was bound and names none.
	PairVolumeAbsent ViolationKind = "VolumeAbsent"
	// PairSurplus (V2): the volume is held by the claim, which has another.
	PairSurplus ViolationKind = "Surplus"
	// PairWrongPhase (V1, V3): nobody has the volume, and its phase does not say so.
	PairWrongPhase ViolationKind = "WrongPhase"
	// PairClaimTerminating (F2) and PairVolumeTerminating (F3): it is being deleted, and something keeps it.
	PairClaimTerminating  ViolationKind = "ClaimTerminating"
	PairVolumeTerminating ViolationKind = "VolumeTerminating"
	// PairUnrelated: neither names the other.
	PairUnrelated ViolationKind = "Unrelated"
)

func (r *PairRequest) violations() []Violation {
	var found []Violation
	if v, ok := r.parted(); ok {
		found = append(found, v)
	}
	if r.Claim != nil && r.Claim.DeletionTimestamp != nil {
		found = append(found, Violation{PairClaimTerminating, "to be gone", keptBy(r.Claim.Finalizers, r.users())})
	}
	if r.Volume != nil && r.Volume.DeletionTimestamp != nil {
		found = append(found, Violation{PairVolumeTerminating, "to be gone", keptBy(r.Volume.Finalizers, nil)})
	}
	return found
}

// parted is what is wrong between the two.
func (r *PairRequest) parted() (Violation, bool) {
	switch {
	case r.Claim == nil && r.Volume == nil:
		return Violation{}, false
	case r.Volume == nil:
		return r.claimAlone()
	case r.Claim == nil:
		return r.volumeAlone(nil)
	case r.names():
		return r.named()
	}
	switch r.link() {
	case phase.Held:
		return r.held()
	case phase.Reserved:
		return r.reserved()
	case phase.Gone: // it is an earlier claim's, and this one does not ask for it
		return r.volumeAlone(r.Claim)
	}
	return Violation{PairUnrelated, "one that names the other", "neither"}, true
}

func (r *PairRequest) claimAlone() (Violation, bool) {
	switch name := r.Claim.Spec.VolumeName; {
	case name != "":
		return Violation{PairVolumeAbsent, "volume " + name, "no such volume"}, true
	case phase.BindCompleted(r.Claim):
		return Violation{PairVolumeAbsent, "the name of the volume it was bound to", "none in spec.volumeName"}, true
	}
	return Violation{}, false
}

// volumeAlone is for a volume without a claim of its own. of is who has the name of the one it had.
func (r *PairRequest) volumeAlone(of *corev1.PersistentVolumeClaim) (Violation, bool) {
	has, wants := r.Volume.Status.Phase, phase.OfVolume(r.Volume, phase.VolumeStandingOf(r.Volume, of))
	return Violation{PairWrongPhase, "phase " + string(wants), "phase " + orNone(string(has))}, has != wants
}

// named is for a claim that names the volume.
func (r *PairRequest) named() (Violation, bool) {
	switch r.link() {
	case phase.Held:
		return r.begun()
	case phase.Gone:
		return Violation{PairUIDDiffers, "claimRef.uid " + string(r.Claim.UID), string(r.Volume.Spec.ClaimRef.UID)}, true
	case phase.Other:
		return Violation{PairVolumeTaken, "claimRef to " + KeyOf(r.Claim).String(), "claimRef to " + ownerIn(r.Volume.Spec.ClaimRef).String()}, true
	case phase.Reserved:
		if phase.BindCompleted(r.Claim) {
			return Violation{PairUIDCleared, "claimRef.uid " + string(r.Claim.UID), none}, true
		}
		return Violation{PairUnbound, "the two bound", "the volume reserved for the claim"}, r.Claim.DeletionTimestamp == nil
	}
	return r.unclaimed()
}

// unclaimed is for a claim that names the volume, which has no claimRef.
func (r *PairRequest) unclaimed() (Violation, bool) {
	owner := r.View.Owner(r.Volume.Name)
	switch mismatches, err := CheckNamed(r.Claim, r.Volume); {
	case owner != (Key{}) && owner != KeyOf(r.Claim):
		return Violation{PairVolumeTaken, "claimRef to " + KeyOf(r.Claim).String(), "the owner " + owner.String()}, true
	case phase.BindCompleted(r.Claim):
		return Violation{PairClaimRefDropped, "claimRef to " + KeyOf(r.Claim).String(), none}, true
	case r.Claim.DeletionTimestamp != nil || err != nil:
		return Violation{}, false
	case len(mismatches) > 0:
		return Violation{PairMisfit, "a volume that fits the claim", mismatches.String()}, true
	}
	return Violation{PairUnbound, "the two bound", "a claim that names a free volume"}, true
}

// begun is for a claim that names a volume which it holds: all four writes should be there. That of a claim being
// deleted which was never bound is not finished (C12).
func (r *PairRequest) begun() (Violation, bool) {
	missing := remaining(r.Volume, r.Claim)
	switch {
	case len(missing) == 0, r.Claim.DeletionTimestamp != nil && !phase.BindCompleted(r.Claim):
		return Violation{}, false
	case r.Claim.Status.Phase == corev1.ClaimLost:
		return Violation{PairLostThoughThere, "phase Bound", "phase Lost, and a volume that it holds"}, true
	}
	return Violation{PairHalfBound, "all four writes of a bind", strings.Join(missing, ", ") + " still to come"}, true
}

// remaining are the numbers of the writes that are missing.
func remaining(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) []string {
	var missing []string
	for {
		action := nextOfFour(volume, claim)
		if !action.Writes() {
			return missing
		}
		missing = append(missing, action.Rule)
		if action.Volume != nil {
			volume = action.Volume
		} else {
			claim = action.Claim
		}
	}
}

// held is for a volume that is held by a claim which does not name it.
func (r *PairRequest) held() (Violation, bool) {
	if other := r.Claim.Spec.VolumeName; other != "" {
		return Violation{PairSurplus, "a claim that names it", "a claim that names " + other}, true
	}
	if phase.BindCompleted(r.Claim) {
		return Violation{PairVolumeAbsent, "the name of the volume it was bound to", "none in spec.volumeName"}, true
	}
	if misfit, bad := r.misfit(); bad || r.Claim.DeletionTimestamp != nil {
		return misfit, bad
	}
	return r.begun()
}

// reserved is for a volume that is reserved for a claim which does not name it.
func (r *PairRequest) reserved() (Violation, bool) {
	if r.Claim.Spec.VolumeName != "" || phase.BindCompleted(r.Claim) || r.Claim.DeletionTimestamp != nil {
		return r.volumeAlone(r.Claim)
	}
	if misfit, bad := r.misfit(); bad {
		return misfit, true
	}
	return Violation{PairUnbound, "the two bound", "the volume reserved for the claim"}, true
}

// misfit says why a volume that is set aside for the claim does not fit it (M12).
func (r *PairRequest) misfit() (Violation, bool) {
	mismatches, err := Check(r.Claim, r.Volume, Terms{Class: r.View.Class(storageclass.OfClaim(r.Claim))})
	return Violation{PairMisfit, "a volume that fits the claim", mismatches.String()}, err == nil && len(mismatches) > 0
}

// users are the names of the pods that name the claim.
func (r *PairRequest) users() []string {
	pods, _ := r.View.PodsOf(r.Claim.Namespace, r.Claim.Name)
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

func keptBy(finalizers, pods []string) string {
	text := "no finalizer left"
	if len(finalizers) > 0 {
		text = "finalizers " + strings.Join(finalizers, ", ")
	}
	if len(pods) > 0 {
		text += fmt.Sprintf(", and %d pods that name it: %s", len(pods), strings.Join(pods, ", "))
	}
	return text
}
