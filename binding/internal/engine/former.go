package engine

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// lastVolume is what there is to know of a volume that is gone, for one that is made again under its name (M2, W8): a small part of it, for
// thousands are kept.
type lastVolume struct {
	uid          types.UID
	version      string // "" where it went under a call: then whatever comes under its name is in its place
	wentBack     bool   // it went by a restore: whatever comes under its name is older
	owners       []types.UID
	claimRef     *corev1.ObjectReference // that of the owner
	policy       corev1.PersistentVolumeReclaimPolicy
	announcement string
	chosen       bool // by a controller (bound-by-controller)
}

// lastOf returns that of a volume; nil if there is nothing to know.
func (s *store) lastOf(volume *corev1.PersistentVolume) *lastVolume {
	last := &lastVolume{chosen: phase.BoundByController(volume), uid: volume.UID, version: volume.ResourceVersion, policy: volume.Spec.PersistentVolumeReclaimPolicy, announcement: s.lastAnnouncement(volume)}
	last.owners, last.claimRef = s.ownersOf(volume)
	if last.claimRef == nil && last.announcement == "" && last.policy != corev1.PersistentVolumeReclaimRetain {
		return nil
	}
	return last
}

// ownersOf returns the claims whose data is on a volume, and a claimRef with the name of the first; none if there is none. That is the one
// whose UID its claimRef has, whatever name a slip has left in it. The claim that had the volume before comes first, where none that may get it has that UID. Without
// claimRef the owners are those that are Bound to it.
func (s *store) ownersOf(volume *corev1.PersistentVolume) (owners []types.UID, first *corev1.ObjectReference) {
	ref := volume.Spec.ClaimRef
	if ref != nil && ref.UID != "" {
		if former := s.formerOwner(volume); former != nil {
			return []types.UID{former.UID, ref.UID}, former
		}
		return []types.UID{ref.UID}, s.withoutSlip(volume)
	}
	for _, key := range s.index.Owners(volume.Name) {
		claim := s.claim(key)
		if claim == nil || phase.Owned(s.asOwner(claim)) != volume.Name { // it is being bound to it
			continue
		}
		if owners = append(owners, claim.UID); len(owners) == 1 {
			ref = referenceTo(claim)
		}
	}
	if former := s.formerOwner(volume); former != nil && len(owners) == 0 {
		return []types.UID{former.UID}, former // it may have gone by a restore
	}
	if formers := s.formerClaims[volume.Name]; len(owners) == 0 && ref != nil && (ref.Namespace == "" || ref.Name == "") && len(formers) > 0 {
		return nil, formers[len(formers)-1] // that lost its name, and the data is of before
	}
	return owners, ref // which else gives it to a name that has not got it
}

// displacement is that of a claim that had a volume, whose claimRef somebody removed, or wrote another UID into it.
type displacement struct {
	by     types.UID // "" if it was removed
	former *corev1.ObjectReference
}

// formerOwner returns the claim that had a volume before its claimRef was removed, or the UID of no claim that may get the volume written into it; nil if there is none.
func (s *store) formerOwner(volume *corev1.PersistentVolume) *corev1.ObjectReference {
	displaced := s.displaced[volume.Name]
	if displaced.by != uidInClaimRef(volume) || displaced.by == "" && volume.Spec.ClaimRef != nil {
		return nil
	}
	by := s.claim(s.claimsByUID[displaced.by])
	if by != nil && sameName(referenceTo(by), volume.Spec.ClaimRef) && s.mayGet(by, volume) {
		return nil
	}
	return displaced.former
}

// mayGet reports whether a claim has a volume that a person has given it, or may be bound to it: it names that, or takes none yet, and the volume fits it.
func (s *store) mayGet(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	switch {
	case phase.Owned(claim) == volume.Name:
		return true
	case claim.DeletionTimestamp != nil: // C12
		return false
	case claim.Spec.VolumeName != "" || phase.BindCompleted(claim): // C10
		return claim.Spec.VolumeName == volume.Name
	}
	mismatches, err := match.CheckNamed(claim, volume, s.Parsed(claim))
	return err == nil && len(mismatches) == 0
}

