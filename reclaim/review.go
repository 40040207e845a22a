package reclaim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// A review gathers why an operation on a volume fails, and what it puts at risk.
type review struct {
	operation string
	volume    *corev1.PersistentVolume
	known     Known
	accepted  []Risk
	reasons   []Reason
	asked     map[obj.Key]bool // what was not read, and is among the reasons
	warnings  []Warning
}

// warn adds a risk that the operation runs.
func (r *review) warn(risk Risk, format string, args ...any) {
	r.warnings = append(r.warnings, Warning{risk, fmt.Sprintf(format, args...)})
}

// reject adds a reason why the operation fails. Where the caller accepts its risk, it adds a warning instead.
func (r *review) reject(code ReasonCode, format string, args ...any) {
	risk := acceptable[code]
	if risk != "" && slices.Contains(r.accepted, risk) {
		r.warn(risk, format, args...)
		return
	}
	r.reasons = append(r.reasons, Reason{Code: code, Message: fmt.Sprintf(format, args...), Risk: risk})
}

// unread adds that something was not read, once: very many claims may name a volume.
func (r *review) unread(read obj.Key) {
	if r.asked[read] {
		return
	}
	if r.asked == nil {
		r.asked = map[obj.Key]bool{}
	}
	r.asked[read] = true
	r.reasons = append(r.reasons, Reason{Code: Unknown, Read: read, Message: fmt.Sprintf("%s was not read from the server", read)})
}

// err returns an *Error with the reasons; nil if there is none.
func (r *review) err() error {
	if len(r.reasons) == 0 {
		return nil
	}
	return &Error{Operation: r.operation, Volume: r.volume.Name, Reasons: r.reasons}
}

// claim returns a claim, nil if it does not exist, and rejects if that is not known.
func (r *review) claim(key obj.Key) (claim *corev1.PersistentVolumeClaim, known bool) {
	claim, known = r.known.claim(key)
	if !known {
		r.unread(key)
	}
	return claim, known
}

// checkRelease reviews that the volume is taken from whoever has it and given to heir: a claim by its name, or others in
// words.
func (r *review) checkRelease(heir string) {
	r.checkVolume()
	ref := r.volume.Spec.ClaimRef
	owners, listed := r.known.owners(r.volume)
	if ref == nil && !listed {
		r.unread(obj.ClaimsKey())
		return
	}
	r.checkOwners(owners, heir)
	if ref == nil {
		r.checkNames(owners, heir)
		return
	}
	r.checkHolder(func(holder *corev1.PersistentVolumeClaim) {
		r.reject(ClaimLives, "claim %s exists and has it", nameOf(holder))
	})
	if ref.UID != "" {
		r.warn(DataDisclosed, "%s can read what %s left on it", heir, name(obj.ReferencedClaim(r.volume)))
	}
}

// checkHolder reviews the claim that the claimRef names, and the pods that use it. If that claim has the volume, checkHolder
// calls checkLiving and returns it; or else nil.
func (r *review) checkHolder(checkLiving func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	key, served := obj.ReferencedClaim(r.volume), r.volume.Spec.ClaimRef.UID != ""
	claim, read := r.claim(key)
	keeps := has(claim, r.volume)
	switch {
	case keeps:
		checkLiving(claim)
	case read && served:
		r.checkPolicy(claim)
	case read:
		r.reject(PreBound, "it is pre-bound to %s", name(key))
	}
	switch {
	case claim == nil || keeps || claim.Spec.VolumeName == r.volume.Name:
		r.checkPods(key, nil)
	case claim.UID != r.volume.Spec.ClaimRef.UID: // or else it has had another volume from the first
		r.checkPods(key, claim)
	}
	if !keeps {
		return nil
	}
	return claim
}

// checkOwners reviews that a volume is taken from claims whose data may be on it, though its claimRef names none of them, but for the heir
// (M2).
func (r *review) checkOwners(owners []*corev1.PersistentVolumeClaim, heir string) {
	for _, owner := range owners {
		if nameOf(owner) == heir || obj.KeyOf(owner) == obj.ReferencedClaim(r.volume) && has(owner, r.volume) { // which is told of already
			continue
		}
		why := fmt.Sprintf("is %s and names it, so that its data may be on it", owner.Status.Phase)
		if r.volume.Spec.ClaimRef == nil && owner.Status.Phase == corev1.ClaimBound {
			why = "is Bound to it, though it has no claimRef"
		}
		r.reject(ClaimLives, "claim %s %s", nameOf(owner), why)
		r.checkPods(obj.KeyOf(owner), nil)
		r.warn(DataDisclosed, "%s can read what %s has on it", heir, nameOf(owner))
	}
}

// checkNames rejects a volume without claimRef that claims name, which do not own it as far as their status tells, and which pods with a node use: they
// may have it mounted since before it was made again (M2).
func (r *review) checkNames(owners []*corev1.PersistentVolumeClaim, heir string) {
	for _, claim := range r.known.Claims {
		if claim.Spec.VolumeName != r.volume.Name || nameOf(claim) == heir || slices.Contains(owners, claim) {
			continue
		}
		pods, read := r.known.users(obj.KeyOf(claim), nil)
		if !read {
			r.unread(obj.PodsKey(claim.Namespace))
		}
		if pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" }); len(pods) > 0 {
			r.reject(InUse, "pods of claim %s, which names it, may use it: %s", nameOf(claim), names(pods))
		}
	}
}

