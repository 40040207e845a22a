package reclaim

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// ReadKind is the kind of what is to be read.
type ReadKind string

// The kinds.
const (
	ReadVolume ReadKind = "PersistentVolume"
	ReadClaim  ReadKind = "PersistentVolumeClaim"
	ReadClaims ReadKind = "PersistentVolumeClaims" // all claims of all namespaces, as one list
	ReadPods   ReadKind = "Pods"                   // all pods of the namespace, as one list
)

// Read names what is to be read from the server itself: a volume, a claim, all claims, or the pods of a namespace. It
// is comparable.
type Read struct {
	Kind            ReadKind
	Namespace, Name string
}

// String is the object as kubectl would name it: "pvc/shop/data", "pvc", "pods/shop".
func (r Read) String() string {
	switch r.Kind {
	case ReadVolume:
		return "pv/" + r.Name
	case ReadClaims:
		return "pvc"
	case ReadPods:
		return "pods/" + r.Namespace
	}
	return "pvc/" + r.Namespace + "/" + r.Name
}

// Known is what the server itself has said since the last write, and not what a cache says, which may be old and
// proves no absence. In its zero value nothing is known. Nothing in it is modified.
type Known struct {
	Volumes []*corev1.PersistentVolume
	Claims  []*corev1.PersistentVolumeClaim
	// AllClaims says that Claims holds every claim of every namespace, from one list: one that it lacks does not exist.
	AllClaims bool
	// Pods are all pods of a namespace, by the namespace; an empty list is an answer too.
	Pods map[string][]*corev1.Pod
	// Missing are the volumes and claims that were asked for and do not exist.
	Missing []Read
}

// volume looks the volume up. Nil and known: it does not exist.
func (k Known) volume(name string) (volume *corev1.PersistentVolume, known bool) {
	for _, volume := range k.Volumes {
		if volume.Name == name {
			return volume, true
		}
	}
	return nil, slices.Contains(k.Missing, Read{Kind: ReadVolume, Name: name})
}

// claim looks the claim up. Nil and known: it does not exist.
func (k Known) claim(namespace, name string) (claim *corev1.PersistentVolumeClaim, known bool) {
	for _, claim := range k.Claims {
		if claim.Namespace == namespace && claim.Name == name {
			return claim, true
		}
	}
	return nil, k.AllClaims || slices.Contains(k.Missing, Read{ReadClaim, namespace, name})
}

// owners are the claims that a volume without claimRef belongs to all the same (M2), in order. Only a list of all claims
// can tell.
func (k Known) owners(volume string) (owners []*corev1.PersistentVolumeClaim, known bool) {
	for _, claim := range k.Claims {
		if phase.Owned(claim) == volume {
			owners = append(owners, claim)
		}
	}
	slices.SortFunc(owners, func(a, b *corev1.PersistentVolumeClaim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return owners, k.AllClaims
}

// users are the pods that have not finished and name the claim.
func (k Known) users(namespace, claim string) (pods []*corev1.Pod, known bool) {
	all, known := k.Pods[namespace]
	return BlockRecycling(all, namespace, claim), known
}