// noteDisplaced notes who had a volume, by status, before its claimRef was removed, or another UID written into it, be it by making the volume again.
func (s *store) noteDisplaced(old, volume *corev1.PersistentVolume) {
	var former *corev1.ObjectReference
	uid := uidInClaimRef(old)
	if last := s.goneVolumes.of(volume.Name); old != nil {
		former = s.formerOwner(old)
	} else if last != nil && last.claimRef != nil {
		uid = last.claimRef.UID
	}
	if uid == "" || uidInClaimRef(volume) == uid {
		return
	}
	if claim := s.claim(s.claimsByUID[uid]); claim != nil && phase.Owned(s.asOwner(claim)) == volume.Name {
		former = referenceTo(claim)
	}
	if former != nil {
		zeromap.Put(&s.displaced, volume.Name, displacement{uidInClaimRef(volume), former})
	}
}

// named returns the volume of that name with this part of it.
func (l *lastVolume) named(name string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.UID, volume.ResourceVersion = name, l.uid, l.version
	volume.Spec.ClaimRef, volume.Spec.PersistentVolumeReclaimPolicy = l.claimRef, l.policy
	if l.chosen {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, phase.BoundByControllerAnnotation, "yes")
	}
	if l.announcement != "" {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, reclaim.AnnouncementAnnotation, l.announcement)
	}
	return volume
}

// bury notes that a volume is gone. If its storage was being reclaimed, it was: the volume did not go before (F3), if it could stay. Where
// nothing kept it, what was called may go on. And whoever takes its finalizers off, while a claim has it or its policy is Retain, says nothing about the data,
// unless a deleter had succeeded before it was retained.
func (s *store) bury(volume *corev1.PersistentVolume) {
	last := s.lastOf(volume)
	announcement, announced := reclaim.AnnouncementOf(volume)
	goesOn := s.goesOnWithout(volume)
	switch {
	case goesOn:
		last = cmp.Or(last, &lastVolume{uid: volume.UID, policy: volume.Spec.PersistentVolumeReclaimPolicy})
		last.version, last.announcement = "", s.goesOn[volume.Name].last.String()
	case !announced || volume.DeletionTimestamp == nil || last == nil: // nil where somebody has emptied the announcement
	case !announcement.Done && !decision.StaysMeanwhile(volume):
		last.version = ""
	case !announcement.Done && last.policy == corev1.PersistentVolumeReclaimRetain, slices.ContainsFunc(s.claimsByVolume.of(obj.VolumeKey(volume.Name)), func(key obj.Key) bool { return slices.Contains(last.owners, s.claim(key).UID) }):
		last.announcement = ""
	default: // a restore may bring it back, but not what was on it
		announcement.Done = true
		last = &lastVolume{uid: volume.UID, version: volume.ResourceVersion, announcement: announcement.String()}
	}
	if last != nil && !s.hasOwn(volume) { // who is written into claimRef has not got it
		for _, former := range s.formerClaims[volume.Name] {
			if s.namesStill(former, volume.Name) {
				last.owners = append(last.owners, former.UID)
			}
		}
		if had := s.hadBefore[volume.Name]; had != nil && s.namesStill(had, volume.Name) { // it may be Pending, as the backup has it
			last.owners = append(last.owners, had.UID)
			zeromap.Put(&s.lostOwners, s.claimsByUID[had.UID], had.UID)
		}
	}
	if !s.startedOver.has(volume.UID) || uidInClaimRef(volume) != decision.ProvisionedFor(volume.Name) { // which P2 has deleted itself: it never stood for its storage
		s.goneVolumes.add(volume.Name, last)
	}
	if goesOn {
		s.forgetCalls()
	} else {
		delete(s.goesOn, volume.Name)
	}
	s.stored.remove(volume.Name)
	s.relistOwners(volume.Name, nil)
}

// supersede notes that a volume which was made again is another claim's than the former one was, and has its data. One that is older than
// that was brought back by a restore, and may have the data of either. Where the UID goes from a claimRef, in which it may have been a slip, who lost
// the volume by that owns it again; any other version looks at none of the claims that name it (X9).
func (s *store) supersede(old, volume *corev1.PersistentVolume) {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		if old == nil || uidInClaimRef(old) == "" {
			return
		}
		for key := range s.claimsByVolume[obj.VolumeKey(volume.Name)] {
			if s.lostOwners[key] != "" {
				s.setOwner(nil, s.claim(key))
			}
		}
		return
	}
	last := s.goneVolumes.of(volume.Name)
	if last != nil && len(last.owners) > 0 && !last.wentBack && !obj.OlderThan(volume, last.version) {
		by := *last
		by.claimRef, by.owners = ref, []types.UID{ref.UID}
		s.goneVolumes.add(volume.Name, &by)
	}
	if last != nil || len(s.lostOwners) > 0 {
		s.relistOwners(volume.Name, ref)
	}
}

