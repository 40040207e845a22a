package binding

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// offers remember which claims a volume was handed over to, so that one that does not take it is not asked
// again until one of the two has changed, and the next is (W1).
type offers struct {
	made    map[string]offer    // by volume
	pending links               // by claim: the volumes that await its sync
	awaited map[obj.Key]obj.Key // by volume: the claim whose sync it awaits
	calls   []obj.Key           // the claims that were called, in order, and some that no longer are
}

// offer are the claims that one version of a volume was handed over to, each with its version.
type offer struct {
	version string
	claims  map[obj.Key]string
}

// handOver lets a claim go next, and the volume after it. A claim that had its turn does not get another, nor one
// that is about to have it.
func (s *state) handOver(t *task, to obj.Key) {
	volume, claim := s.volumes[t.key.Name], s.claims[to]
	if volume == nil || claim == nil || s.offers.awaited[t.key] == to || s.offers.tried(volume, claim) {
		return
	}
	s.offers.takeBack(t.key)
	if s.called.Get(to) != nil {
		s.offers.await(t.key, s.lastCalled())
		return
	}
	s.hadTurn(volume, claim)
	s.offers.await(t.key, to)
	s.call(claim)
	t.next = append(t.next, to)
}

// hadTurn remembers that the claim had its turn with the volume, and forgets those that are gone before they are more than
// the others: where the server refuses every claim, the volume stays as it is for ever.
func (s *state) hadTurn(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	s.offers.note(volume, claim)
	if claims := s.offers.made[volume.Name].claims; len(claims) > 2*len(s.claims) {
		maps.DeleteFunc(claims, func(key obj.Key, _ string) bool { return s.claims[key] == nil })
	}
}

// call takes a claim out of those that wait, until its sync: the next volume goes to another one, or all of a
// burst would go from claim to claim together.
func (s *state) call(claim *corev1.PersistentVolumeClaim) {
	s.waiting.Delete(obj.KeyOf(claim))
	s.called.Set(claim, s.classOf(claim))
	if len(s.offers.calls) > 2*s.called.Len() {
		s.offers.calls = slices.DeleteFunc(s.offers.calls, func(key obj.Key) bool { return s.called.Get(key) == nil })
	}
	s.offers.calls = append(s.offers.calls, obj.KeyOf(claim))
}

// lastCalled is the claim that was called last. Where every claim that a volume fits has been called for another,
// each may still choose this one, so that it waits until they have chosen, and not from one to the next.
func (s *state) lastCalled() obj.Key {
	calls := &s.offers.calls
	for s.called.Get((*calls)[len(*calls)-1]) == nil {
		*calls = (*calls)[:len(*calls)-1]
	}
	return (*calls)[len(*calls)-1]
}

// withdraw takes a volume out of the offer, for the sync of a claim binds it. The claim that it was handed over
// to instead did not have its turn with it, and may be offered another, unless more volumes await it.
func (s *state) withdraw(volume, by obj.Key) {
	claim := s.offers.awaited[volume]
	if claim == by {
		s.offers.await(volume, obj.Key{})
		return
	}
	s.offers.takeBack(volume)
	if called := s.called.Get(claim); called != nil && len(s.offers.pending[claim]) == 0 {
		s.called.Delete(claim)
		s.enlist(called)
	}
}

// forgetOffers drops what is remembered of a volume that nobody is offered any more.
func (s *state) forgetOffers(volume string) {
	s.withdraw(obj.VolumeKey(volume), obj.Key{})
	delete(s.offers.made, volume)
}

// takeBack takes an offer back: the claim has not had its turn with the volume, whatever its sync will come to.
func (o *offers) takeBack(volume obj.Key) {
	delete(o.made[volume.Name].claims, o.awaited[volume])
	o.await(volume, obj.Key{})
}

// await lets a volume wait for the sync of a claim; the zero Key is none.
func (o *offers) await(volume, claim obj.Key) {
	o.pending.move(o.awaited[volume], claim, volume)
	delete(o.awaited, volume)
	if claim != (obj.Key{}) {
		zeromap.Put(&o.awaited, volume, claim)
	}
}

// answered are the volumes that awaited the sync of the claim, in order. They do no longer.
func (o *offers) answered(claim obj.Key) []obj.Key {
	volumes := o.pending.take(claim)
	for _, volume := range volumes {
		delete(o.awaited, volume)
	}
	return volumes
}

// note remembers a turn.
func (o *offers) note(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if made := o.made[volume.Name]; made.claims == nil || made.version != volume.ResourceVersion {
		zeromap.Put(&o.made, volume.Name, offer{volume.ResourceVersion, map[obj.Key]string{}})
	}
	o.made[volume.Name].claims[obj.KeyOf(claim)] = claim.ResourceVersion
}

func (o *offers) tried(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	made := o.made[volume.Name]
	version, offered := made.claims[obj.KeyOf(claim)]
	return offered && made.version == volume.ResourceVersion && version == claim.ResourceVersion
}

func (o offers) clone() offers {
	copied := offers{made: maps.Clone(o.made), pending: o.pending.clone(), awaited: maps.Clone(o.awaited), calls: slices.Clone(o.calls)}
	for name, made := range copied.made {
		copied.made[name] = offer{made.version, maps.Clone(made.claims)}
	}
	return copied
}
