package dump

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// kind is one of the kinds of objects that a simulation is made of.
type kind struct {
	short      string // as kubectl names it
	namespaced bool
	empty      func() obj.Object
}

// kindOf looks a kind up; false: simulate knows nothing of it.
func kindOf(apiVersion, name string) (kind, bool) {
	switch apiVersion + " " + name {
	case "storage.k8s.io/v1 StorageClass":
		return kind{short: "sc", empty: func() obj.Object { return &storagev1.StorageClass{} }}, true
	case "storage.k8s.io/v1 VolumeAttachment":
		return kind{short: "volumeattachment", empty: func() obj.Object { return &storagev1.VolumeAttachment{} }}, true
	case "v1 Node":
		return kind{short: "node", empty: func() obj.Object { return &corev1.Node{} }}, true
	case "v1 PersistentVolume":
		return kind{short: "pv", empty: func() obj.Object { return &corev1.PersistentVolume{} }}, true
	case "v1 PersistentVolumeClaim":
		return kind{short: "pvc", namespaced: true, empty: func() obj.Object { return &corev1.PersistentVolumeClaim{} }}, true
	case "v1 Pod":
		return kind{short: "pod", namespaced: true, empty: func() obj.Object { return &corev1.Pod{} }}, true
	}
	return kind{}, false
}

// object names what a document holds, as far as it says: "pvc/default/data".
func (d document) object() string {
	metadata, _ := d.content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		name = "(no name)"
	}
	known, ok := kindOf(d.apiVersion, d.kind)
	if !ok {
		return cmp.Or(d.kind, "(no kind)") + "/" + name
	}
	if !known.namespaced {
		return known.short + "/" + name
	}
	namespace, _ := metadata["namespace"].(string)
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return known.short + "/" + namespace + "/" + name
}

const DefaultNamespace = "default"
