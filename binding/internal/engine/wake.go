package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// Observe stores a version of an object, if it is new, and returns the keys to sync for it (W).
func (s *State) Observe(object obj.Object) []obj.Key { return s.observe(Parse(object)) }

func (s *State) observe(parsed Parsed) []obj.Key {
	woken, rest := s.ObserveParsed(parsed)
	return s.WokenByClaims(woken, rest)
}

// ObserveParsed is Observe for an object that was parsed. Of a pod that names very many claims the keys are not among those
// that it returns: the rest is for WokenByClaims, which may be called with some of it at a time.
//
// A sync that has announced a call on the object, or made a volume Failed, and awaits the reply, sees to the new version itself. That is most often
// what it has just written: to wake it for that would repeat a hook that fails without its delay, for each call is announced, and may fail with
// another message.
func (s *State) ObserveParsed(parsed Parsed) (woken, rest []obj.Key) {
	object := parsed.object
	key := keyOf(object)
	if key == (obj.Key{}) {
		return nil, nil
	}
	if s.maybeBack(key, object) {
		return []obj.Key{key}, nil
	}
	old, named, stored := s.put(key, parsed)
	if !stored {
		return nil, nil
	}
	if old != nil && old.GetUID() != object.GetUID() && (key.Kind == obj.KindVolume || key.Kind == obj.KindClaim) {
		s.restore.gone.add(old.GetUID(), struct{}{})
	}
	s.noteAnnouncement(key, object)
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		s.forgetUnclaimed(object)
		if old == nil || old.GetUID() != object.UID {
			s.recallFormer(object)
		}
		if object.Spec.ClaimRef != nil {
			s.forgetOffers(key)
		} else {
			delete(s.hadBefore, key.Name) // whoever freed it meant that
		}
	case *corev1.PersistentVolumeClaim:
		s.noteStood(object)
		s.endHad(key)
	case *storagev1.StorageClass:
		return s.wokenByClass(object), nil
	}
	woken = s.wokenBy(old, object)
	if running := s.tasks[key]; running != nil && (running.pending.Announces() || tellsFailure(running.pending) && running.pending.IsShownBy(object)) {
		woken = slices.DeleteFunc(woken, func(other obj.Key) bool { return other == key })
	}
	return woken, named
}

// tellsFailure reports whether an action makes a volume Failed, or tells why anew (R3).
func tellsFailure(action decision.Action) bool {
	return action.Kind == decision.UpdateVolumeStatus && action.Volume.Status.Phase == corev1.VolumeFailed
}

// ObserveDeleted forgets an object that is gone, and returns the keys to sync for that (W).
func (s *State) ObserveDeleted(object obj.Object) []obj.Key {
	woken, rest := s.ForgetDeleted(object)
	return s.WokenByClaims(woken, rest)
}

// ForgetDeleted is ObserveDeleted, with a rest as that of ObserveParsed.
func (s *State) ForgetDeleted(object obj.Object) (woken, rest []obj.Key) {
	key := keyOf(object)
	if key.Kind == "" {
		return nil, nil
	}
	if claim := as[*corev1.PersistentVolumeClaim](object); claim != nil {
		s.endBegun(claim)
	}
	old, named := s.drop(key, object.GetUID())
	if old == nil {
		return nil, nil // another one of that name keeps its offer
	}
	if key.Kind == obj.KindVolume {
		s.forgetOffers(key)
	}
	delete(s.lastEvents, key)
	delete(s.failures, key)
	delete(s.rejected, key)
	delete(s.refused, key)
	delete(s.announced, key)
	s.buryFormer(key)
	delete(s.deleted, object.GetUID())
	woken = s.wokenBy(old, nil)
	if key.Kind == obj.KindClaim {
		woken = append(woken, s.leftInDoubt.of(key)...)
		delete(s.lostOwners, key)
	}
	return woken, named
}

// WokenByClaims adds to the keys those of the claims that a pod names, and of the volumes that are to be reclaimed after it (W5).
func (s *State) WokenByClaims(keys, claims []obj.Key) []obj.Key {
	if len(claims) == 0 {
		return keys
	}
	for _, claim := range claims {
		keys = append(keys, claim)
		if len(s.volumesByClaim[claim]) > 0 {
			keys = append(keys, s.volumesByClaim.of(claim)...)
		}
	}
	return Unique(keys)
}

// noteAnnouncement notes since when the announcement on the object is there, if it has one.
func (s *State) noteAnnouncement(key obj.Key, object obj.Object) {
	text, announced := object.GetAnnotations()[reclaim.AnnouncementAnnotation]
	switch seen, before := s.announced[key]; {
	case !announced:
		delete(s.announced, key)
	case !before || seen.text != text:
		zeromap.Put(&s.announced, key, sighting{text: text, since: s.now})
	}
}

// wokenBy returns the keys that a change calls for: from the old to the new version of an object, as far as there are such.
func (s *State) wokenBy(old, object obj.Object) (keys []obj.Key) {
	for _, version := range []obj.Object{old, object} {
		switch version := version.(type) {
		case *corev1.PersistentVolume:
			keys = s.addWokenByVolume(keys, version)
		case *corev1.PersistentVolumeClaim:
			keys = s.addWokenByClaim(append(keys, obj.KeyOf(version)), version, uidOf(old) != uidOf(object))
		case *storagev1.StorageClass:
			keys = append(keys, s.wokenByClass(version)...)
		case *storagev1.VolumeAttachment:
			if volume := obj.AttachedVolume(version); s.awaitsReclaim(volume) { // (W5)
				keys = append(keys, volume)
			}
		}
	}
	if before, after := s.hadIn(old), s.hadIn(object); before != after {
		keys = s.addWokenByHolder(s.addWokenByHolder(keys, before), after)
	}
	if before, after := s.keepsByPods(old), s.keepsByPods(object); before != after {
		keys = append(keys, slices.DeleteFunc([]obj.Key{before, after}, func(key obj.Key) bool { return key == obj.Key{} })...)
	}
	return Unique(keys)
}

