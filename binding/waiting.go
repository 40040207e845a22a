package binding

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// waitsFor reports whether a claim would take the volume (W1): it is not bound, and either names the volume, which
// nobody owns, and could have it (C7, C8), or names none and the volume fits it (C1). A claim that nothing can be decided
// for does not wait; its own sync says why.
func waitsFor(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, terms func(*corev1.PersistentVolumeClaim) match.Terms) bool {
	name := claim.Spec.VolumeName
	if claim.DeletionTimestamp != nil || name != "" && name != volume.Name {
		return false
	}
	switch phase.ClaimStandingOf(claim, volume) {
	case phase.Unbound:
		criteria, err := match.NewCriteria(claim, terms(claim))
		return err == nil && criteria.Fits(volume)
	case phase.Asking:
		mismatches, err := match.CheckNamed(claim, volume)
		return err == nil && len(mismatches) == 0
	case phase.Finishing:
		return phase.LinkOf(volume, claim) == phase.Reserved
	}
	return false
}

// needier is the claim that a volume is offered to before the other, which may be nil: who names it, then who
// asks for most, then by name.
func needier(best, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	if best == nil {
		return claim
	}
	asks, asksBest := claim.Spec.Resources.Requests[corev1.ResourceStorage], best.Spec.Resources.Requests[corev1.ResourceStorage]
	names, namesBest := claim.Spec.VolumeName == volume.Name, best.Spec.VolumeName == volume.Name
	switch {
	case names != namesBest:
		if names {
			return claim
		}
		return best
	case cmp.Or(quantities.Compare(asksBest, asks), obj.CompareKeys(obj.KeyOf(claim), obj.KeyOf(best))) < 0:
		return claim
	}
	return best
}
