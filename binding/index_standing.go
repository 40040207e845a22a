package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// standing is what has to be known of a volume before anything is compared with a claim.
type standing uint8

const (
	standsFree standing = iota
	standsIdle
	standsMalformed
	standsClaimed
	standsDeleting
)

func (x *Index) standingOf(volume *corev1.PersistentVolume) standing {
	switch reason := match.Unavailable(volume); {
	case reason == match.Deleting:
		return standsDeleting
	case volume.Spec.ClaimRef != nil || len(x.ownersOf(volume.Name)) > 0:
		return standsClaimed
	case reason == match.Malformed:
		return standsMalformed
	case reason == match.NotAvailable:
		return standsIdle
	}
	return standsFree
}

// put puts a volume where its version and its owner say.
func (x *Index) put(volume *corev1.PersistentVolume) {
	if name := x.relativeOf(volume); name != (claimName{}) {
		zeromap.Put(&x.related, name, append(x.related[name], volume))
	}
	switch x.standingOf(volume) {
	case standsDeleting:
		x.deleting++
	case standsClaimed:
		x.claimed++
	case standsMalformed:
		zeromap.Put(&x.malformed, volume.Name, volume)
	case standsIdle:
		x.idle.put(volume)
	case standsFree:
		x.free.put(volume)
	}
}

// take takes a volume from where put has put it. Nothing that put looks at may have changed since.
func (x *Index) take(volume *corev1.PersistentVolume) {
	if name := x.relativeOf(volume); name != (claimName{}) {
		x.takeRelated(name, volume)
	}
	switch x.standingOf(volume) {
	case standsDeleting:
		x.deleting--
	case standsClaimed:
		x.claimed--
	case standsMalformed:
		delete(x.malformed, volume.Name)
	case standsIdle:
		x.idle.take(volume)
	case standsFree:
		x.free.take(volume)
	}
}

func (x *Index) takeRelated(name claimName, volume *corev1.PersistentVolume) {
	related := x.related[name]
	if at := slices.Index(related, volume); at >= 0 {
		related = slices.Delete(related, at, at+1)
	}
	if len(related) == 0 {
		delete(x.related, name)
		return
	}
	x.related[name] = related
}

// relativeOf is the name of the claims that a volume has to do with; zero if there is none, or if several own it, for
// then it fits none of them.
func (x *Index) relativeOf(volume *corev1.PersistentVolume) claimName {
	if volume.Spec.ClaimRef != nil {
		return sharedName(obj.ReferencedClaim(volume))
	}
	if owners := x.ownersOf(volume.Name); len(owners) == 1 {
		return sharedName(owners[0])
	}
	return claimName{}
}
