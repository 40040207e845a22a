package reclaim

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/phase"
)

// take reviews that the volume is taken from whoever has it and given to heir: a claim by its name, or others in words.
func (r *review) take(volume *corev1.PersistentVolume, known Known, heir string) {
	r.untouched(volume)
	ref := volume.Spec.ClaimRef
	if ref == nil {
		r.disowned(volume, known, heir)
		return
	}
	claim, read := known.claim(ref.Namespace, ref.Name)
	keeps := has(volume, claim)
	switch {
	case !read:
		r.unread(Read{ReadClaim, ref.Namespace, ref.Name})
	case keeps:
		r.object(Objection{Reason: ClaimLives, Risk: ClaimLost, Message: fmt.Sprintf("claim %s/%s exists and has it", ref.Namespace, ref.Name)})
	case ref.UID == "":
		r.object(Objection{Reason: SetAside, Risk: ReservationLost, Message: fmt.Sprintf("it is set aside for %s/%s", ref.Namespace, ref.Name)})
	default:
		r.spared(volume, claim)
	}
	if !read || keeps || claim == nil && ref.UID != "" {
		r.unused(known, ref.Namespace, ref.Name)
	}
	if ref.UID != "" {
		r.warn(DataDisclosed, fmt.Sprintf("%s can read what %s/%s left on it", heir, ref.Namespace, ref.Name))
	}
}

// disowned reviews that a volume without claimRef is taken from the claims that are Bound to it, but for the heir (M2).
func (r *review) disowned(volume *corev1.PersistentVolume, known Known, heir string) {
	owners, read := known.owners(volume.Name)
	if !read {
		r.unread(Read{Kind: ReadClaims})
		return
	}
	for _, owner := range owners {
		if nameOf(owner) == heir {
			continue
		}
		r.object(Objection{Reason: ClaimLives, Risk: ClaimLost, Message: fmt.Sprintf("claim %s is Bound to it, though it has no claimRef", nameOf(owner))})
		r.unused(known, owner.Namespace, owner.Name)
		r.warn(DataDisclosed, fmt.Sprintf("%s can read what %s has on it", heir, nameOf(owner)))
	}
}

// untouched objects to a volume that is going, or that a move has in its hands.
func (r *review) untouched(volume *corev1.PersistentVolume) {
	if volume.DeletionTimestamp != nil {
		r.object(Objection{Reason: Deleting, Message: "it is being deleted"})
	}
	if _, moving := volume.Annotations[MoveAnnotation]; moving {
		r.object(Objection{Reason: Moving, Message: "a move of it is under way: finish it, or take the annotation " + MoveAnnotation + " off, which ends it and leaves the volume as it is"})
	}
}

// has reports whether the claim that exists under the name in the volume's claimRef has the volume or is getting it.
func has(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if claim == nil {
		return false
	}
	switch phase.LinkOf(volume, claim) {
	case phase.Held:
		return claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name
	case phase.Reserved:
		return claim.Spec.VolumeName == volume.Name
	}
	return false
}

// spared objects to a volume that nobody has any more and that is not kept: whoever reclaims it may be at work.
func (r *review) spared(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if phase.VolumeStandingOf(volume, claim) == phase.Misplaced {
		return
	}
	if policy := volume.Spec.PersistentVolumeReclaimPolicy; policy != corev1.PersistentVolumeReclaimRetain {
		r.object(Objection{Reason: PolicyDestroys, Risk: DataDestroyed,
			Message: fmt.Sprintf("its reclaim policy is %s, so that what is on it may be on its way out: set the policy to Retain first", policy)})
	}
	if volume.Status.Phase == corev1.VolumeFailed {
		r.warn(DataDestroyed, "reclaiming it was tried and failed, perhaps halfway: "+volume.Status.Message)
	}
}

// unused objects to pods that have not finished and use the claim.
func (r *review) unused(known Known, namespace, claim string) {
	pods, read := known.users(namespace, claim)
	if !read {
		r.unread(Read{Kind: ReadPods, Namespace: namespace})
		return
	}
	if len(pods) > 0 {
		r.object(Objection{Reason: InUse, Risk: PodsDisturbed, Message: "pods use it: " + names(pods)})
	}
}

func (r *review) unread(read Read) {
	r.object(Objection{Reason: Unknown, Read: read, Message: fmt.Sprintf("%s was not read from the server", read)})
}

func names[T metav1.Object](objects []T) string {
	list := make([]string, len(objects))
	for i, object := range objects {
		list[i] = object.GetNamespace() + "/" + object.GetName()
	}
	return strings.Join(list, ", ")
}