// relistOwners has the index know what asOwner says by now of the claims that name a volume and have lost it. Whom its claimRef leaves it to, or had it
// where it is gone, for which that is nil, owns it as before.
func (s *store) relistOwners(volume string, ref *corev1.ObjectReference) {
	last := s.goneVolumes.of(volume)
	for key := range s.claimsByVolume[obj.VolumeKey(volume)] {
		claim := s.claim(key)
		_, owned := s.lostOwners[key]
		if ref == nil && !last.had(claim) || ref != nil && !leavesTo(claim, ref) {
			delete(s.lostOwners, key)
		}
		if owned || phase.Lost(claim) != "" {
			s.setOwner(nil, claim)
		}
	}
}

// setOwner has the index know a claim in place of its old version, nil if there is none. That it owns a volume as asOwner says is
// remembered for as long as the claim is there: many other volumes may go meanwhile, and whoever may edit the claim has Pending written over Bound
// and Lost, by removing bind-completed (C6).
func (s *store) setOwner(old, claim *corev1.PersistentVolumeClaim) {
	if old != nil && old.UID == claim.UID && phase.Owned(old) != "" && phase.Owned(old) == claim.Spec.VolumeName && claim.Status.Phase != corev1.ClaimBound && s.isNoOthers(claim) {
		zeromap.Put(&s.lostOwners, obj.KeyOf(claim), claim.UID)
	}
	owner := s.asOwner(claim)
	if owner != claim {
		zeromap.Put(&s.lostOwners, obj.KeyOf(claim), claim.UID)
	}
	s.index.SetClaim(owner)
}

// isNoOthers reports whether no other claim has the volume that a claim names, by its claimRef or, where that has no UID, by status.
func (s *store) isNoOthers(claim *corev1.PersistentVolumeClaim) bool {
	if volume := s.volume(claim.Spec.VolumeName); volume != nil && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID != "" {
		return leavesTo(claim, volume.Spec.ClaimRef)
	}
	return !match.OwnedByAnother(obj.KeyOf(claim), s.index.Owners(obj.NamedVolume(claim).Name))
}

// leavesTo reports whether a claimRef with a UID gives a volume that a claim was Bound to, and that is there, to no other one: it has the claim's UID,
// or its name and a slip in the UID, for who had that name before was gone before the claim was made.
func leavesTo(claim *corev1.PersistentVolumeClaim, ref *corev1.ObjectReference) bool {
	return ref.UID == claim.UID || sameName(ref, referenceTo(claim))
}

// noteFormerClaim notes whose the claimRef of a volume was before the version that takes the place of the old one, nil if there is none: where
// it was removed, or has another name for the same UID, or another claim was written into it.
func (s *store) noteFormerClaim(old, volume *corev1.PersistentVolume) {
	if old == nil {
		return
	}
	uid := uidInClaimRef(volume)
	if uid != "" && uidInClaimRef(old) == "" && (old.Spec.ClaimRef == nil || old.Status.Phase == corev1.VolumeAvailable) { // it was anybody's
		s.dropFormers(volume.Name, func(former *corev1.ObjectReference) bool {
			return former.UID != uid && !s.namesStill(former, volume.Name)
		})
	}
	if uidInClaimRef(old) != "" && (uid != uidInClaimRef(old) || !sameName(volume.Spec.ClaimRef, old.Spec.ClaimRef)) {
		s.addFormer(volume.Name, s.withoutSlip(old))
	}
}

// FormerClaims returns the claims that the volume was seen to have in its claimRef before that was removed, or changed, or the server went back.
func (s *store) FormerClaims(volume string) []*corev1.ObjectReference {
	formers := s.formerClaims[volume]
	if had := s.hadBefore[volume]; had != nil && had.UID != "" && had.UID != uidInClaimRef(s.volume(volume)) {
		return append(slices.Clip(formers), had)
	}
	return formers
}

