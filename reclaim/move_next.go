package reclaim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/phase"
)

// mover is a move under way.
type mover struct {
	volume    *corev1.PersistentVolume
	note      *moveNote
	known     Known
	accepting []Risk
	hazards   []Hazard
}

// next reads off the volume how far the move is: its claimRef names the old claim, nobody, or the new one. What is
// somebody else's by now is left as it is: the note may be an old one.
func (m mover) next() (Step, error) {
	ref := m.volume.Spec.ClaimRef
	toNew := ref != nil && ref.Namespace == m.note.To.Namespace && ref.Name == m.note.To.Name
	switch {
	case toNew && ref.UID != "":
		return m.finish()
	case ref != nil && !toNew && !m.held():
		return Step{}, refuseMove(m.volume.Name, Taken, fmt.Sprintf("somebody gave it to %s/%s meanwhile, neither %s nor %s", ref.Namespace, ref.Name, m.note.From, nameOf(&m.note.To)))
	case ref == nil:
		r := review{accepting: m.accepting}
		if step, err := m.freed(&r); step.Kind != "" || err != nil {
			return step, err
		}
		m.hazards = r.hazards
	}
	switch {
	case m.volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		return m.keep(), nil
	case toNew:
		return m.arrive()
	}
	return m.leave()
}

// freed looks whose a volume without claimRef is (M2). No step and no error: the move may have it.
func (m mover) freed(r *review) (Step, error) {
	owners, read := m.known.owners(m.volume.Name)
	switch {
	case !read:
		return readStep(Read{Kind: ReadClaims}), nil
	case !slices.ContainsFunc(owners, m.takesPart):
		r.disowned(m.volume, m.known, nameOf(&m.note.To))
		return r.decided(m.volume.Name)
	case len(owners) == 1:
		return waitStep("somebody freed it while %s has it; it is bound to it again", nameOf(owners[0])), nil
	}
	return Step{}, refuseMove(m.volume.Name, Taken, fmt.Sprintf("it has no claimRef, and several claims are Bound to it; set its claimRef to the one whose data it is, with namespace, name and UID: %s", names(owners)))
}

// takesPart reports whether a claim is the old one or has the name of the new one.
func (m mover) takesPart(claim *corev1.PersistentVolumeClaim) bool {
	from := m.note.From
	return nameOf(claim) == nameOf(&m.note.To) || claim.Namespace == from.Namespace && claim.Name == from.Name && claim.UID == from.UID
}

// keep makes the reclaim policy Retain again.
func (m mover) keep() Step {
	kept := Retain(m.volume)
	return Step{Kind: StepUpdateVolume, Volume: kept.Volume, Hazards: kept.Hazards, Why: "keep it: somebody changed its reclaim policy"}
}

// held reports whether the volume is still as the old claim had it.
func (m mover) held() bool {
	ref, from := m.volume.Spec.ClaimRef, m.note.From
	return ref.Namespace == from.Namespace && ref.Name == from.Name && ref.UID == from.UID
}

// leave is for a volume that the old claim has, or had: that one is deleted, and then the volume set aside.
func (m mover) leave() (Step, error) {
	from := m.note.From
	claim, read := m.known.claim(from.Namespace, from.Name)
	switch {
	case !read:
		return readStep(Read{ReadClaim, from.Namespace, from.Name}), nil
	case !m.serves(claim):
		setAside, err := m.note.setAside(m.volume)
		return Step{Kind: StepUpdateVolume, Volume: setAside, Hazards: m.hazards, Why: fmt.Sprintf("%s is gone: set it aside for %s", from, nameOf(&m.note.To))}, err
	case m.volume.Spec.ClaimRef == nil:
		return waitStep("somebody freed it while %s has it; it is bound to it again", from), nil
	case claim.DeletionTimestamp != nil:
		return waitStep("%s is being deleted; held by %v", from, claim.Finalizers), nil
	}
	return m.dismiss(claim)
}

// serves reports whether the claim is the old one, and has the volume or had it until somebody freed it.
func (m mover) serves(claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil || claim.UID != m.note.From.UID {
		return false
	}
	return claim.Spec.VolumeName == "" || claim.Spec.VolumeName == m.volume.Name
}

