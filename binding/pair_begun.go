package binding

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

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
	mismatches, err := match.Check(r.Claim, r.Volume, match.Terms{Class: r.View.Class(storageclass.OfClaim(r.Claim))})
	return Violation{PairMisfit, "a volume that fits the claim", mismatches.String()}, err == nil && len(mismatches) > 0
}
