package binding

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is the kind of an object that decisions are about.
type Kind string

const (
	KindVolume Kind = "PersistentVolume"
	KindClaim  Kind = "PersistentVolumeClaim"
	KindPods   Kind = "Pods" // all pods of a namespace, read as one list

	kindPod Kind = "Pod"
)

// Key names one claim, one volume or the pods of one namespace. It is comparable, so that a queue can
// hold keys and fold equal ones.
type Key struct {
	Kind      Kind
	Namespace string // empty for a volume
	Name      string // empty for pods
}

// VolumeKey names a volume.
func VolumeKey(name string) Key { return Key{Kind: KindVolume, Name: name} }

// ClaimKey names a claim.
func ClaimKey(namespace, name string) Key {
	return Key{Kind: KindClaim, Namespace: namespace, Name: name}
}

// PodsKey names the pods of a namespace.
func PodsKey(namespace string) Key { return Key{Kind: KindPods, Namespace: namespace} }

// KeyOf names a claim.
func KeyOf(claim *corev1.PersistentVolumeClaim) Key { return ClaimKey(claim.Namespace, claim.Name) }

// String is the key as kubectl would name it: "pv/a", "pvc/default/a", "pods/default", "pod/default/a".
func (k Key) String() string {
	switch k.Kind {
	case KindVolume:
		return "pv/" + k.Name
	case KindClaim:
		return "pvc/" + k.Namespace + "/" + k.Name
	case KindPods:
		return "pods/" + k.Namespace
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

// referenced names the claim in the volume's claimRef; the zero Key if there is none, or no volume.
func referenced(volume *corev1.PersistentVolume) Key {
	if volume == nil || volume.Spec.ClaimRef == nil {
		return Key{}
	}
	return ClaimKey(volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
}

// named names the volume in the claim's spec.volumeName; the zero Key if there is none, or no claim.
func named(claim *corev1.PersistentVolumeClaim) Key {
	if claim == nil || claim.Spec.VolumeName == "" {
		return Key{}
	}
	return VolumeKey(claim.Spec.VolumeName)
}

// podKey names a pod.
func podKey(pod *corev1.Pod) Key { return Key{Kind: kindPod, Namespace: pod.Namespace, Name: pod.Name} }

// compareKeys orders keys by kind, namespace and name.
func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
