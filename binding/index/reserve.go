package index

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Reserve reserves a volume for a claim, and reports whether the claim has it now. It has if the volume is in
// the Index in exactly this resourceVersion, the one that the decision was made on, and nobody else had
// it: no claimRef to another claim, no other owner and no reservation. From then on the volume is found for this claim
// only, and counts as BoundToAnotherClaim for others.
//
// A reservation ends with Release, with Delete, and with a Set that shows a claimRef. A Set of a newer
// version without one does not end it: a write whose outcome is unknown may be in that version or still
// on its way, and only a live read by its writer can tell (B6).
func (x *Index) Reserve(volume, version string, claim obj.Key) bool {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	free, available := x.available(volume, version, claim)
	if free {
		x.reserve(volume, claim)
	}
	return available
}

// available reports whether the claim can have the volume, and whether the volume is free, not the claim's already. A
// claimRef keeps it from others without a reservation.
func (x *Index) available(volume, version string, claim obj.Key) (free, available bool) {
	known := x.volumes[volume]
	switch {
	case known == nil || known.ResourceVersion != version:
		return false, false
	case known.Spec.ClaimRef != nil:
		return false, obj.ReferencedClaim(known) == claim
	}
	owners := x.ownersOf(volume)
	return len(owners) == 0, !match.OwnedByAnother(claim, owners)
}

func (x *Index) reserve(volume string, claim obj.Key) {
	x.update(volume, func() { zeromap.Put(&x.reserved, volume, []obj.Key{claim}) })
}

// Binding is a claim and the volume that it is to have, in the version that was decided on.
type Binding struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
}

// ReserveAll reserves the volumes of all bindings, each in exactly its version, or none, and reports which. It returns
// the names of those that were free. The others belonged to their claims before, and are not to be released with them.
func (x *Index) ReserveAll(bindings []Binding) (reserved map[string]bool, ok bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	reserved = map[string]bool{}
	for _, b := range bindings {
		known := x.volumes[b.Volume.Name]
		free, available := x.available(b.Volume.Name, b.Volume.ResourceVersion, obj.KeyOf(b.Claim))
		if !available || known.UID != b.Volume.UID || phase.ClaimRefStateOf(known, b.Claim) == phase.ClaimRefStale {
			return nil, false
		}
		if free {
			reserved[b.Volume.Name] = true
		}
	}
	for _, b := range bindings {
		if reserved[b.Volume.Name] {
			x.reserve(b.Volume.Name, obj.KeyOf(b.Claim))
		}
	}
	return reserved, true
}

// Release ends a reservation after a write that certainly failed, or whose outcome is known. If the claim has no
// reservation, nothing changes.
func (x *Index) Release(volume string, claim obj.Key) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if slices.Contains(x.reserved[volume], claim) {
		x.update(volume, func() { delete(x.reserved, volume) })
	}
}

// Reservation returns the claim that the volume is reserved for, if there is one.
func (x *Index) Reservation(volume string) (claim obj.Key, reserved bool) {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	if claims := x.reserved[volume]; len(claims) > 0 {
		return claims[0], true
	}
	return obj.Key{}, false
}

// SetClaim adds a claim, or replaces an older version of it. If its status is Bound, the claim owns the volume
// that it names, even without a claimRef. A volume that several claims own is found for none of them (M2). The
// volume need not be known yet, and its Delete does not end the claim's right to it.
func (x *Index) SetClaim(claim *corev1.PersistentVolumeClaim) {
	x.setOwned(obj.KeyOf(claim), phase.Owned(claim))
}

// DeleteClaim removes a claim. One that is not known is no error.
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
	x.update(volume, func() { setList(&x.owners, volume, owners) })
}

// Owners returns the claims that an unclaimed volume belongs to, in order: those of SetClaim, or else the one of Reserve.
// It can be the Owners of match.Terms for a list of the same volumes, but not for the Index itself: that has them
// already, and is locked when it calls Owners. The slice must not be modified.
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

// ownersOr returns ownersOf, with the owners of other for volumes that have none.
func (x *Index) ownersOr(other func(string) []obj.Key) func(string) []obj.Key {
	return func(volume string) []obj.Key {
		if owners := x.ownersOf(volume); len(owners) > 0 || other == nil {
			return owners
		}
		return other(volume)
	}
}

// update changes the owners of a volume. They decide where it is kept, unless it has a claimRef.
func (x *Index) update(volume string, change func()) {
	known := x.volumes[volume]
	if known == nil || known.Spec.ClaimRef != nil {
		change()
		return
	}
	x.remove(known)
	change()
	x.insert(known)
}
