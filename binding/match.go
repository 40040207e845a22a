package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Terms are what a match depends on beside the claim and the volumes. The zero value is a claim
// without a class object, anywhere.
type Terms struct {
	// Class is the claim's class; nil if it names none or the class does not exist (M11: Immediate).
	Class *storagev1.StorageClass
	// Node is the node that the volume must be usable on (M10); nil if none is given.
	Node *corev1.Node
	// Owners returns the claims that an Unclaimed volume belongs to all the same (M2): those whose status
	// is Bound and that name it (phase.Owned), or else the one that it is being bound to at this moment.
	// Of several none can have it. None: nobody. A nil function: no such claim is known.
	Owners func(volume string) []Key
}

// Request asks for a volume for a claim. Nothing in it is modified.
type Request struct {
	Claim *corev1.PersistentVolumeClaim
	// Volumes to choose from, in any order, none twice.
	Volumes []*corev1.PersistentVolume
	Terms
}

// Match is the answer to a Request.
type Match struct {
	// Volume is the one chosen, one of Request.Volumes; nil if none is.
	Volume *corev1.PersistentVolume
	// Refused are the volumes that are Reserved for or Held by the claim and do not fit it, in name
	// order (M12). There may be some beside a chosen volume.
	Refused []Refusal
}

// Refusal is a volume that does not fit and every reason why.
type Refusal struct {
	Volume     *corev1.PersistentVolume
	Mismatches Mismatches
}
