package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/internal/dump"
	"github.com/pvbind/pvbind/storageclass"
)

// cluster is what the input has of a cluster.
type cluster struct {
	*dump.View
	progress *progress
	storages map[string][]string // the volumes of each storage; filled by storedWith
	foreign  int                 // volumes in use whose claim is in a namespace that the input lacks
	pods     bool                // there is any
	classes  bool                // there is any
}

func newCluster(objects []obj.Object, watched *progress) *cluster {
	c := &cluster{progress: watched}
	for i, object := range objects {
		bindingtest.SetDefaults(object)
		if object.GetUID() == "" { // a manifest: what would become of it once it is created
			object.SetUID(types.UID(fmt.Sprintf("of-%d", i)))
		}
		_, isPod := object.(*corev1.Pod)
		_, isClass := object.(*storagev1.StorageClass)
		c.pods, c.classes = c.pods || isPod, c.classes || isClass
	}
	c.View = dump.NewView(objects)
	for _, volume := range c.Volumes {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" && !isReleased(volume) && c.unknown(ref) {
			c.foreign++
		}
	}
	return c
}

// unknown reports whether the input tells neither that the claim exists nor that it does not.
func (c *cluster) unknown(claim *corev1.ObjectReference) bool {
	_, source := c.Claim(claim.Namespace, claim.Name)
	return source == decision.NotInCache
}

// isReleased reports whether the volume is Released or Failed: a controller saw that its claim was gone.
func isReleased(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
}

// lacksClasses reports whether a claim that is not Bound names a class, and there is no class at all.
func (c *cluster) lacksClasses() bool {
	return !c.classes && slices.ContainsFunc(c.Claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Status.Phase != corev1.ClaimBound && storageclass.OfClaim(claim) != ""
	})
}

// missing returns what the input seems to lack, and the answers may be wrong about for that.
func (c *cluster) missing() []string {
	var notes []string
	if len(c.Volumes) == 0 {
		notes = append(notes, "there are no volumes in the input: was it asked for pv?")
	}
	if len(c.Claims) == 0 {
		notes = append(notes, "there are no claims in the input: was it asked for pvc?")
	}
	if c.foreign > 0 && len(c.Claims) > 0 {
		notes = append(notes, fmt.Sprintf("volumes whose claims are in namespaces that the input has no claim of are passed over (%d): was it asked for with -A?", c.foreign))
	}
	if c.lacksClasses() {
		notes = append(notes, "there are no storage classes in the input, and claims name some: was it asked for sc?")
	}
	if !c.pods {
		notes = append(notes, "there are no pods in the input: who uses a claim is not known")
	}
	return notes
}

// sameStorage returns the names of the other volumes of the same storage.
func (c *cluster) sameStorage(volume *corev1.PersistentVolume) []string {
	others := slices.Clone(c.storedWith(volume))
	return slices.DeleteFunc(others, func(name string) bool { return name == volume.Name })
}

// sameStorageText names some of them, for there may be very many: "twin-2" or "a, b, c and 40 others"; "" if there are
// none.
func (c *cluster) sameStorageText(volume *corev1.PersistentVolume) string {
	all := c.storedWith(volume)
	var names []string
	for _, name := range all {
		if name != volume.Name && len(names) < shown {
			names = append(names, name)
		}
	}
	text := strings.Join(names, ", ")
	if more := len(all) - 1 - len(names); more > 0 {
		text += fmt.Sprintf(" and %d others", more)
	}
	return text
}

// storedWith returns the names of the volumes of this one's storage, itself among them.
func (c *cluster) storedWith(volume *corev1.PersistentVolume) []string {
	if c.storages == nil {
		c.storages = map[string][]string{}
		for _, v := range c.Volumes {
			key := storageOf(v)
			c.storages[key] = append(c.storages[key], v.Name)
		}
	}
	return c.storages[storageOf(volume)]
}

// storageOf returns what identifies a storage: driver and handle, or else the whole source and node affinity.
func storageOf(volume *corev1.PersistentVolume) string {
	if csi := volume.Spec.CSI; csi != nil {
		return csi.Driver + " " + csi.VolumeHandle
	}
	text, err := json.Marshal([]any{volume.Spec.PersistentVolumeSource, volume.Spec.NodeAffinity})
	if err != nil {
		return volume.Name
	}
	return string(text)
}
