package engine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// begun is a binding of a volume that may have data, for it is reserved or the claim names it. Its first write is on its way, or made (B1), and
// not the second: the volume is not Bound yet. The claim was read live before, but it may be deleted while the write is still to reach the
// server, and made again. Then the volume is neither that claim's nor anybody's to reclaim, and what was written is undone (B1, V4).
type begun struct {
	claim    types.UID
	claimRef *corev1.ObjectReference // the volume's before that; the owner's name, if it had none and an owner that had lost it (M2)
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
	first := begun{claim: claim.UID, claimRef: volume.Spec.ClaimRef}
	if first.claimRef == nil && s.asOwner(claim) != claim {
		first.claimRef = decision.ReservationFor(t.key)
	}
	zeromap.Put(&s.begun, volume.Name, first)
}

// readBegun returns the live read of a claim that comes before the second write of a binding that this Controller has begun (B2): after that
// write nothing would be undone.
func (s *State) readBegun(t *task, action decision.Action) (read decision.Action, needed bool) {
	claim := s.claim(t.key)
	if claim == nil || action.Kind != decision.UpdateVolumeStatus || action.Volume.Status.Phase != corev1.VolumeBound {
		return decision.Action{}, false
	}
	_, live := t.live[t.key]
	first, noted := s.begun[action.Volume.Name]
	return decision.ReadLive(t.key, "B2", "it may have gone before claimRef was written"), noted && first.claim == claim.UID && !live
}

// undoBegun returns the action, or a write in place of one that would release a volume for a claim that never had it: it gets the claimRef
// that it had before.
func (s *State) undoBegun(t *task, action decision.Action) decision.Action {
	first, noted := s.begun[t.key.Name]
	if !noted || t.key.Kind != obj.KindVolume || action.Kind != decision.UpdateVolumeStatus || action.Volume.Status.Phase != corev1.VolumeReleased {
		return action
	}
	volume := s.volume(t.key.Name)
	if _, announced := reclaim.AnnouncementOf(volume); announced || volume.DeletionTimestamp != nil || volume.Spec.ClaimRef.UID != first.claim ||
		volume.Status.Phase == corev1.VolumeFailed {
		return action
	}
	return decision.UndoPreBind(volume, first.claimRef)
}
