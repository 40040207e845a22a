package index

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
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
	}
	delete(x.reserved, name)
}

func (x *Index) set(volume *corev1.PersistentVolume) {
	if old := x.volumes[volume.Name]; old != nil {
		x.remove(old)
	}
	if volume.Spec.ClaimRef != nil {
		delete(x.reserved, volume.Name)
	}
	zeromap.Put(&x.volumes, volume.Name, volume)
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
		return types.NamespacedName{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}
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
