package binding

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

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

// award gives a volume without claimRef to this one of the claims that are bound to it, if nothing speaks against it. Only a
// person can know whose data it is. The fit does not count, for the claim has the volume already.
func (r *PairRequest) award() (Repair, error) {
	if r.Claim.UID == "" {
		return Repair{}, &obj.InvalidError{Object: obj.KeyOf(r.Claim).String(), Field: "metadata.uid", Problem: "is missing"}
	}
	if against := r.againstGiving(); against != "" {
		return nobody(against), nil
	}
	awarded := r.Volume.DeepCopy()
	awarded.Spec.ClaimRef = referenceTo(r.Claim)
	why := fmt.Sprintf("several claims are bound to volume %q; with this claim's UID in claimRef it is this one's", r.Volume.Name)
	risk := "these claims become Lost, and if the data is theirs, this one gets it: " + obj.JoinKeys(others(obj.KeyOf(r.Claim), r.View.Owners(r.Volume.Name)))
	return Repair{By: ByPerson, Action: updateVolume(awarded, "C11", why), Why: why, Risk: oneline.Text(risk, eventLimit)}, nil
}

// againstRepointing is why a volume cannot safely be given to a claim that names it; "" if it can.
func (r *PairRequest) againstRepointing() (string, error) {
	mismatches, err := match.CheckNamed(r.Claim, r.Volume)
	owners := r.View.Owners(r.Volume.Name)
	switch {
	case err != nil:
		return "", err
	case r.Claim.UID == "":
		return "", &obj.InvalidError{Object: obj.KeyOf(r.Claim).String(), Field: "metadata.uid", Problem: "is missing"}
	case r.deleting():
		return beingDeleted, nil
	case len(mismatches) > 0:
		return "the volume does not fit the claim: " + mismatches.String(), nil
	case match.KeptFrom(obj.KeyOf(r.Claim), owners):
		return "the volume was bound to " + obj.JoinKeys(owners) + " too", nil
	}
	return r.againstGiving(), nil
}

const beingDeleted = "the claim or the volume is being deleted"

// againstGiving is why a volume cannot safely be given to any claim; "" if it can.
func (r *PairRequest) againstGiving() string {
	at, policy := r.Volume.Status.Phase, r.Volume.Spec.PersistentVolumeReclaimPolicy
	switch {
	case r.deleting():
		return beingDeleted
	case len(r.SameStorage) > 0:
		return "the storage is also that of " + strings.Join(r.SameStorage, ", ")
	case (at == corev1.VolumeReleased || at == corev1.VolumeFailed) && policy != corev1.PersistentVolumeReclaimRetain:
		return fmt.Sprintf("the volume is %s with reclaim policy %s: its data may be on the way out or gone; set the policy to Retain first, and then see what is left", at, policy)
	}
	return ""
}
