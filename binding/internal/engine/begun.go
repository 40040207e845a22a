package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// A binding is begun of a volume that may have data, for it is reserved or the claim names it: its first write is on its way, or made (B1), and the claim
// was not seen to be Bound since. The claim was read live before, but it may be deleted while a write is still to reach the server, and then it never
// had the volume. Or another controller has gone on with what was begun, and the claim was Bound, used and deleted before anything showed that
// here. Nothing tells the one from the other. So the volume is retained: nobody gets its data, and it is not destroyed (B1).

// beginning is for which claims a binding of a volume was begun while it had that resourceVersion. They are several where the write for the first is still on
// its way, and its claim is gone: none of these writes takes effect on a later version.
type beginning struct {
	version string
	claims  []types.UID
}

// hasBegun reports whether a binding of the volume to the claim was begun.
func (s *store) hasBegun(volume string, claim types.UID) bool {
	return slices.Contains(s.begun[volume].claims, claim)
}

// begin notes that a binding of the volume to the claim is begun.
func (s *store) begin(volume *corev1.PersistentVolume, claim types.UID) {
	begun := beginning{version: volume.ResourceVersion, claims: []types.UID{claim}}
	if before := s.begun[volume.Name]; before.version == begun.version && !slices.Contains(before.claims, claim) {
		begun.claims = append(slices.Clone(before.claims), claim)
	}
	zeromap.Put(&s.begun, volume.Name, begun)
}

// noteBegun notes that a binding is begun, before its first write is sent. Of a claim that is being deleted, or that had the volume before, the
// volume is to be Released once it is gone (C11).
func (s *State) noteBegun(t *task, action decision.Action) {
	claim := s.claim(t.key)
	if claim == nil || action.Kind != decision.UpdateVolume || uidInClaimRef(action.Volume) != claim.UID {
		return
	}
	volume := s.volume(action.Volume.Name)
	if volume == nil || phase.ClaimRefStateOf(volume, claim) == phase.ClaimRefBound || claim.DeletionTimestamp != nil || phase.Owned(claim) == volume.Name {
		return
	}
	if volume.Spec.ClaimRef != nil || claim.Spec.VolumeName == volume.Name && volume.Status.Phase != corev1.VolumeAvailable { // else it was anybody's
		s.begin(volume, claim.UID)
	}
}

// readReserved notes a volume into whose claimRef a person has written the UID of a claim that has no volume, or is not Bound to this one, as one whose binding
// is begun. It returns the read that comes before: a claim in a cache may have had the volume since.
func (s *State) readReserved(t *task, action decision.Action) (read decision.Action, needed bool) {
	of := t.key
	switch {
	case makesBound(action): // also in the claim's own sync, which may come first
		of = action.Target()
	case action.Writes(), action.RunsHook():
		return decision.Action{}, false
	}
	volume := s.volume(of.Name)
	if of.Kind != obj.KindVolume || volume == nil || volume.Spec.ClaimRef == nil {
		return decision.Action{}, false
	}
	key := obj.ReferencedClaim(volume)
	claim := s.claim(key)
	if claim == nil || claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name || !decision.IsGivenTo(claim, volume) || s.hasBegun(volume.Name, claim.UID) {
		return decision.Action{}, false
	}
	if _, live := t.live[key]; !live {
		return decision.ReadLive(key, "B1", "a person may have reserved the volume for it"), true
	}
	s.begin(volume, claim.UID)
	return decision.Action{}, false
}

// noteGiven notes that a binding is begun where the UID of another claim is in the claimRef of a volume than of the one that had it, or had it when the server went back: a
// person wrote that, or a slip. A claim that goes, or has another volume, takes with it no data of the former one.
func (s *store) noteGiven(old, volume *corev1.PersistentVolume) {
	uid := uidInClaimRef(volume)
	others := slices.ContainsFunc(s.FormerClaims(volume.Name), func(former *corev1.ObjectReference) bool { return former.UID != uid })
	if (others || old != nil && s.wentByRestore(uid)) && uid != uidInClaimRef(old) {
		s.beginGiven(volume)
	}
}

