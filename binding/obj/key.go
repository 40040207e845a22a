package obj

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Kind is the kind of an object that decisions are about, or of a list that is read as one.
type Kind string

const (
	KindVolume     Kind = "PersistentVolume"
	KindClaim      Kind = "PersistentVolumeClaim"
	KindClass      Kind = "StorageClass"
	KindNode       Kind = "Node"
	KindCSINode    Kind = "CSINode"
	KindPod        Kind = "Pod"
	KindAttachment Kind = "VolumeAttachment"

	KindClaims      Kind = "PersistentVolumeClaims" // all claims of all namespaces
	KindPods        Kind = "Pods"                   // all pods of a namespace
	KindAttachments Kind = "VolumeAttachments"      // all VolumeAttachments of the cluster
)

// Key names one object, or one list. It is comparable, so that a queue can hold keys and fold equal ones.
type Key struct {
	Kind      Kind
	Namespace string // empty for what is in no namespace
	Name      string // empty for a list
}

// MaxName is how many bytes the name of an object may have.
const MaxName = 253

// Name returns a name as it is, or cut if it is longer than that of any object. A tenant may write a megabyte into a field that
// names one: nothing is looked up by that, or told of it, but the beginning (X9). What is cut is still longer than any name.
func Name(name string) string {
	if len(name) <= MaxName {
		return name
	}
	return name[:MaxName] + "…"
}

// VolumeKey returns the key of a volume, with what Name returns.
func VolumeKey(name string) Key { return Key{Kind: KindVolume, Name: Name(name)} }

// ClaimKey returns the key of a claim, with what Name returns.
func ClaimKey(namespace, name string) Key {
	return Key{Kind: KindClaim, Namespace: Name(namespace), Name: Name(name)}
}

// PodsKey returns the key of the pods of a namespace.
func PodsKey(namespace string) Key { return Key{Kind: KindPods, Namespace: namespace} }

// ClaimsKey returns the key of all claims of all namespaces.
func ClaimsKey() Key { return Key{Kind: KindClaims} }

// AttachmentsKey returns the key of all VolumeAttachments of the cluster.
func AttachmentsKey() Key { return Key{Kind: KindAttachments} }

// KeyOf returns the key of a claim.
func KeyOf(claim *corev1.PersistentVolumeClaim) Key { return ClaimKey(claim.Namespace, claim.Name) }

// KeyOfPod returns the key of a pod.
func KeyOfPod(pod *corev1.Pod) Key {
	return Key{Kind: KindPod, Namespace: pod.Namespace, Name: pod.Name}
}

// KeyOfAttachment returns the key of a VolumeAttachment.
func KeyOfAttachment(attachment *storagev1.VolumeAttachment) Key {
	return Key{Kind: KindAttachment, Name: attachment.Name}
}

// ReferencedClaim returns the key of the claim in the volume's claimRef; the zero Key if there is none, or no volume.
func ReferencedClaim(volume *corev1.PersistentVolume) Key {
	if volume == nil || volume.Spec.ClaimRef == nil {
		return Key{}
	}
	return ClaimKey(volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
}

// NamedVolume returns the key of the volume in the claim's spec.volumeName; the zero Key if there is none, or no claim.
func NamedVolume(claim *corev1.PersistentVolumeClaim) Key {
	if claim == nil || claim.Spec.VolumeName == "" {
		return Key{}
	}
	return VolumeKey(claim.Spec.VolumeName)
}

// AttachedVolume returns the key of the volume that an attachment names; the zero Key if there is no attachment, or one
// of a volume that is written into a pod.
func AttachedVolume(attachment *storagev1.VolumeAttachment) Key {
	if attachment == nil || attachment.Spec.Source.PersistentVolumeName == nil {
		return Key{}
	}
	return VolumeKey(*attachment.Spec.Source.PersistentVolumeName)
}

// AttachmentsOf returns those among all attachments that name the volume.
func AttachmentsOf(all []*storagev1.VolumeAttachment, volume string) (found []*storagev1.VolumeAttachment) {
	for _, attachment := range all {
		if AttachedVolume(attachment) == VolumeKey(volume) {
			found = append(found, attachment)
		}
	}
	return found
}

// IsNobodys reports whether no object can have the key, for the name is too long. That needs no read.
func (k Key) IsNobodys() bool { return len(k.Namespace) > MaxName || len(k.Name) > MaxName }

// IsList reports whether the key names several objects of a kind, which are read together.
func (k Key) IsList() bool {
	return k.Kind == KindClaims || k.Kind == KindPods || k.Kind == KindAttachments
}

// String returns the key as kubectl would name it: "pv/a", "pvc/default/a", "pvc" for all claims, "pods/default",
// "pod/default/a", "volumeattachments".
func (k Key) String() string {
	switch k.Kind {
	case KindVolume:
		return "pv/" + k.Name
	case KindClaim:
		return "pvc/" + k.Namespace + "/" + k.Name
	case KindClaims:
		return "pvc"
	case KindPods:
		return "pods/" + k.Namespace
	case KindAttachments:
		return "volumeattachments"
	}
	kind := strings.ToLower(string(k.Kind))
	if k.Namespace == "" {
		return kind + "/" + k.Name
	}
	return kind + "/" + k.Namespace + "/" + k.Name
}

// MarshalText returns String, so that a key is a string in JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// CompareKeys orders keys by kind, namespace and name.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
