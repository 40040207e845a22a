package engine

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// lastVolume is what decision.GiveBack needs of a volume that is gone (W8): a small part of it, for thousands are kept.
type lastVolume struct {
	uid          types.UID
	version      string // "" where it went by a restore, or under a call: then whatever comes under its name is in its place
	claimRef     *corev1.ObjectReference
	policy       corev1.PersistentVolumeReclaimPolicy
	announcement string
}

// lastOf returns that of a volume; nil if there is nothing to give back.
func (s *store) lastOf(volume *corev1.PersistentVolume) *lastVolume {
	last := &lastVolume{volume.UID, volume.ResourceVersion, s.ownerOf(volume), volume.Spec.PersistentVolumeReclaimPolicy, volume.Annotations[reclaim.AnnouncementAnnotation]}
	if last.claimRef == nil && last.announcement == "" && last.policy != corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	return last
}

// named returns the volume of that name with this part of it.
func (l *lastVolume) named(name string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.UID, volume.ResourceVersion = name, l.uid, l.version
	volume.Spec.ClaimRef, volume.Spec.PersistentVolumeReclaimPolicy = l.claimRef, l.policy
	if l.announcement != "" {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, reclaim.AnnouncementAnnotation, l.announcement)
	}
	return volume
}

// bury notes that a volume is gone. If its storage was being reclaimed, it was: the volume did not go before (F3), if it could stay. Where
// nothing kept it, what was called may go on.
func (s *store) bury(volume *corev1.PersistentVolume) {
	last := s.lastOf(volume)
	announcement, announced := reclaim.AnnouncementOf(volume)
	switch deleted := volume.DeletionTimestamp != nil; {
	case announced && deleted && (announcement.Done || decision.StaysMeanwhile(volume)):
		last = nil
	case announced && deleted && last != nil: // nil where somebody has emptied the announcement
		last.version = ""
	}
	s.goneVolumes.add(volume.Name, last)
	s.relistOwners(volume.Name)
}

// supersede notes that a volume which was made again is another claim's than the former one was, and has its data.
func (s *store) supersede(volume *corev1.PersistentVolume) {
	last, ref := s.goneVolumes.of(volume.Name), volume.Spec.ClaimRef
	if last == nil || last.claimRef == nil || ref == nil || ref.UID == "" || ref.UID == last.claimRef.UID {
		return
	}
	by := *last
	by.claimRef = ref
	s.goneVolumes.add(volume.Name, &by)
	s.relistOwners(volume.Name)
}

// relistOwners has the index know what asOwner says by now of the Lost claims that name a volume.
func (s *store) relistOwners(volume string) {
	for key := range s.claimsByVolume[obj.VolumeKey(volume)] {
		if claim := s.claim(key); phase.Lost(claim) != "" {
			s.index.SetClaim(s.asOwner(claim))
		}
	}
}

// asOwner returns a claim as the index is to know it. One that is Lost owns the volume that it names as one that is Bound does, where the
// last volume of that name had its UID in its claimRef: whoever makes that one again has the claim's data on it (M2). No tenant can write
// that.
func (s *store) asOwner(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	last := s.goneVolumes.of(claim.Spec.VolumeName)
	if phase.Lost(claim) == "" || last == nil || last.claimRef == nil || last.claimRef.UID != claim.UID {
		return claim
	}
	owner := *claim
	owner.Status.Phase = corev1.ClaimBound
	return &owner
}

// ownerOf returns a claimRef with the name of the claim whose data is on a volume; nil if there is none. That is the one that its claimRef
// means, but for a slip: then one that names the volume has the UID. Without claimRef it is one that is Bound to it.
func (s *store) ownerOf(volume *corev1.PersistentVolume) *corev1.ObjectReference {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" { // which gives it to a name that has not got it
		for _, key := range s.index.Owners(volume.Name) {
			if claim := s.claim(key); claim != nil && phase.Owned(s.asOwner(claim)) == volume.Name { // none that it is being bound to
				return &corev1.ObjectReference{Namespace: key.Namespace, Name: key.Name, UID: claim.UID}
			}
		}
		return ref
	}
	for key := range s.claimsByVolume[obj.VolumeKey(volume.Name)] {
		if s.claim(key).UID == ref.UID {
			return &corev1.ObjectReference{Namespace: key.Namespace, Name: key.Name, UID: ref.UID}
		}
	}
	return ref
}