// keepsByPods returns the volume to be reclaimed that a Lost claim names and had, be it by the name alone in the claimRef of that, now or before: each pod of
// such a claim keeps it from being recycled, whenever that was started (R4). The zero key is none, also for any other object.
func (s *State) keepsByPods(object obj.Object) obj.Key {
	claim := as[*corev1.PersistentVolumeClaim](object)
	if claim == nil || phase.Lost(claim) == "" || !s.awaitsReclaim(obj.NamedVolume(claim)) {
		return obj.Key{}
	}
	had := slices.ContainsFunc(s.formerClaims[claim.Spec.VolumeName], func(former *corev1.ObjectReference) bool { return sameName(former, referenceTo(claim)) })
	if obj.ReferencedClaim(s.volume(claim.Spec.VolumeName)) != obj.KeyOf(claim) && !had {
		return obj.Key{}
	}
	return obj.NamedVolume(claim)
}

// addWokenByClaim adds the volumes whose claimRef names a claim. What becomes of one that has another claim's UID depends on whether that one is there
// (V3), and not on what is written to this one, once it is later than that: who changes it again and again would have that reclaimed without its delay (W6).
func (s *State) addWokenByClaim(keys []obj.Key, claim *corev1.PersistentVolumeClaim, comesOrGoes bool) []obj.Key {
	for _, key := range s.volumesByClaim.of(obj.KeyOf(claim)) {
		ref := s.volume(key.Name).Spec.ClaimRef
		if comesOrGoes || ref.UID == "" || ref.UID == claim.UID || obj.OlderThan(claim, ref.ResourceVersion) {
			keys = append(keys, key)
		}
	}
	return keys
}

// addWokenByVolume adds the volume, the claim that it names, that for which it was made (P2), and those that name it with the other volumes that
// are bound to them, which may be needed or not by what became of this one (W1 to W3, V2).
func (s *State) addWokenByVolume(keys []obj.Key, volume *corev1.PersistentVolume) []obj.Key {
	keys = append(keys, obj.VolumeKey(volume.Name))
	if claim := obj.ReferencedClaim(volume); s.claim(claim) != nil {
		keys = append(keys, claim)
	}
	if claim, known := s.claimsByUID[decision.ProvisionedFor(volume.Name)]; known {
		keys = append(keys, claim)
	}
	naming := s.claimsByVolume.of(obj.VolumeKey(volume.Name))
	keys = append(keys, naming...)
	for _, claim := range naming {
		keys = append(keys, s.volumesByClaim.of(claim)...)
	}
	return keys
}

// holding is what a claim has, or had, in the volume that it names, whatever the claimRef of that says: it is Bound, or Lost and its data
// is there. The zero value is nothing.
type holding struct {
	volume obj.Key
	by     types.UID
	phase  corev1.PersistentVolumeClaimPhase
}

// hadIn returns what a claim has in the volume that it names; nothing for nil, and for any other object. That a claim is Lost is no proof:
// who writes bind-completed onto it makes it so, and Pending who removes it.
func (s *State) hadIn(object obj.Object) holding {
	claim := as[*corev1.PersistentVolumeClaim](object)
	if claim == nil || claim.Spec.VolumeName == "" {
		return holding{}
	}
	volume := s.volume(claim.Spec.VolumeName)
	if phase.Owned(claim) == "" && s.asOwner(claim) == claim && (volume == nil || !phase.Claims(claim, volume)) {
		return holding{}
	}
	return holding{obj.NamedVolume(claim), claim.UID, claim.Status.Phase}
}

// addWokenByHolder adds the volume that a claim holds and, where that depends on it, the claims that name the volume (W3). Any other claim that
// names a volume is nothing to it: its own sync binds it, if it can be. Anybody may name any volume, in as many claims as they like,
// and change them as often: the volume would be looked at each time, and what fails about it tried again before its time (W6).
func (s *State) addWokenByHolder(keys []obj.Key, held holding) []obj.Key {
	switch held.phase {
	case "":
		return keys
	case corev1.ClaimBound:
		keys = append(keys, s.wokenByOwner(held.volume)...)
	}
	return append(keys, held.volume)
}

// wokenByOwner returns the claims that name a volume, if it has no claimRef, or one that names no claim (V1). They cannot have it for as long as it is
// another's all the same, and nothing else wakes them when that begins or ends (M2, C9, C11).
func (s *State) wokenByOwner(volume obj.Key) []obj.Key {
	if known := s.volume(volume.Name); known == nil || known.Spec.ClaimRef != nil && known.Spec.ClaimRef.Namespace != "" && known.Spec.ClaimRef.Name != "" {
		return nil
	}
	return s.claimsByVolume.of(volume)
}

// wokenByClass returns the unbound claims that name the class, or would get it as the default (W4).
func (s *State) wokenByClass(class *storagev1.StorageClass) []obj.Key {
	var keys []obj.Key
	for claim := range all[*corev1.PersistentVolumeClaim](&s.store, obj.KindClaim) {
		serves := storageclass.OfClaim(claim) == class.Name || storageclass.IsDefault(class) && storageclass.Unset(claim)
		if serves && !phase.BindCompleted(claim) {
			keys = append(keys, obj.KeyOf(claim))
		}
	}
	slices.SortFunc(keys, obj.CompareKeys)
	return keys
}

// awaitsReclaim reports whether a volume is known that is to be reclaimed.
func (s *State) awaitsReclaim(key obj.Key) bool {
	volume := s.volume(key.Name)
	return volume != nil && (volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed)
}
