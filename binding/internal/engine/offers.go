package engine

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// offers remembers which claims a volume was offered to. A claim that does not take the volume is not offered it again
// until the volume has changed; the next claim is offered it instead (W1). That the claim changes is no reason: it looks for a volume by itself then,
// and a tenant who keeps changing one that can take no volume would keep each of them from others.
//
// An offer ends in one of three ways: the claim's sync ends (endWait), another claim's sync binds the volume or the volume
// changes (withdraw), or the volume is offered to another claim (revoke). Only the first counts as an attempt.
type offers struct {
	made       map[obj.Key]offer   // by volume
	pendingFor links               // by claim: the volumes whose next sync follows the claim's
	pendingOn  map[obj.Key]obj.Key // by volume: the claim whose sync comes first
	order      []obj.Key           // the claims that were notified, in order, and some that no longer are
}

// offer has the claims that one version of a volume was offered to, with their UIDs.
type offer struct {
	version string
	claims  map[obj.Key]types.UID
}

// offerTo queues a sync of the claim, and after it one of the task's volume, and reports whether such a sync is to come. It does
// nothing if the claim had its attempt with this version of the volume, or is queued for it.
func (s *State) offerTo(t *task, to obj.Key) (awaited bool) {
	volume, claim := s.volume(t.key.Name), s.claim(to)
	switch {
	case s.offers.pendingOn[t.key] == to:
		return true
	case volume == nil || claim == nil || s.offers.tried(volume, claim):
		return false
	}
	s.offers.revoke(t.key)
	if s.notified.Get(to) != nil {
		s.offers.await(t.key, s.lastNotified())
		return true
	}
	s.recordAttempt(volume, claim)
	s.offers.await(t.key, to)
	s.notify(claim)
	t.next = append(t.next, to)
	return true
}

// recordAttempt remembers that the claim had its attempt with the volume. It removes deleted claims once they outnumber the
// others: where the server rejects every claim, the volume never changes and its attempts would grow for ever.
func (s *State) recordAttempt(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	key := obj.VolumeKey(volume.Name)
	made := s.offers.made[key]
	if made.claims == nil || made.version != volume.ResourceVersion {
		made = offer{volume.ResourceVersion, map[obj.Key]types.UID{}}
		zeromap.Put(&s.offers.made, key, made)
	}
	made.claims[obj.KeyOf(claim)] = claim.UID
	if len(made.claims) > 2*len(s.objects[obj.KindClaim]) {
		maps.DeleteFunc(made.claims, func(key obj.Key, _ types.UID) bool { return s.claim(key) == nil })
	}
}

// notify moves a claim from the waiting claims to the notified ones until its sync ends, so that volumes which are created
// together are offered to different claims.
func (s *State) notify(claim *corev1.PersistentVolumeClaim) {
	s.waiting.Delete(obj.KeyOf(claim))
	s.notified.Set(claim, s.searchTerms(claim))
	if len(s.offers.order) > 2*s.notified.Len() {
		s.offers.order = slices.DeleteFunc(s.offers.order, func(key obj.Key) bool { return s.notified.Get(key) == nil })
	}
	s.offers.order = append(s.offers.order, obj.KeyOf(claim))
}

// unnotify moves a claim back to the waiting claims, if it was notified.
func (s *State) unnotify(key obj.Key) {
	if claim := s.notified.Get(key); claim != nil {
		s.notified.Delete(key)
		s.enlist(claim)
	}
}

// lastNotified returns the claim that was notified last. If every claim that a volume fits is notified for another volume,
// any of them may still choose this one, so the volume is synced again after the last of them.
func (s *State) lastNotified() obj.Key {
	order := &s.offers.order
	for s.notified.Get((*order)[len(*order)-1]) == nil {
		*order = (*order)[:len(*order)-1]
	}
	return (*order)[len(*order)-1]
}

// withdraw cancels the offer of a volume that the sync of the claim by is binding. If the volume was offered to another
// claim, that claim waits again, unless it has other offers.
func (s *State) withdraw(volume, by obj.Key) {
	claim := s.offers.pendingOn[volume]
	if claim == by {
		s.offers.await(volume, obj.Key{})
		return
	}
	s.offers.revoke(volume)
	if len(s.offers.pendingFor[claim]) == 0 {
		s.unnotify(claim)
	}
}

// forgetOffers cancels the offer of a volume that is offered no longer, and drops its attempts.
func (s *State) forgetOffers(volume obj.Key) {
	s.withdraw(volume, obj.Key{})
	delete(s.offers.made, volume)
}

// revoke cancels an offer, so that it does not count as an attempt whatever the claim's sync does.
func (o *offers) revoke(volume obj.Key) {
	delete(o.made[volume].claims, o.pendingOn[volume])
	o.await(volume, obj.Key{})
}

// await records the claim whose sync precedes the next sync of the volume; the zero Key clears it.
func (o *offers) await(volume, claim obj.Key) {
	o.pendingFor.move(volume, o.pendingOn[volume], claim)
	delete(o.pendingOn, volume)
	if claim != (obj.Key{}) {
		zeromap.Put(&o.pendingOn, volume, claim)
	}
}

// endWait returns the volumes whose next sync follows that of the claim, in order, and clears them.
func (o *offers) endWait(claim obj.Key) []obj.Key {
	volumes := o.pendingFor.drain(claim)
	for _, volume := range volumes {
		delete(o.pendingOn, volume)
	}
	return volumes
}

// tried reports whether the claim had its attempt with the volume as it is now.
func (o *offers) tried(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	made := o.made[obj.VolumeKey(volume.Name)]
	return made.version == volume.ResourceVersion && made.claims[obj.KeyOf(claim)] == claim.UID
}
