package engine

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// offers remembers which claims a volume was offered to. One that does not take it is not offered it again until one of
// the two has changed, and the next claim is (W1).
type offers struct {
	made     map[string]offer    // by volume
	awaiting links               // by claim: the volumes that wait for its sync
	awaited  map[obj.Key]obj.Key // by volume: the claim whose sync it waits for
	order    []obj.Key           // the claims that were notified, in order, and some that no longer are
}

// offer has the claims that one version of a volume was offered to, each with its version.
type offer struct {
	version string
	claims  map[obj.Key]string
}

// offerTo offers the task's volume to a claim: the claim goes next, and the volume after it. A claim that had its attempt
// does not get another, nor one that is about to have it.
func (s *State) offerTo(t *task, to obj.Key) {
	volume, claim := s.volume(t.key.Name), s.claim(to)
	if volume == nil || claim == nil || s.offers.awaited[t.key] == to || s.offers.tried(volume, claim) {
		return
	}
	s.offers.revoke(t.key)
	if s.notified.Get(to) != nil {
		s.offers.await(t.key, s.lastNotified())
		return
	}
	s.recordAttempt(volume, claim)
	s.offers.await(t.key, to)
	s.notify(claim)
	t.next = append(t.next, to)
}

// recordAttempt remembers that the claim had its attempt with the volume. It forgets claims that are gone before they are
// more than the others: where the server rejects every claim, the volume stays as it is for ever.
func (s *State) recordAttempt(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	made := s.offers.made[volume.Name]
	if made.claims == nil || made.version != volume.ResourceVersion {
		made = offer{volume.ResourceVersion, map[obj.Key]string{}}
		zeromap.Put(&s.offers.made, volume.Name, made)
	}
	made.claims[obj.KeyOf(claim)] = claim.ResourceVersion
	if len(made.claims) > 2*len(s.objects[obj.KindClaim]) {
		maps.DeleteFunc(made.claims, func(key obj.Key, _ string) bool { return s.claim(key) == nil })
	}
}

// notify takes a claim out of those that wait, until its sync: the next volume is offered to another one, or all of a
// burst would go from claim to claim together.
func (s *State) notify(claim *corev1.PersistentVolumeClaim) {
	s.waiting.Delete(obj.KeyOf(claim))
	s.notified.Set(claim, s.classOf(claim))
	if len(s.offers.order) > 2*s.notified.Len() {
		s.offers.order = slices.DeleteFunc(s.offers.order, func(key obj.Key) bool { return s.notified.Get(key) == nil })
	}
	s.offers.order = append(s.offers.order, obj.KeyOf(claim))
}

// unnotify puts a claim back to those that wait, if it was notified.
func (s *State) unnotify(key obj.Key) {
	if claim := s.notified.Get(key); claim != nil {
		s.notified.Delete(key)
		s.enlist(claim)
	}
}

// lastNotified returns the claim that was notified last. Where every claim that a volume fits has been notified for
// another, each may still choose this one, so that it waits until they have chosen, and not from one to the next.
func (s *State) lastNotified() obj.Key {
	order := &s.offers.order
	for s.notified.Get((*order)[len(*order)-1]) == nil {
		*order = (*order)[:len(*order)-1]
	}
	return (*order)[len(*order)-1]
}

// withdraw takes a volume out of the offer, for the sync of a claim binds it. The claim that it was offered to instead did
// not have its attempt with it, and may be offered another, unless more volumes wait for it.
func (s *State) withdraw(volume, by obj.Key) {
	claim := s.offers.awaited[volume]
	if claim == by {
		s.offers.await(volume, obj.Key{})
		return
	}
	s.offers.revoke(volume)
	if len(s.offers.awaiting[claim]) == 0 {
		s.unnotify(claim)
	}
}

// forgetOffers drops what is remembered of a volume that nobody is offered any more.
func (s *State) forgetOffers(volume string) {
	s.withdraw(obj.VolumeKey(volume), obj.Key{})
	delete(s.offers.made, volume)
}

// revoke takes an offer back: the claim has not had its attempt with the volume, whatever its sync will come to.
func (o *offers) revoke(volume obj.Key) {
	delete(o.made[volume.Name].claims, o.awaited[volume])
	o.await(volume, obj.Key{})
}

// await lets a volume wait for the sync of a claim; the zero Key is none.
func (o *offers) await(volume, claim obj.Key) {
	o.awaiting.move(volume, o.awaited[volume], claim)
	delete(o.awaited, volume)
	if claim != (obj.Key{}) {
		zeromap.Put(&o.awaited, volume, claim)
	}
}

// endWait returns the volumes that waited for the sync of the claim, in order. They do no longer.
func (o *offers) endWait(claim obj.Key) []obj.Key {
	volumes := o.awaiting.drain(claim)
	for _, volume := range volumes {
		delete(o.awaited, volume)
	}
	return volumes
}

// tried reports whether the claim had its attempt with the volume, both as they are now.
func (o *offers) tried(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	made := o.made[volume.Name]
	version, offered := made.claims[obj.KeyOf(claim)]
	return offered && made.version == volume.ResourceVersion && version == claim.ResourceVersion
}