// has reports whether the claim that exists under the name in the volume's claimRef has the volume or is getting it.
func has(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	switch phase.VolumeBindingStateOf(volume, claim) {
	case phase.VolumeBinding, phase.VolumeInUse:
		return true
	case phase.VolumeFree: // pre-bound
		return claim != nil && claim.Spec.VolumeName == volume.Name
	}
	return false
}

// checkVolume rejects a volume that is being deleted or transferred.
func (r *review) checkVolume() {
	r.checkDeletion()
	if _, transferring := r.volume.Annotations[TransferAnnotation]; transferring {
		r.reject(Transferring, "a transfer of it is under way: finish it, or remove the annotation %s, which ends it and leaves the volume as it is", TransferAnnotation)
	}
}

// checkDeletion rejects a volume that is being deleted.
func (r *review) checkDeletion() {
	if r.volume.DeletionTimestamp != nil {
		r.reject(Deleting, "it is being deleted")
	}
}

// checkPolicy rejects a volume that no claim has any more and whose policy is not Retain: a reclaim may be under way.
func (r *review) checkPolicy(claim *corev1.PersistentVolumeClaim) {
	if phase.VolumeBindingStateOf(r.volume, claim) == phase.VolumeMisbound {
		return
	}
	if policy := r.volume.Spec.PersistentVolumeReclaimPolicy; policy != corev1.PersistentVolumeReclaimRetain {
		r.reject(PolicyDestroys, "its reclaim policy is %s, so that what is on it may be on its way out: set the policy to Retain first", policy)
	}
	if r.volume.Status.Phase == corev1.VolumeFailed {
		r.warn(DataDestroyed, "reclaiming it was tried and failed, perhaps halfway: %s", r.volume.Status.Message)
	}
	if why := announced(r.volume); why != "" {
		r.warn(DataDestroyed, "%s", why)
	}
}

// announced returns why no claim gets a volume that a controller has announced to reclaim, and what to do about it (R8). It
// returns "" for any other volume.
func announced(volume *corev1.PersistentVolume) string {
	switch announcement, announced := AnnouncementOf(volume); {
	case announcement.Done:
		return "its storage is deleted, so that no claim gets it: delete the volume or, if it has its storage again, remove the annotation " + AnnouncementAnnotation
	case announced:
		return fmt.Sprintf("controller %q has announced that it reclaims it, so that no claim gets it: once nobody is at work on it and it has its storage, remove the annotation %s", announcement.By, AnnouncementAnnotation)
	}
	return ""
}

// checkPods rejects a volume that pods may use by a claim. If another claim has that name now, again, they may use that one's instead.
func (r *review) checkPods(claim obj.Key, again *corev1.PersistentVolumeClaim) {
	pods, read := r.known.users(claim, again)
	switch {
	case !read:
		r.unread(obj.PodsKey(claim.Namespace))
	case len(pods) > 0 && again != nil:
		r.reject(InUse, "pods may use it since before claim %s was created again: %s", name(claim), names(pods))
	case len(pods) > 0:
		r.reject(InUse, "pods use it: %s", names(pods))
	}
}

// checkClaim rejects a claim that could not take the volume it is to have.
func (r *review) checkClaim(claim *corev1.PersistentVolumeClaim) {
	switch {
	case claim.DeletionTimestamp != nil:
		r.reject(Deleting, "claim %s is being deleted", nameOf(claim))
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != r.volume.Name:
		r.reject(Taken, "claim %s names another volume, %s", nameOf(claim), claim.Spec.VolumeName)
	case phase.BindCompleted(claim): // C11
		r.reject(Taken, "claim %s was bound before, and such a claim takes no reservation", nameOf(claim))
	}
	r.checkFit(claim)
}

// checkFit rejects a volume that, pre-bound to the claim, could not serve it. That it is being deleted is checkVolume's
// concern. Of a claim that has only a name, what counts is whether the volume can serve any claim (M12).
func (r *review) checkFit(claim *corev1.PersistentVolumeClaim) {
	if nameOnly(claim) {
		if err := match.CheckWellFormed(r.volume); err != nil {
			r.reject(Unfit, "%s: %s", match.Malformed, err)
		}
		return
	}
	mismatches, err := match.Check(claim, preBound(r.volume, claim), match.Terms{})
	if err != nil {
		r.reject(Unfit, "%s", err)
	}
	for _, mismatch := range mismatches {
		if mismatch.Reason != match.Deleting {
			r.reject(Unfit, "%s", mismatch)
		}
	}
}

// nameOnly reports whether only the name of the claim is given, and not what it requests.
func nameOnly(claim *corev1.PersistentVolumeClaim) bool { return len(claim.Spec.AccessModes) == 0 }

func name(claim obj.Key) string { return claim.Namespace + "/" + claim.Name }

func nameOf(object metav1.Object) string { return object.GetNamespace() + "/" + object.GetName() }

func names[T metav1.Object](objects []T) string {
	list := make([]string, len(objects))
	for i, object := range objects {
		list[i] = nameOf(object)
	}
	return strings.Join(list, ", ")
}
