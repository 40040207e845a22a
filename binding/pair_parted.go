package binding

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

func (r *PairRequest) violations() []Violation {
	var found []Violation
	if v, ok := r.parted(); ok {
		found = append(found, v)
	}
	if r.Claim != nil && r.Claim.DeletionTimestamp != nil {
		found = append(found, Violation{PairClaimTerminating, "to be gone", keptBy(r.Claim.Finalizers, usersOf(r.Claim, r.View))})
	}
	if r.Volume != nil && r.Volume.DeletionTimestamp != nil {
		found = append(found, Violation{PairVolumeTerminating, "to be gone", keptBy(r.Volume.Finalizers, nil) + r.attached()})
	}
	return found
}

// attached says which nodes the volume is attached to; "" if none is known.
func (r *PairRequest) attached() string {
	if attachments, _ := r.View.AttachmentsOf(r.Volume.Name); len(attachments) > 0 {
		return ", and " + attachedTo(attachments)
	}
	return ""
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
	return Violation{PairWrongPhase, "phase " + string(wants), "phase " + oneline.OrNone(string(has))}, has != wants
}

// named is for a claim that names the volume.
func (r *PairRequest) named() (Violation, bool) {
	switch r.link() {
	case phase.Held:
		return r.begun()
	case phase.Gone:
		return Violation{PairUIDDiffers, "claimRef.uid " + string(r.Claim.UID), string(r.Volume.Spec.ClaimRef.UID)}, true
	case phase.Other:
		return Violation{PairVolumeTaken, "claimRef to " + obj.KeyOf(r.Claim).String(), "claimRef to " + ownerIn(r.Volume.Spec.ClaimRef).String()}, true
	case phase.Reserved:
		if phase.BindCompleted(r.Claim) {
			return Violation{PairUIDCleared, "claimRef.uid " + string(r.Claim.UID), oneline.None}, true
		}
		return Violation{PairUnbound, "the two bound", "the volume reserved for the claim"}, r.Claim.DeletionTimestamp == nil
	}
	return r.unclaimed()
}

// unclaimed is for a claim that names the volume, which has no claimRef.
func (r *PairRequest) unclaimed() (Violation, bool) {
	owners, owns := r.View.Owners(r.Volume.Name), phase.Owned(r.Claim) == r.Volume.Name
	switch mismatches, err := match.CheckNamed(r.Claim, r.Volume); {
	case match.KeptFrom(obj.KeyOf(r.Claim), owners) && owns:
		return Violation{PairContended, "claimRef to " + obj.KeyOf(r.Claim).String(), oneline.None + ", and " + match.OwnersText(owners)}, true
	case match.KeptFrom(obj.KeyOf(r.Claim), owners):
		return Violation{PairVolumeTaken, "claimRef to " + obj.KeyOf(r.Claim).String(), match.OwnersText(owners)}, true
	case owns:
		return Violation{PairClaimRefDropped, "claimRef to " + obj.KeyOf(r.Claim).String(), oneline.None}, true
	case r.Claim.DeletionTimestamp != nil || err != nil:
		return Violation{}, false
	case len(mismatches) > 0:
		return Violation{PairMisfit, "a volume that fits the claim", mismatches.String()}, true
	}
	return Violation{PairUnbound, "the two bound", "a claim that names a free volume"}, true
}

func keptBy(finalizers, pods []string) string {
	text := "no finalizer left"
	if len(finalizers) > 0 {
		text = "finalizers " + strings.Join(finalizers, ", ")
	}
	if len(pods) > 0 {
		text += ", and the pods that use it: " + strings.Join(pods, ", ")
	}
	return text
}
