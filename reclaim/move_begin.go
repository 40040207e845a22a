package reclaim

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// begin is the first step of a move, or the last one where all is done.
func begin(volume *corev1.PersistentVolume, move Move, known Known, accepting []Risk) (Step, error) {
	to := move.To
	if to == nil {
		return Step{Kind: StepDone, Why: "no move of it is under way, and none is asked for"}, nil
	}
	if to.Namespace == "" || to.Name == "" {
		return Step{}, fmt.Errorf("pvc/%s: metadata: a volume is moved to a namespace and a name", nameOf(to))
	}
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil || ref.UID == "":
		return Step{}, refuseMove(volume.Name, Missing, "no claim has it, so that there is none to move it from: use Reserve for "+nameOf(to))
	case ref.Namespace == to.Namespace && ref.Name == to.Name && volume.Status.Phase == corev1.VolumeBound:
		return Step{Kind: StepDone, Why: nameOf(to) + " has it"}, nil
	case ref.Namespace == to.Namespace && ref.Name == to.Name:
		return unmoved(volume, to, known)
	}
	r := review{accepting: accepting}
	from := r.source(volume, known)
	r.successor(volume, move, from, known)
	return r.first(volume, moveNote{
		From:   moveSource{ref.Namespace, ref.Name, ref.UID},
		To:     successor(to, from, volume.Name),
		Policy: volume.Spec.PersistentVolumeReclaimPolicy,
		Volume: volume.UID,
	})
}

// unmoved is for a volume whose claimRef names the claim that is to have it: that one is getting it, or it was an earlier
// one of that name that had it.
func unmoved(volume *corev1.PersistentVolume, to *corev1.PersistentVolumeClaim, known Known) (Step, error) {
	claim, read := known.claim(to.Namespace, to.Name)
	switch {
	case !read:
		return readStep(Read{ReadClaim, to.Namespace, to.Name}), nil
	case claim != nil && phase.LinkOf(volume, claim) == phase.Held:
		return Step{}, refuseMove(volume.Name, Taken, "it is being bound to "+nameOf(to))
	}
	return Step{}, refuseMove(volume.Name, Taken, fmt.Sprintf("it is %s and was that of an earlier claim %s: use Reserve for the one that has that name now, or will have it", volume.Status.Phase, nameOf(to)))
}

// first asks for what was not read, and then for the first write.
func (r *review) first(volume *corev1.PersistentVolume, note moveNote) (Step, error) {
	if step, err := r.decided(volume.Name); step.Kind != "" || err != nil {
		return step, err
	}
	noted, err := note.noted(volume)
	return Step{Kind: StepUpdateVolume, Volume: noted, Hazards: r.hazards, Why: "keep it, and note that it moves from " + note.From.String() + " to " + nameOf(&note.To)}, err
}

// decided is the refusal, or the first read that is missing for it; none: go on.
func (r *review) decided(volume string) (Step, error) {
	err := r.refusal("move", volume)
	if refused := (*Refusal)(nil); errors.As(err, &refused) && len(refused.Reads()) > 0 {
		return readStep(refused.Reads()[0]), nil
	}
	return Step{}, err
}

// source reviews the claim that has the volume; nil if it is gone.
func (r *review) source(volume *corev1.PersistentVolume, known Known) *corev1.PersistentVolumeClaim {
	ref := volume.Spec.ClaimRef
	if volume.DeletionTimestamp != nil {
		r.object(Objection{Reason: Deleting, Message: "it is being deleted"})
	}
	r.warn(DataDisclosed, fmt.Sprintf("the new claim can read what %s/%s left on it", ref.Namespace, ref.Name))
	claim, read := known.claim(ref.Namespace, ref.Name)
	keeps := has(volume, claim)
	switch {
	case !read:
		r.unread(Read{ReadClaim, ref.Namespace, ref.Name})
	case !keeps:
		r.spared(volume, claim)
	case phase.Owned(claim) != volume.Name:
		r.object(Objection{Reason: Taken, Message: "it is being bound to " + nameOf(claim)})
	}
	if !read || keeps || claim == nil { // or else they use another claim of that name
		r.unused(known, ref.Namespace, ref.Name)
	}
	if !keeps {
		return nil
	}
	return claim
}

// successor reviews the claim that is to have the volume.
func (r *review) successor(volume *corev1.PersistentVolume, move Move, from *corev1.PersistentVolumeClaim, known Known) {
	existing, read := known.claim(move.To.Namespace, move.To.Name)
	switch {
	case !read:
		r.unread(Read{ReadClaim, move.To.Namespace, move.To.Name})
	case existing != nil:
		r.waiting(existing, volume)
	case copies(move.To) && from == nil:
		r.object(Objection{Reason: Missing, Message: "its claim is gone, so that there is none to copy: give the new one in full, with access modes and a size"})
	case !copies(move.To):
		r.ready(move.To, volume)
	}
}

// waiting objects to a claim, there already, that does not wait for the volume and for no other.
func (r *review) waiting(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) {
	r.ready(claim, volume)
	if claim.Spec.VolumeName == "" {
		r.object(Objection{Reason: Taken, Message: fmt.Sprintf("claim %s exists and may take another volume: set its spec.volumeName to %s first", nameOf(claim), volume.Name)})
	}
}
