// Package obj names the objects that decisions are about, and says which of two versions is the later.
//
// A Key names one claim or volume, or a list that is read as one: the pods of a namespace, all attachments. Keys are what a
// controller queues. An InvalidError is what every package returns for an object that no decision can be made on.
package obj

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kind is the kind of an object that decisions are about.
type Kind string

const (
	KindVolume Kind = "PersistentVolume"
	KindClaim  Kind = "PersistentVolumeClaim"
	KindPods   Kind = "Pods" // all pods of a namespace, read as one list
	// KindAttachments are all VolumeAttachments of the cluster, read as one list.
	KindAttachments Kind = "VolumeAttachments"

	KindPod        Kind = "Pod"
	KindAttachment Kind = "VolumeAttachment"
)

// Key names one claim, one volume, the pods of one namespace or all attachments. It is comparable, so that a queue can
// hold keys and fold equal ones.
type Key struct {
	Kind      Kind
	Namespace string // empty for a volume and for attachments
	Name      string // empty for a list
}

// VolumeKey names a volume.
func VolumeKey(name string) Key { return Key{Kind: KindVolume, Name: name} }

// ClaimKey names a claim.
func ClaimKey(namespace, name string) Key {
	return Key{Kind: KindClaim, Namespace: namespace, Name: name}
}

// PodsKey names the pods of a namespace.
func PodsKey(namespace string) Key { return Key{Kind: KindPods, Namespace: namespace} }

// AttachmentsKey names all VolumeAttachments of the cluster.
func AttachmentsKey() Key { return Key{Kind: KindAttachments} }

// IsList reports whether the key names all objects of a kind, which are read together.
func (k Key) IsList() bool { return k.Kind == KindPods || k.Kind == KindAttachments }

// KeyOf names a claim.
func KeyOf(claim *corev1.PersistentVolumeClaim) Key { return ClaimKey(claim.Namespace, claim.Name) }

// String is the key as kubectl would name it: "pv/a", "pvc/default/a", "pods/default", "pod/default/a",
// "volumeattachments".
func (k Key) String() string {
	switch k.Kind {
	case KindVolume:
		return "pv/" + k.Name
	case KindClaim:
		return "pvc/" + k.Namespace + "/" + k.Name
	case KindPods:
		return "pods/" + k.Namespace
	case KindAttachments:
		return "volumeattachments"
	}
	kind := strings.ToLower(string(k.Kind)) // one that only others store
	if k.Namespace == "" {
		return kind + "/" + k.Name
	}
	return kind + "/" + k.Namespace + "/" + k.Name
}

// MarshalText is String, so that a key is a string in JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Object is any Kubernetes API object.
type Object interface {
	metav1.Object
	runtime.Object
}

// ReferencedClaim names the claim in the volume's claimRef; the zero Key if there is none, or no volume.
func ReferencedClaim(volume *corev1.PersistentVolume) Key {
	if volume == nil || volume.Spec.ClaimRef == nil {
		return Key{}
	}
	return ClaimKey(volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
}

// NamedVolume names the volume in the claim's spec.volumeName; the zero Key if there is none, or no claim.
func NamedVolume(claim *corev1.PersistentVolumeClaim) Key {
	if claim == nil || claim.Spec.VolumeName == "" {
		return Key{}
	}
	return VolumeKey(claim.Spec.VolumeName)
}

// KeyOfPod names a pod.
func KeyOfPod(pod *corev1.Pod) Key {
	return Key{Kind: KindPod, Namespace: pod.Namespace, Name: pod.Name}
}

// CompareKeys orders keys by kind, namespace and name.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// JoinKeys lists keys in one line.
func JoinKeys(keys []Key) string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	return strings.Join(names, ", ")
}
