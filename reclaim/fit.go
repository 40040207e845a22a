package reclaim

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
)

// misfits returns what keeps a volume that is set aside for the claim from serving it (M12), in words. That the volume is
// being deleted is not among it: see take. A claim without access modes is one to come of which only the name is known,
// and what counts is whether the volume can serve anybody.
func misfits(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) []string {
	if len(claim.Spec.AccessModes) == 0 {
		if err := match.CheckWellFormed(volume); err != nil {
			return []string{string(match.Malformed) + ": " + err.Error()}
		}
		return nil
	}
	mismatches, err := match.Check(claim, reserved(volume, claim), match.Terms{})
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, mismatch := range mismatches {
		if mismatch.Reason != match.Deleting {
			found = append(found, mismatch.String())
		}
	}
	return found
}
