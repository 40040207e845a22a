package index

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Index is a set of volumes that are chosen from in O(log n). It gives the same answers as match.Find and
// match.Explain on a list of the same volumes, but keeps those that a claim can still choose in order of size,
// by class, modes, labels and node affinity, so that the others cost it nothing.
//
// The caller passes every volume to Set and Delete, or to Load at first, and no old version after a newer one.
// The volumes are the caller's. They must not be modified once they are in an Index. A volume is given away once,
// however many goroutines call Reserve: write only if it returns true.
//
//	found, err := volumes.Find(claim, match.Terms{Class: class})
//	…
//	if found.Volume != nil && volumes.Reserve(found.Volume.Name, found.Volume.ResourceVersion, obj.KeyOf(claim)) {
//		// write the claimRef, pass what the server returns to Set, and call Release
//	}
//
// The zero value is empty and ready to use. An Index is safe for concurrent use. It must not be copied.
type Index struct {
	mutex sync.RWMutex

	volumes map[string]*corev1.PersistentVolume
	// free has the volumes to choose from, and notAvailable those that only their phase keeps from being chosen (M9).
	free, notAvailable buckets
	// malformed has the malformed volumes that no claim has.
	malformed map[string]*corev1.PersistentVolume
	// deleting counts the volumes that are being deleted. A claim has all others.
	deleting int
	// related has, by claim, the volumes whose claimRef has its name, and those that it alone owns. A search checks them
	// one by one.
	related map[types.NamespacedName][]*corev1.PersistentVolume

	// affinities has the large node affinities of volumes, each to be read when it is first needed (X9).
	affinities map[string]func() *match.Affinity

	owned map[obj.Key]string // the volume that a claim owns
	// owners has the claims that own a volume, in order, and reserved the one that Reserve was called for. A slice in
	// them is replaced, never changed, for callers have it.
	owners, reserved map[string][]obj.Key
}

// Set adds a volume, or replaces the version that is known. It takes O(log n). A reservation stays until it is
// released, unless the new version has a claimRef: then that counts.
func (x *Index) Set(volume *corev1.PersistentVolume) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.set(volume)
}

// Load is Set for many volumes, none twice. It is faster, and leaves an empty Index more compact.
func (x *Index) Load(volumes ...*corev1.PersistentVolume) {
	sorted := make([]Choice, len(volumes))
	for i, volume := range volumes {
		sorted[i] = choiceOf(volume)
	}
	slices.SortFunc(sorted, Choice.Compare)
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.volumes == nil {
		x.volumes = make(map[string]*corev1.PersistentVolume, len(volumes))
	}
	for i := range sorted {
		x.set(sorted[i].Volume)
	}
}

// Delete removes a volume and its reservation. One that is not known is no error.
func (x *Index) Delete(name string) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if volume := x.volumes[name]; volume != nil {
		x.remove(volume)
		delete(x.volumes, name)
		delete(x.affinities, name)
	}
	delete(x.reserved, name)
}

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
	if known == nil || known.ResourceVersion != version {
		return false, false
	}
	ref := known.Spec.ClaimRef
	if ref != nil && (ref.UID == "" || ref.Namespace != "" && ref.Name != "") { // else it is to be written again (L1)
		return false, obj.ReferencedClaim(known) == claim
	}
	owners := x.ownersOf(volume)
	return len(owners) == 0 && ref == nil, !match.OwnedByAnother(claim, owners)
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
	x.setOwned(obj.KeyOf(claim), obj.Name(phase.Owned(claim)))
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
	if known := x.volumes[volume]; known != nil && known.Spec.ClaimRef == nil {
		x.remove(known)
		defer x.insert(known)
	}
	change()
}

func (x *Index) set(volume *corev1.PersistentVolume) {
	if old := x.volumes[volume.Name]; old != nil {
		x.remove(old)
	}
	if volume.Spec.ClaimRef != nil {
		delete(x.reserved, volume.Name)
	}
	zeromap.Put(&x.volumes, volume.Name, volume)
	delete(x.affinities, volume.Name)
	if match.LargeAffinity(volume) {
		zeromap.Put(&x.affinities, volume.Name, sync.OnceValue(func() *match.Affinity { return new(match.AffinityOf(volume)) }))
	}
	x.insert(volume)
}

// insert puts a volume where its version and its owners place it.
func (x *Index) insert(volume *corev1.PersistentVolume) {
	if claim := x.relatedClaim(volume); claim != (types.NamespacedName{}) {
		setList(&x.related, claim, append(x.related[claim], volume))
	}
	switch x.unavailable(volume) {
	case "":
		x.free.insert(volume)
	case match.NotAvailable:
		x.notAvailable.insert(volume)
	case match.Malformed:
		zeromap.Put(&x.malformed, volume.Name, volume)
	case match.Deleting:
		x.deleting++
	}
}

// remove undoes insert. The version and the owners of the volume must be the same as then.
func (x *Index) remove(volume *corev1.PersistentVolume) {
	if claim := x.relatedClaim(volume); claim != (types.NamespacedName{}) {
		isVolume := func(related *corev1.PersistentVolume) bool { return related == volume }
		setList(&x.related, claim, slices.DeleteFunc(x.related[claim], isVolume))
	}
	switch x.unavailable(volume) {
	case "":
		x.free.remove(volume)
	case match.NotAvailable:
		x.notAvailable.remove(volume)
	case match.Malformed:
		delete(x.malformed, volume.Name)
	case match.Deleting:
		x.deleting--
	}
}

// unavailable returns why no claim can choose the volume, but for one that has it already; "" if any claim can.
func (x *Index) unavailable(volume *corev1.PersistentVolume) match.Reason {
	if volume.DeletionTimestamp == nil && (volume.Spec.ClaimRef != nil || len(x.ownersOf(volume.Name)) > 0) {
		return match.BoundToAnotherClaim
	}
	return match.Unavailable(volume)
}

// relatedClaim returns the claim that the volume's claimRef names or that owns it. It is zero if there is none, or if
// several own it, for then it fits none of them.
func (x *Index) relatedClaim(volume *corev1.PersistentVolume) types.NamespacedName {
	if volume.Spec.ClaimRef != nil {
		claim := obj.ReferencedClaim(volume)
		return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	}
	if owners := x.ownersOf(volume.Name); len(owners) == 1 {
		return types.NamespacedName{Namespace: owners[0].Namespace, Name: owners[0].Name}
	}
	return types.NamespacedName{}
}

// setList sets the list under the key, or removes the key if the list is empty.
func setList[M ~map[K]L, K comparable, L ~[]E, E any](m *M, key K, list L) {
	if len(list) == 0 {
		delete(*m, key)
		return
	}
	zeromap.Put(m, key, list)
}

// affinity returns the large node affinity of a volume; nil if it has none.
func (x *Index) affinity(volume string) *match.Affinity {
	if read := x.affinities[volume]; read != nil {
		return read()
	}
	return nil
}
