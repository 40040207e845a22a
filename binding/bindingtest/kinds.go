package bindingtest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/obj"
)

// Kinds returns the kinds that the server stores, each after those it refers to.
func Kinds() []obj.Kind {
	return []obj.Kind{obj.KindClass, obj.KindNode, obj.KindCSINode, obj.KindVolume, obj.KindClaim, obj.KindPod, obj.KindAttachment}
}

type scope string

const (
	clusterScoped scope = "Cluster"
	namespaced    scope = "Namespaced"
)

// kindInfo is what the API says of a kind.
type kindInfo struct {
	group    string
	resource string
	short    string // as kubectl abbreviates it, if it does
	scope    scope
}

func infoOf(kind obj.Kind) (kindInfo, bool) {
	switch kind {
	case obj.KindVolume:
		return kindInfo{"", "persistentvolumes", "pv", clusterScoped}, true
	case obj.KindClaim:
		return kindInfo{"", "persistentvolumeclaims", "pvc", namespaced}, true
	case obj.KindClass:
		return kindInfo{storagev1.GroupName, "storageclasses", "sc", clusterScoped}, true
	case obj.KindNode:
		return kindInfo{"", "nodes", "node", clusterScoped}, true
	case obj.KindCSINode:
		return kindInfo{storagev1.GroupName, "csinodes", "csinode", clusterScoped}, true
	case obj.KindPod:
		return kindInfo{"", "pods", "pod", namespaced}, true
	case obj.KindAttachment:
		return kindInfo{storagev1.GroupName, "volumeattachments", "volumeattachment", clusterScoped}, true
	}
	return kindInfo{}, false
}

func (k kindInfo) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.resource}
}

// KeyOf names an object. It fails if the server does not store objects of that type.
func KeyOf(object obj.Object) (obj.Key, error) {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		return obj.VolumeKey(o.Name), nil
	case *corev1.PersistentVolumeClaim:
		return obj.KeyOf(o), nil
	case *storagev1.StorageClass:
		return obj.Key{Kind: obj.KindClass, Name: o.Name}, nil
	case *corev1.Node:
		return obj.Key{Kind: obj.KindNode, Name: o.Name}, nil
	case *storagev1.CSINode:
		return obj.Key{Kind: obj.KindCSINode, Name: o.Name}, nil
	case *corev1.Pod:
		return PodKey(o.Namespace, o.Name), nil
	case *storagev1.VolumeAttachment:
		return AttachmentKey(o.Name), nil
	}
	return obj.Key{}, fmt.Errorf("bindingtest: objects of type %T are not stored; the kinds are %v", object, Kinds())
}

// PodKey names a pod.
func PodKey(namespace, name string) obj.Key {
	return obj.Key{Kind: obj.KindPod, Namespace: namespace, Name: name}
}

// AttachmentKey names a VolumeAttachment.
func AttachmentKey(name string) obj.Key { return obj.Key{Kind: obj.KindAttachment, Name: name} }

// display returns the key as kubectl would name it: "pv/a", "pvc/default/a", "sc/fast".
func display(key obj.Key) string {
	info, ok := infoOf(key.Kind)
	switch {
	case !ok:
		return key.String()
	case info.scope == clusterScoped:
		return info.short + "/" + key.Name
	}
	return info.short + "/" + key.Namespace + "/" + key.Name
}

// copyOf returns a deep copy without TypeMeta, which typed clients do not fill in either.
func copyOf(object obj.Object) obj.Object {
	if object == nil {
		return nil
	}
	c := object.DeepCopyObject().(obj.Object)
	c.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return c
}

// topOf returns a copy whose fields may be replaced. What they point to is shared, and must not be modified.
func topOf(object obj.Object) obj.Object {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		return new(*o)
	case *corev1.PersistentVolumeClaim:
		return new(*o)
	case *storagev1.StorageClass:
		return new(*o)
	case *corev1.Node:
		return new(*o)
	case *storagev1.CSINode:
		return new(*o)
	case *corev1.Pod:
		return new(*o)
	case *storagev1.VolumeAttachment:
		return new(*o)
	}
	return copyOf(object)
}

func finalizersLeft(object metav1.Object) bool { return len(object.GetFinalizers()) > 0 }
