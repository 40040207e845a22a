package index

import (
	"cmp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Index is a set of volumes that are chosen from in O(log n). It gives the same answers as match.Find and
// match.Explain on a list of the same volumes, but keeps those that a claim can still choose in order of size,
// by class, modes, labels and node affinity, so that the others cost it nothing.
//
// Who fills it tells it of every volume with Set and Delete, or with Load at first, and sees to it that
// an old version does not follow a newer one. The volumes are the caller's; they must not be modified
// once they are in an Index. A volume is given away once, however many goroutines ask: Reserve, and
// write only if it returns true.
//
//	found, err := volumes.Find(claim, match.Terms{Class: class})
//	…
//	if found.Volume != nil && volumes.Reserve(found.Volume.Name, found.Volume.ResourceVersion, obj.KeyOf(claim)) {
//		// write the claimRef, pass what the server returns to Set, and call Release
//	}
//
// The zero value is empty and ready to use. Any number of goroutines may use an Index at once. It must
// not be copied.
type Index struct {
	mutex sync.RWMutex

	volumes map[string]*corev1.PersistentVolume
	// free are the volumes to choose from. idle are like them but for their phase (M9).
	free, idle buckets
	// related are the volumes that have to do with the claims of one name: by their claimRef, or because
	// they belong to it. A claim looks at its own one by one.
	related map[claimName][]*corev1.PersistentVolume
	// malformed are unclaimed.
	malformed map[string]*corev1.PersistentVolume
	// deleting and claimed count volumes for the summary; one that is both counts as deleting.
	deleting, claimed int

	owned map[obj.Key]string // the volume that a claim owns
	// owners are the claims that own a volume, in order, and reserved the one that Reserve was called for. A slice in
	// them is replaced, never changed: callers have it.
	owners, reserved map[string][]obj.Key
}

// claimName is the name that claims have in turn: a claimRef may mean any of them.
type claimName struct{ namespace, name string }

func sharedName(k obj.Key) claimName { return claimName{k.Namespace, k.Name} }

// Len is the number of volumes.
func (x *Index) Len() int {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return len(x.volumes)
}

// Set adds a volume, or puts it in the place of the version that was known. It takes O(log n). A
// reservation stays until it is released, unless the new version has a claimRef: then that counts.
func (x *Index) Set(volume *corev1.PersistentVolume) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.set(volume)
}

// Load is Set for many volumes, none twice. It is faster, and leaves an empty Index more compact.
func (x *Index) Load(volumes ...*corev1.PersistentVolume) {
	sorted := sortedBySize(volumes)
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.volumes == nil {
		x.volumes = make(map[string]*corev1.PersistentVolume, len(volumes))
	}
	for _, volume := range sorted {
		x.set(volume)
	}
}

// Delete removes a volume and its reservation. One that is not known is no error.
func (x *Index) Delete(name string) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if volume := x.volumes[name]; volume != nil {
		x.take(volume)
		delete(x.volumes, name)
	}
	delete(x.reserved, name)
}

func (x *Index) set(volume *corev1.PersistentVolume) {
	if old := x.volumes[volume.Name]; old != nil {
		x.take(old)
	}
	if volume.Spec.ClaimRef != nil {
		delete(x.reserved, volume.Name)
	}
	zeromap.Put(&x.volumes, volume.Name, volume)
	x.put(volume)
}

// sortedBySize is about the order in which the volumes will be kept, whatever their group.
func sortedBySize(volumes []*corev1.PersistentVolume) []*corev1.PersistentVolume {
	type sized struct {
		volume *corev1.PersistentVolume
		size   int64
	}
	order := make([]sized, len(volumes))
	for i, volume := range volumes {
		capacity, _ := match.CapacityOf(volume)
		order[i] = sized{volume, sizeOf(capacity)}
	}
	slices.SortFunc(order, func(a, b sized) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.volume.Name, b.volume.Name))
	})
	sorted := make([]*corev1.PersistentVolume, len(volumes))
	for i := range order {
		sorted[i] = order[i].volume
	}
	return sorted
}

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
