package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/storageclass"
)

// world is a cluster as the input has it.
type world struct {
	*dump.View
	progress *progress
	storages map[string][]string // by what they are, the volumes that stand for them; filled when asked for
	foreign  int                 // volumes in use whose claim is in a namespace that the input says nothing of
	pods     bool                // there is any
	classes  bool                // there is any
}

func newWorld(objects []obj.Object, watched *progress) *world {
	w := &world{progress: watched}
	for i, object := range objects {
		bindingtest.SetDefaults(object)
		if object.GetUID() == "" { // a manifest: what would become of it once it is created
			object.SetUID(types.UID(fmt.Sprintf("of-%d", i)))
		}
		_, isPod := object.(*corev1.Pod)
		_, isClass := object.(*storagev1.StorageClass)
		w.pods, w.classes = w.pods || isPod, w.classes || isClass
	}
	w.View = dump.NewView(objects)
	for _, volume := range w.Volumes {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" && !gaveUp(volume) && w.unseen(ref) {
			w.foreign++
		}
	}
	return w
}

// unseen reports whether the input says nothing of the claim, nor that it does not exist.
func (w *world) unseen(claim *corev1.ObjectReference) bool {
	_, evidence := w.Claim(claim.Namespace, claim.Name)
	return evidence == binding.Unknown
}

// gaveUp reports whether the volume is Released or Failed: a controller saw that its claim was gone.
func gaveUp(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
}

// classless reports whether a claim that waits names a class, and there is no class at all.
func (w *world) classless() bool {
	return !w.classes && slices.ContainsFunc(w.Claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Status.Phase != corev1.ClaimBound && storageclass.OfClaim(claim) != ""
	})
}

// doubts are what may be wrong with the answers, for something may be missing from the input.
func (w *world) doubts() []string {
	var doubts []string
	if len(w.Volumes) == 0 {
		doubts = append(doubts, "there are no volumes in the input: was it asked for pv?")
	}
	if len(w.Claims) == 0 {
		doubts = append(doubts, "there are no claims in the input: was it asked for pvc?")
	}
	if w.foreign > 0 && len(w.Claims) > 0 {
		doubts = append(doubts, fmt.Sprintf("volumes whose claims are in namespaces that the input has no claim of are passed over (%d): was it asked for with -A?", w.foreign))
	}
	if w.classless() {
		doubts = append(doubts, "there are no storage classes in the input, and claims name some: was it asked for sc?")
	}
	if !w.pods {
		doubts = append(doubts, "there are no pods in the input: who uses a claim is not known")
	}
	return doubts
}
