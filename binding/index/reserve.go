package index

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Reserve takes a volume for a claim, and reports whether the claim has it now. It has if the Index knows
// the volume in exactly this resourceVersion, the one that the decision was made on, and nobody else had
// it: no claimRef to another claim, no other owner and no reservation. From then on it is found for this claim
// only, and counts as Claimed for others.
//
// A reservation ends with Release, with Delete, and with a Set that shows a claimRef. A Set of a newer
// version without one does not end it: a write whose outcome is unknown may be in that version or still
// on its way (B6), and only who made it can tell, from a live read.
func (x *Index) Reserve(volume, version string, claim obj.Key) bool {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	known := x.volumes[volume]
	if known == nil || known.ResourceVersion != version {
		return false
	}
	if known.Spec.ClaimRef != nil {
		return obj.ReferencedClaim(known) == claim // its claimRef keeps it from others
	}
	owners := x.ownersOf(volume)
	if len(owners) == 0 {
		x.refile(volume, func() { zeromap.Put(&x.reserved, volume, []obj.Key{claim}) })
	}
	return !match.KeptFrom(claim, owners)
}

// Binding is a claim and the volume that it is to have, in the version that was decided on.
type Binding struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
}

// ReserveAll takes the volumes of all bindings, each in exactly its version, or none; ok reports which. It returns the
// names of those that it took: the others have belonged to their claims before, and are not to be released with them.
func (x *Index) ReserveAll(bindings []Binding) (taken map[string]bool, ok bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	taken = map[string]bool{}
	for _, b := range bindings {
		free, available := x.available(b)
		if !available {
			return nil, false
		}
		if free {
			taken[b.Volume.Name] = true
		}
	}
	for _, b := range bindings {
		if taken[b.Volume.Name] {
			x.refile(b.Volume.Name, func() { zeromap.Put(&x.reserved, b.Volume.Name, []obj.Key{obj.KeyOf(b.Claim)}) })
		}
	}
	return taken, true
}

// available reports whether the claim can have the volume, and whether the volume is free, not the claim's.
func (x *Index) available(b Binding) (free, available bool) {
	known := x.volumes[b.Volume.Name]
	if known == nil || known.UID != b.Volume.UID || known.ResourceVersion != b.Volume.ResourceVersion {
		return false, false
	}
	if known.Spec.ClaimRef != nil {
		link := phase.LinkOf(known, b.Claim)
		return false, link == phase.Reserved || link == phase.Held
	}
	owners := x.ownersOf(known.Name)
	return len(owners) == 0, !match.KeptFrom(obj.KeyOf(b.Claim), owners)
}

// Release gives back what Reserve took: for a write that certainly failed, or whose outcome is known. If
// the claim has no reservation, nothing changes.
func (x *Index) Release(volume string, claim obj.Key) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if slices.Contains(x.reserved[volume], claim) {
		x.refile(volume, func() { delete(x.reserved, volume) })
	}
}

// Reservation returns the claim that has the volume by Reserve, if there is one.
func (x *Index) Reservation(volume string) (claim obj.Key, reserved bool) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	if claims := x.reserved[volume]; len(claims) > 0 {
		return claims[0], true
	}
	return obj.Key{}, false
}

// SetClaim tells the Index of a claim, or of a newer version of it. If its status is Bound, the volume that it names is
// its own even without a claimRef (M2). A volume that several claims own is found for none of them. Neither the claim's
// volume need be known yet, nor does a Delete of it end that.
func (x *Index) SetClaim(claim *corev1.PersistentVolumeClaim) {
	x.setOwned(obj.KeyOf(claim), phase.Owned(claim))
}

// DeleteClaim tells the Index that a claim is gone. One that is not known is no error.
func (x *Index) DeleteClaim(claim obj.Key) { x.setOwned(claim, "") }

func (x *Index) setOwned(claim obj.Key, volume string) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	before := x.owned[claim]
	if before == volume {
		return
	}
	if before != "" {
		delete(x.owned, claim)
		x.setOwners(before, slices.DeleteFunc(slices.Clone(x.owners[before]), func(owner obj.Key) bool { return owner == claim }))
	}
	if volume != "" {
		zeromap.Put(&x.owned, claim, volume)
		at, _ := slices.BinarySearchFunc(x.owners[volume], claim, obj.CompareKeys)
		x.setOwners(volume, slices.Insert(slices.Clone(x.owners[volume]), at, claim))
	}
}

func (x *Index) setOwners(volume string, owners []obj.Key) {
	x.refile(volume, func() {
		if len(owners) == 0 {
			delete(x.owners, volume)
			return
		}
		zeromap.Put(&x.owners, volume, owners)
	})
}

// Owners are the claims that an unclaimed volume belongs to, in order: by SetClaim, or else the one by Reserve. It can
// be the Owners of Terms for a list of the same volumes. In Terms for the Index itself it must not be: it is called with
// the Index locked, and it knows already. The slice must not be modified.
func (x *Index) Owners(volume string) []obj.Key {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return x.ownersOf(volume)
}

func (x *Index) ownersOf(volume string) []obj.Key {
	if owners := x.owners[volume]; len(owners) > 0 {
		return owners
	}
	return x.reserved[volume]
}

// refile changes what decides where a volume is put. With a claimRef it is that alone.
func (x *Index) refile(volume string, change func()) {
	known := x.volumes[volume]
	if known == nil || known.Spec.ClaimRef != nil {
		change()
		return
	}
	x.take(known)
	change()
	x.put(known)
}

// ownersBeside are the owners of a volume, if need be from Terms.
func (x *Index) ownersBeside(other func(string) []obj.Key) func(string) []obj.Key {
	return func(volume string) []obj.Key {
		if owners := x.ownersOf(volume); len(owners) > 0 || other == nil {
			return owners
		}
		return other(volume)
	}
}
