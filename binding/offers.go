package binding

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// offers remember which claims a volume was handed over to, so that one that does not take it is not asked
// again until one of the two has changed, and the next is (W1).
type offers struct {
	made    map[string]offer // by volume
	pending links            // by claim: the volumes that await its sync
}

// offer are the claims that one version of a volume was handed over to, each with its version.
type offer struct {
	version string
	claims  map[Key]string
}

// handOver lets a claim go next, and the volume after it. A claim that had its turn does not get another.
func (s *state) handOver(t *task, to Key) {
	volume, claim := s.volumes[t.key.Name], s.claims[to]
	if volume == nil || claim == nil || s.offers.tried(volume, claim) {
		return
	}
	s.offers.note(volume, claim)
	s.offers.pending.move(Key{}, to, t.key)
	// The next volume goes to another claim, or all of a burst would go from claim to claim together.
	s.waiting.delete(to)
	s.called.set(claim, s.classOf(claim))
	t.next = append(t.next, to)
}

// note remembers that the claim had its turn.
func (o *offers) note(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if volume == nil || claim == nil {
		return
	}
	if made := o.made[volume.Name]; made.claims == nil || made.version != volume.ResourceVersion {
		put(&o.made, volume.Name, offer{volume.ResourceVersion, map[Key]string{}})
	}
	o.made[volume.Name].claims[KeyOf(claim)] = claim.ResourceVersion
}

func (o *offers) tried(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	made := o.made[volume.Name]
	version, offered := made.claims[KeyOf(claim)]
	return offered && made.version == volume.ResourceVersion && version == claim.ResourceVersion
}

// any reports whether this version of the volume was offered to anybody.
func (o *offers) any(volume *corev1.PersistentVolume) bool {
	return o.made[volume.Name].version == volume.ResourceVersion
}

// forget drops what was offered of a volume.
func (o *offers) forget(volume string) { delete(o.made, volume) }

func (o offers) clone() offers {
	copied := offers{made: maps.Clone(o.made), pending: o.pending.clone()}
	for name, made := range copied.made {
		copied.made[name] = offer{made.version, maps.Clone(made.claims)}
	}
	return copied
}
