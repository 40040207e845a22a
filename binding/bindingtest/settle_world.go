package bindingtest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

var (
	_ decision.View          = (*world)(nil)
	_ scheduling.View        = (*world)(nil)
	_ scheduling.CSINodeView = (*world)(nil)
)

// world is all that there is, as of one list of each kind and what was written since. It is a View, in which what is absent does
// not exist.
type world struct {
	decision.Snapshot // has nothing in it, and answers what does not matter here
	objects           map[obj.Key]obj.Object
	index             index.Index
	pods              map[obj.Key][]*corev1.Pod // by the claims that they name; made when needed
	attached          map[string]bool           // the volumes that attachments name
}

func newWorld() *world { return &world{objects: map[obj.Key]obj.Object{}, attached: map[string]bool{}} }

func (w *world) put(object obj.Object) {
	if key, err := KeyOf(object); err == nil {
		w.objects[key] = object
	}
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		w.index.Set(o)
	case *corev1.PersistentVolumeClaim:
		w.index.SetClaim(o)
	case *storagev1.VolumeAttachment:
		w.attached[obj.AttachedVolume(o).Name] = true
	}
}

// all returns the objects of a type, in the order of their names.
func all[T obj.Object](w *world) []T {
	var found []T
	for _, object := range w.objects {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	slices.SortFunc(found, func(a, b T) int { return byName(a, b) })
	return found
}

// lookUp returns the object of that key, and where that is known from.
func lookUp[T obj.Object](w *world, key obj.Key) (found T, source decision.Source) {
	found, there := w.objects[key].(T)
	if !there {
		return found, decision.AbsentInLiveRead
	}
	return found, decision.FromLiveRead
}

// Volume looks up a volume.
func (w *world) Volume(name string) (*corev1.PersistentVolume, decision.Source) {
	return lookUp[*corev1.PersistentVolume](w, obj.VolumeKey(name))
}

// Claim looks up a claim.
func (w *world) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	return lookUp[*corev1.PersistentVolumeClaim](w, obj.ClaimKey(namespace, name))
}

// Class looks up a class.
func (w *world) Class(name string) *storagev1.StorageClass {
	class, _ := lookUp[*storagev1.StorageClass](w, obj.Key{Kind: obj.KindClass, Name: name})
	return class
}

func (w *world) node(name string) *corev1.Node {
	node, _ := lookUp[*corev1.Node](w, obj.Key{Kind: obj.KindNode, Name: name})
	return node
}

// CSINode implements scheduling.CSINodeView.
func (w *world) CSINode(name string) *storagev1.CSINode { return w.csiNode(name) }

func (w *world) csiNode(name string) *storagev1.CSINode {
	node, _ := lookUp[*storagev1.CSINode](w, obj.Key{Kind: obj.KindCSINode, Name: name})
	return node
}

// DefaultClass returns the default class.
func (w *world) DefaultClass() *storagev1.StorageClass {
	return storageclass.Default(all[*storagev1.StorageClass](w))
}

// CSIDriver returns nil: free storage is not counted.
func (w *world) CSIDriver(string) *storagev1.CSIDriver { return nil }

// CSIStorageCapacities returns none.
func (w *world) CSIStorageCapacities(string) []*storagev1.CSIStorageCapacity { return nil }

// UsersOf returns the names of pods that use the claim.
func (w *world) UsersOf(claim *corev1.PersistentVolumeClaim, atMost int) (names []string, source decision.Source) {
	return decision.UsersOf(w.podsOf(claim.Namespace, claim.Name), claim, atMost), decision.FromLiveRead
}

// podsOf returns the pods that name the claim.
func (w *world) podsOf(namespace, claim string) []*corev1.Pod {
	if w.pods == nil {
		w.pods = map[obj.Key][]*corev1.Pod{}
		for _, pod := range all[*corev1.Pod](w) {
			for _, name := range reclaim.ClaimNames(pod) {
				key := obj.ClaimKey(pod.Namespace, name)
				w.pods[key] = append(w.pods[key], pod)
			}
		}
	}
	return w.pods[obj.ClaimKey(namespace, claim)]
}

// UnscheduledPods returns the names of the first pods that name the claim and are still to be scheduled.
func (w *world) UnscheduledPods(namespace, claim string, atMost int) (names []string, count int) {
	return decision.Unscheduled(w.podsOf(namespace, claim), atMost)
}

// RecyclingBlockedBy returns the names of the first pods that name the claim and keep its volume from being recycled.
func (w *world) RecyclingBlockedBy(namespace, claim string, again *corev1.PersistentVolumeClaim, atMost int) (names []string, count int, source decision.Source) {
	names, count = decision.RecyclingBlockedBy(w.podsOf(namespace, claim), again, atMost)
	return names, count, decision.FromLiveRead
}

// Find returns the best volume for the claim.
func (w *world) Find(claim *corev1.PersistentVolumeClaim) (match.Match, error) {
	return w.index.Find(claim, w.terms(claim))
}

// Summary counts why no volume fits the claim.
func (w *world) Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error) {
	return w.index.Summary(claim, w.terms(claim))
}

func (w *world) terms(claim *corev1.PersistentVolumeClaim) match.Terms {
	return match.Terms{Class: w.Class(storageclass.OfClaim(claim))}
}

// AbsentAsOf returns "": nothing is read.
func (w *world) AbsentAsOf(obj.Key) string { return "" }

// Owners returns the claims that are Bound to the volume.
func (w *world) Owners(volume string) []obj.Key { return w.index.Owners(volume) }

// ListedOwners returns the same: the claims are all that there are.
func (w *world) ListedOwners(volume string) (owners []*corev1.PersistentVolumeClaim, source decision.Source) {
	for _, key := range w.index.Owners(volume) {
		owner, _ := w.Claim(key.Namespace, key.Name)
		owners = append(owners, owner)
	}
	return owners, decision.FromLiveRead
}
