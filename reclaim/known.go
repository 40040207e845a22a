package reclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Known holds what was read from the API server itself since the last write. What a cache holds may be old, and what it
// lacks may exist. In its zero value nothing is known. Nothing in it is modified.
type Known struct {
	Volumes []*corev1.PersistentVolume
	Claims  []*corev1.PersistentVolumeClaim
	// AllClaims says that Claims holds every claim of every namespace, from one list: one that it lacks does not exist.
	AllClaims bool
	// Pods has all pods of a namespace, by the namespace; an empty list says that there are none.
	Pods map[string][]*corev1.Pod
	// Missing has the volumes and claims that were read and do not exist.
	Missing []obj.Key
}

// volume returns the volume of that name. Nil and known: it does not exist.
func (k Known) volume(name string) (volume *corev1.PersistentVolume, known bool) {
	for _, volume := range k.Volumes {
		if volume.Name == name {
			return volume, true
		}
	}
	return nil, slices.Contains(k.Missing, obj.VolumeKey(name))
}

// claim returns the claim of that key. Nil and known: it does not exist.
func (k Known) claim(key obj.Key) (claim *corev1.PersistentVolumeClaim, known bool) {
	for _, claim := range k.Claims {
		if obj.KeyOf(claim) == key {
			return claim, true
		}
	}
	return nil, k.AllClaims || slices.Contains(k.Missing, key)
}

// owners returns the claims that a volume without claimRef belongs to all the same, in order. They are known only from a
// list of all claims (M2).
func (k Known) owners(volume string) (owners []*corev1.PersistentVolumeClaim, known bool) {
	for _, claim := range k.Claims {
		if phase.Owned(claim) == volume {
			owners = append(owners, claim)
		}
	}
	slices.SortFunc(owners, func(a, b *corev1.PersistentVolumeClaim) int {
		return obj.CompareKeys(obj.KeyOf(a), obj.KeyOf(b))
	})
	return owners, k.AllClaims
}

// users returns the pods that have not finished and name the claim.
func (k Known) users(claim obj.Key) (pods []*corev1.Pod, known bool) {
	all, known := k.Pods[claim.Namespace]
	return BlockRecycling(all, claim.Namespace, claim.Name), known
}
