package binding_test

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// A claim and a volume that fit each other, and the edits that part them.

type (
	claimEdit  func(*corev1.PersistentVolumeClaim)
	volumeEdit func(*corev1.PersistentVolume)
)

// fitClaim is default/data, of class fast, asking for 10Gi, ReadWriteOnce.
func fitClaim(edits ...claimEdit) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid-1"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = storage("10Gi")
	claim.Spec.StorageClassName = new("fast")
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

// fitVolume is Available, of class fast, 10Gi, ReadWriteOnce.
func fitVolume(name string, edits ...volumeEdit) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.Capacity = storage("10Gi")
	volume.Spec.StorageClassName = "fast"
	volume.Status.Phase = corev1.VolumeAvailable
	for _, edit := range edits {
		edit(volume)
	}
	return volume
}

func storage(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(quantity)}
}

func asking(quantity string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = storage(quantity) }
}

func askingModes(modes ...corev1.PersistentVolumeAccessMode) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = modes }
}

func askingLabel(key, value string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

func sized(quantity string) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.Capacity = storage(quantity) }
}

func offering(modes ...corev1.PersistentVolumeAccessMode) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.AccessModes = modes }
}

func ofClass(name string) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = name }
}

func inPhase(phase corev1.PersistentVolumePhase) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Status.Phase = phase }
}

func labelled(key, value string) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Labels = map[string]string{key: value} }
}

func beingDeleted(v *corev1.PersistentVolume) {
	v.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
}

// refersTo sets the claimRef.
func refersTo(namespace, name string, uid types.UID) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
	}
}

var (
	reserved = refersTo("default", "data", "")
	held     = refersTo("default", "data", "uid-1")
)

// onlyIn restricts the volume to the nodes of a zone.
func onlyIn(zone string) volumeEdit {
	return affine(term(require1("zone", corev1.NodeSelectorOpIn, zone)))
}

func affine(terms ...corev1.NodeSelectorTerm) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

func term(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

func require1(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

// nodeIn is a node of a zone.
func nodeIn(zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{"zone": zone}}}
}

func classWith(mode *storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, VolumeBindingMode: mode}
}

// waiting are the Terms of a class that waits for its first consumer.
func waiting() match.Terms {
	return match.Terms{Class: classWith(new(storagev1.VolumeBindingWaitForFirstConsumer))}
}

// ownedBy are Terms under which every Unclaimed volume belongs to these claims.
func ownedBy(owners ...obj.Key) match.Terms {
	return match.Terms{Owners: func(string) []obj.Key { return owners }}
}

// owning is the claim of that name, Bound to the volume.
func owning(claim obj.Key, volume string) *corev1.PersistentVolumeClaim {
	return fitClaim(func(c *corev1.PersistentVolumeClaim) { c.Namespace, c.Name = claim.Namespace, claim.Name }, boundTo(volume))
}