// wentByRestore reports whether a claim had a volume when the server went back, and is not there: nobody has deleted it, who puts a manifest of its volume back.
func (s *store) wentByRestore(claim types.UID) bool {
	_, used := s.usedBefore[claim]
	_, known := s.claimsByUID[claim]
	return used && !known
}

// noteOwner notes the same where a claim is Bound to the volume by its status, or had the last one of its name, as was known before this version, and has another
// UID than its claimRef. The volume may have been made again so: that claim is its former one, too.
func (s *store) noteOwner(volume *corev1.PersistentVolume) {
	owner := s.anotherOwner(volume)
	if owner == nil || uidInClaimRef(volume) == "" {
		return
	}
	s.addFormer(volume.Name, referenceTo(owner))
	s.beginGiven(volume)
}

// anotherOwner returns a claim that is known to own the volume (M2), or the last one of its name, and has another UID than its claimRef; nil if there is none.
func (s *store) anotherOwner(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	for _, key := range s.index.Owners(volume.Name) {
		claim := s.claim(key)
		owns := claim != nil && (phase.Owned(claim) == volume.Name || s.lostOwners[key] == claim.UID && obj.NamedVolume(claim).Name == volume.Name)
		if owns && claim.UID != uidInClaimRef(volume) {
			return claim
		}
	}
	last := s.goneVolumes.of(volume.Name)
	if last == nil {
		return nil
	}
	for _, uid := range last.owners {
		if claim := s.claim(s.claimsByUID[uid]); claim != nil && uid != uidInClaimRef(volume) {
			return claim
		}
	}
	return nil
}

// beginGiven notes that a binding to the claim whose UID is in claimRef is begun, unless that has the volume by now.
func (s *store) beginGiven(volume *corev1.PersistentVolume) {
	uid, claim := uidInClaimRef(volume), s.claim(obj.ReferencedClaim(volume))
	if uid != "" && (claim == nil || claim.UID != uid || phase.Owned(claim) != volume.Name) {
		s.begin(volume, uid)
	}
}

// makesBound reports whether a write gives a volume phase Bound.
func makesBound(action decision.Action) bool {
	return action.Kind == decision.UpdateVolumeStatus && action.Volume.Status.Phase == corev1.VolumeBound
}

// endBegun notes that a claim is Bound, or was it at last: its volume is to be Released once it is gone. One that is being deleted may have become Bound
// after that, when no pod begins to use it any more.
func (s *store) endBegun(claim *corev1.PersistentVolumeClaim) {
	volume := obj.NamedVolume(claim).Name
	if s.hasBegun(volume, claim.UID) && claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil {
		delete(s.begun, volume)
	}
}

// retainBegun returns the action or, where a volume is decided on whose binding was begun for a claim that is gone, or has another volume, the write that
// retains it. That it is gone is read live before. Who sets another policy after that wants it to be carried out.
func (s *State) retainBegun(t *task, action decision.Action) decision.Action {
	volume := s.volume(t.key.Name)
	if t.key.Kind != obj.KindVolume || volume == nil || action.Kind == decision.Read {
		return action
	}
	key := obj.ReferencedClaim(volume)
	uid, claim := uidInClaimRef(volume), s.claim(key)
	announcement, _ := reclaim.AnnouncementOf(volume)
	if !s.hasBegun(volume.Name, uid) || announcement.Done || claim != nil && claim.UID == uid && (claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name) {
		return action
	}
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		if s.awaitsReclaim(t.key) {
			delete(s.begun, volume.Name)
		}
		return action
	}
	if _, live := t.live[key]; !live {
		return decision.ReadLive(key, "B1", "the volume is retained if it is gone, or has another one")
	}
	return decision.RetainUnfinished(volume)
}