// dismiss deletes the old claim. From then on there is no way back, so all is looked at once more.
func (m mover) dismiss(claim *corev1.PersistentVolumeClaim) (Step, error) {
	r := review{accepting: m.accepting}
	r.source(m.volume, m.known)
	to := &m.note.To
	switch existing, read := m.known.claim(to.Namespace, to.Name); {
	case !read:
		r.unread(Read{ReadClaim, to.Namespace, to.Name})
	case existing != nil:
		r.waiting(existing, m.volume)
	}
	if step, err := r.decided(m.volume.Name); step.Kind != "" || err != nil {
		return step, err
	}
	return Step{Kind: StepDeleteClaim, Claim: claim.DeepCopy(), Hazards: r.hazards, Why: m.volume.Name + " is kept",
		Preconditions: metav1.Preconditions{UID: new(claim.UID), ResourceVersion: new(claim.ResourceVersion)}}, nil
}

// arrive is for a volume that is set aside for the new claim.
func (m mover) arrive() (Step, error) {
	to := &m.note.To
	claim, read := m.known.claim(to.Namespace, to.Name)
	switch {
	case !read:
		return readStep(Read{ReadClaim, to.Namespace, to.Name}), nil
	case phase.BoundByController(m.volume):
		return Step{Kind: StepUpdateVolume, Volume: reserved(m.volume, to), Why: "a reservation is a person's"}, nil
	case claim == nil:
		return Step{Kind: StepCreateClaim, Claim: to.DeepCopy(), Why: m.volume.Name + " is set aside for it"}, nil
	case claim.DeletionTimestamp != nil:
		return waitStep("%s is being deleted; when it is gone it is created again", nameOf(to)), nil
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != m.volume.Name || claim.Status.Phase == corev1.ClaimLost:
		return Step{}, refuseMove(m.volume.Name, Taken, fmt.Sprintf("claim %s names volume %q and is %s: the move goes on once that claim is gone; before it is deleted, set reclaim policy Retain on every volume whose claimRef has its UID %s", nameOf(to), claim.Spec.VolumeName, claim.Status.Phase, claim.UID))
	}
	r := review{}
	if claim.Spec.VolumeName == "" { // somebody else created it, and only one that fits is bound
		r.ready(claim, m.volume)
	}
	if err := r.refusal("move", m.volume.Name); err != nil {
		return Step{}, err
	}
	return waitStep("it is set aside for %s, which is there; a controller binds them", nameOf(to)), nil
}

// finish is for a volume that a claim of the new name has, or had.
func (m mover) finish() (Step, error) {
	to := &m.note.To
	claim, read := m.known.claim(to.Namespace, to.Name)
	switch {
	case !read:
		return readStep(Read{ReadClaim, to.Namespace, to.Name}), nil
	case claim == nil || phase.LinkOf(m.volume, claim) != phase.Held:
		if m.volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			return m.keep(), nil
		}
		return Step{}, refuseMove(m.volume.Name, Missing, fmt.Sprintf("claim %s had it and is gone: take the annotation %s off, which ends the move; the volume is kept", nameOf(to), MoveAnnotation))
	case claim.DeletionTimestamp != nil:
		return waitStep("%s has it and is being deleted", nameOf(to)), nil
	case m.volume.Status.Phase != corev1.VolumeBound || phase.Owned(claim) != m.volume.Name:
		return waitStep("it is being bound to %s", nameOf(to)), nil
	}
	ended := m.note.ended(m.volume)
	why := fmt.Sprintf("%s has it; its reclaim policy is %s as before", nameOf(to), m.note.Policy)
	if policy := ended.Spec.PersistentVolumeReclaimPolicy; policy != m.note.Policy {
		why = fmt.Sprintf("%s has it, not by this move alone; its reclaim policy stays %s, and was %s", nameOf(to), policy, m.note.Policy)
	}
	return Step{Kind: StepUpdateVolume, Volume: ended, Why: why}, nil
}
