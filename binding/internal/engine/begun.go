package engine

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// begun is a binding of a volume that may have data, for it is reserved or the claim names it. Its first write is on its way, or made (B1), and
// the claim was not Bound since. The claim was read live before, but it may be deleted while a write is still to reach the server, and made
// again. Then the volume is neither that claim's nor anybody's to reclaim, and what was written is undone (B1, V4).
type begun struct {
	claim    types.UID
	claimRef *corev1.ObjectReference // the volume's before that; the owner's name, if it had none and an owner that had lost it (M2)
	phase    corev1.PersistentVolumePhase
	since    *metav1.Time // of that phase
	stored   string       // the resourceVersion that the volume had then, or by writes of this controller alone since
}

// isUntouched reports whether nobody else has gone on with the binding, for which the phase is written first (B2), then the claim. A phase that is
// the same again does not say so.
func (b begun) isUntouched(volume *corev1.PersistentVolume) bool {
	since := volume.Status.LastPhaseTransitionTime
	return volume.Status.Phase == b.phase && (volume.ResourceVersion == b.stored || since != nil && since.Equal(b.since))
}

// noteBegun notes that a binding is begun, before its first write is sent. Of a claim that is being deleted, or that had the volume before, the
// volume is to be Released once it is gone (C11).
func (s *State) noteBegun(t *task, action decision.Action) {
	claim := s.claim(t.key)
	if claim == nil || action.Kind != decision.UpdateVolume || action.Volume.Spec.ClaimRef == nil || action.Volume.Spec.ClaimRef.UID != claim.UID {
		return
	}
	volume := s.volume(action.Volume.Name)
	if volume == nil || phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefBound || claim.DeletionTimestamp != nil || phase.Owned(claim) == volume.Name {
		return
	}
	if volume.Spec.ClaimRef == nil && claim.Spec.VolumeName != volume.Name { // it was chosen, and had nobody's data
		return
	}
	before := volume.Spec.ClaimRef
	if before == nil && s.asOwner(claim) != claim {
		before = decision.ReservationFor(t.key)
	}
	s.begin(volume, claim, before)
}

// begin notes the binding of a volume as it is, which is to get that claimRef back.
func (s *State) begin(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, before *corev1.ObjectReference) {
	zeromap.Put(&s.begun, volume.Name, begun{claim: claim.UID, claimRef: before, phase: volume.Status.Phase, since: volume.Status.LastPhaseTransitionTime, stored: volume.ResourceVersion})
}

// readReserved notes a volume into whose claimRef a person has written the UID of a claim that has no volume as one whose binding is begun: it is to
// be as if the person had written the name alone. It returns the read that comes before: a claim in a cache may have had the volume since.
func (s *State) readReserved(t *task, action decision.Action) (read decision.Action, needed bool) {
	volume := s.volume(t.key.Name)
	if t.key.Kind != obj.KindVolume || volume == nil || volume.Spec.ClaimRef == nil || action.Writes() || action.RunsHook() {
		return decision.Action{}, false
	}
	key := obj.ReferencedClaim(volume)
	claim := s.claim(key)
	if claim == nil || claim.Spec.VolumeName != "" || !decision.IsReservedFor(claim, volume) || s.begun[volume.Name].claim == claim.UID {
		return decision.Action{}, false
	}
	if _, live := t.live[key]; !live {
		return decision.ReadLive(key, "V4", "a person may have reserved the volume for it"), true
	}
	s.begin(volume, claim, decision.ReservationFor(key))
	return decision.Action{}, false
}

// noteStored notes the version that a volume has by a write of this controller, if nobody else has written to it before that.
func (s *store) noteStored(write decision.Action, stored obj.Object) {
	if first, noted := s.begun[stored.GetName()]; noted && keyOf(stored).Kind == obj.KindVolume && first.stored == sentVersion(write) {
		first.stored = stored.GetResourceVersion()
		s.begun[stored.GetName()] = first
	}
}

// forgetRefusedBegun forgets a binding whose first write got a conflict for an answer, where it did not happen, or another controller has gone on: it
// is that one's, as if none had been begun here. In the phase that the volume had, the write may have happened, and been repeated by a proxy.
func (s *store) forgetRefusedBegun(write decision.Action, read obj.Object) {
	volume, _ := read.(*corev1.PersistentVolume)
	if volume == nil || write.Kind != decision.UpdateVolume {
		return
	}
	first, noted := s.begun[volume.Name]
	if noted && first.stored == sentVersion(write) && !(volume.Status.Phase == first.phase && write.IsShownBy(volume)) {
		delete(s.begun, volume.Name)
	}
}

// endBegun notes that a claim is Bound, or was it at last, or may be, for that was sent (B4): whoever uses it may have written to its volume. No pod
// begins to use one that is being deleted.
func (s *store) endBegun(claim *corev1.PersistentVolumeClaim) {
	if first, noted := s.begun[claim.Spec.VolumeName]; noted && first.claim == claim.UID && claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil {
		delete(s.begun, claim.Spec.VolumeName)
	}
}

// undoBegun returns the action, or a write in place of one that releases or reclaims a volume for a claim that, as far as this controller knows,
// never had it: it gets the claimRef that it had before. One that is Bound by now is of nobody but a claim of that name, for another controller
// may have gone on; one that is Released or Failed is left so, unless nobody has.
func (s *State) undoBegun(t *task, action decision.Action) decision.Action {
	first, noted := s.begun[t.key.Name]
	volume := s.volume(t.key.Name)
	if !noted || volume == nil || t.key.Kind != obj.KindVolume {
		return action
	}
	_, announced := reclaim.AnnouncementOf(volume)
	claim := s.claim(obj.ReferencedClaim(volume))
	gone := volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == first.claim && (claim == nil || claim.UID != first.claim || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name)
	reclaimed := volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
	switch {
	case !gone || announced || reclaimed && !first.isUntouched(volume):
		return action
	case !reclaims(action) && !(reclaimed && !action.Writes() && action.Kind != decision.Read): // which is under Retain, or waits for a hook
		return action
	}
	if _, live := t.live[obj.ReferencedClaim(volume)]; !live {
		return decision.ReadLive(obj.ReferencedClaim(volume), "V4", "before the claimRef of before is written")
	}
	if volume.Status.Phase == corev1.VolumeBound {
		return decision.UndoPreBind(volume, decision.ReservationFor(obj.ReferencedClaim(volume)))
	}
	return decision.UndoPreBind(volume, first.claimRef)
}

// reclaims reports whether an action on a volume releases it, or goes on to reclaim it.
func reclaims(action decision.Action) bool {
	released := action.Kind == decision.UpdateVolumeStatus && (action.Volume.Status.Phase == corev1.VolumeReleased || action.Volume.Status.Phase == corev1.VolumeFailed)
	return released || action.Announces() || action.RunsHook() || action.Kind == decision.DeleteVolume
}