// addFormer adds a claim to those that a volume has had in its claimRef. Of the others only those stay that are there, and name it: whoever is written into the
// claimRef after them may never get it.
func (s *store) addFormer(volume string, added *corev1.ObjectReference) {
	s.dropFormers(volume, func(former *corev1.ObjectReference) bool {
		return former.UID == added.UID || !s.namesStill(former, volume)
	})
	zeromap.Put(&s.formerClaims, volume, append(slices.Clip(s.formerClaims[volume]), added))
}

// dropFormers forgets some of the claims that a volume has had in its claimRef.
func (s *store) dropFormers(volume string, these func(*corev1.ObjectReference) bool) {
	kept := slices.DeleteFunc(slices.Clone(s.formerClaims[volume]), these) // copies of the store share the list
	if delete(s.formerClaims, volume); len(kept) > 0 {
		s.formerClaims[volume] = kept
	}
}

// namesStill reports whether a claim that had a volume is there, and names it: its pods may have it mounted.
func (s *store) namesStill(former *corev1.ObjectReference, volume string) bool {
	claim := s.claim(s.claimsByUID[former.UID])
	return claim != nil && obj.NamedVolume(claim).Name == volume
}

// hasOwn reports whether the claim whose UID is in a volume's claimRef has the volume. Anybody may name one, and be Lost by writing bind-completed.
func (s *store) hasOwn(volume *corev1.PersistentVolume) bool {
	claim := s.claim(s.claimsByUID[uidInClaimRef(volume)])
	return claim != nil && phase.Owned(claim) == volume.Name
}

// noteGoneClaim notes the name of a claim that is gone, where the claimRef of its volume has its UID and another name, or that it had the volume.
func (s *store) noteGoneClaim(claim *corev1.PersistentVolumeClaim) {
	volume := s.volume(claim.Spec.VolumeName)
	if volume == nil || uidInClaimRef(volume) != claim.UID {
		return
	}
	if phase.Owned(s.asOwner(claim)) == volume.Name {
		delete(s.displaced, volume.Name)
	}
	if ref := referenceTo(claim); !sameName(ref, volume.Spec.ClaimRef) {
		s.addFormer(volume.Name, ref)
		return
	}
	s.dropFormers(volume.Name, func(former *corev1.ObjectReference) bool { return former.UID == claim.UID })
}

// withoutSlip returns the claimRef of a volume, which has a UID, with the name of the claim that has it, as far as that is known.
func (s *store) withoutSlip(volume *corev1.PersistentVolume) *corev1.ObjectReference {
	ref := volume.Spec.ClaimRef
	if claim := s.claim(s.Claimant(volume)); claim != nil {
		return referenceTo(claim)
	}
	for _, former := range s.formerClaims[volume.Name] {
		if former.UID == ref.UID {
			return former
		}
	}
	return ref
}

func referenceTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
}

func sameName(one, other *corev1.ObjectReference) bool {
	return one.Namespace == other.Namespace && one.Name == other.Name
}

// uidInClaimRef returns the UID in the volume's claimRef; "" if there is none.
func uidInClaimRef(volume *corev1.PersistentVolume) types.UID {
	if volume == nil || volume.Spec.ClaimRef == nil {
		return ""
	}
	return volume.Spec.ClaimRef.UID
}

// had reports whether a volume that is gone was the claim's.
func (l *lastVolume) had(claim *corev1.PersistentVolumeClaim) bool {
	return l != nil && slices.Contains(l.owners, claim.UID)
}

// asOwner returns a claim as the index is to know it. One that has lost the volume that it names owns it as one that is Bound does, where it
// was seen to be Bound to it, or is Lost and the last volume of that name had its UID in its claimRef: whoever makes that one again has the
// claim's data on it (M2). No tenant can write that. While a claimRef is there with a slip in the UID, the volume is reclaimed as if the claim was gone (R3).
func (s *store) asOwner(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	if claim.Status.Phase == corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return claim
	}
	stood := phase.Lost(claim) != "" && s.goneVolumes.of(obj.NamedVolume(claim).Name).had(claim)
	volume := s.volume(claim.Spec.VolumeName)
	slipped := volume != nil && uidInClaimRef(volume) != "" && uidInClaimRef(volume) != claim.UID
	if !stood && (slipped || s.lostOwners[obj.KeyOf(claim)] != claim.UID) {
		return claim
	}
	return asBound(claim)
}

// asBound returns a copy of the claim that is Bound.
func asBound(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	bound := *claim
	bound.Status.Phase = corev1.ClaimBound
	return &bound
}
