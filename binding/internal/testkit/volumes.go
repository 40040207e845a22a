package testkit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// AKey is the key of the volume "a".
var AKey = obj.VolumeKey("a")

// OwnKey is the key of the volume that is provisioned for KnownClaim.
var OwnKey = obj.VolumeKey("pvc-uid-1")

// FitVolume returns a volume that fits FitClaim: Available, of class fast, 10Gi, ReadWriteOnce.
func FitVolume(name string, edits ...VolumeEdit) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.Capacity = Storage("10Gi")
	volume.Spec.StorageClassName = "fast"
	volume.Status.Phase = corev1.VolumeAvailable
	for _, edit := range edits {
		edit(volume)
	}
	return volume
}

// KnownVolume returns a volume that fits KnownClaim, as a server has it: Available.
func KnownVolume(name string, edits ...VolumeEdit) *corev1.PersistentVolume {
	stored := func(v *corev1.PersistentVolume) {
		v.UID = "uid-of-volume"
		v.ResourceVersion = "8"
		v.Spec.StorageClassName = ""
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	return FitVolume(name, append([]VolumeEdit{stored}, edits...)...)
}

// Orphan returns a volume that is Released, and whose claim is gone.
func Orphan(policy corev1.PersistentVolumeReclaimPolicy, edits ...VolumeEdit) *corev1.PersistentVolume {
	return KnownVolume("a", append([]VolumeEdit{BoundToClaim, InPhase(corev1.VolumeReleased), WithPolicy(policy), OnHostPath}, edits...)...)
}

// MadeVolume returns what Own returns for ProvisioningClaim.
func MadeVolume(edits ...VolumeEdit) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	volume.Name = OwnKey.Name
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.Capacity = Storage("10Gi")
	volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/pool/" + OwnKey.Name}
	for _, edit := range edits {
		edit(volume)
	}
	return volume
}

// MadeByOwn returns an Orphan that the provisioner Own made, to be deleted.
func MadeByOwn(edits ...VolumeEdit) *corev1.PersistentVolume {
	return Orphan(corev1.PersistentVolumeReclaimDelete, append([]VolumeEdit{VolumeNote(ProvisionedBy, Own), VolumeFinalizers(InTreeFinalizer)}, edits...)...)
}

// BoundVolume makes a volume bound to FitClaim, as the controller leaves it.
var BoundVolume = []VolumeEdit{BoundToClaim, VolumeNote(BoundBy, "yes"), InPhase(corev1.VolumeBound)}

// ExampleVolume returns an available volume of class fast.
func ExampleVolume(name, capacity string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)},
			StorageClassName: "fast",
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
}

// VolumeNote annotates a volume.
func VolumeNote(key, value string) VolumeEdit {
	return func(v *corev1.PersistentVolume) { metav1.SetMetaDataAnnotation(&v.ObjectMeta, key, value) }
}

// InPhase sets the phase of a volume.
func InPhase(phase corev1.PersistentVolumePhase) VolumeEdit {
	return func(v *corev1.PersistentVolume) { v.Status.Phase = phase }
}

// FailedFor makes a volume Failed, with the reason in its message.
func FailedFor(reason string) VolumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Status.Phase, v.Status.Message = corev1.VolumeFailed, "the volume cannot be reclaimed: "+reason
	}
}

// BeingDeleted marks a volume as being deleted.
func BeingDeleted(v *corev1.PersistentVolume) {
	v.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
}

// VolumeFinalizers sets the finalizers of a volume.
func VolumeFinalizers(names ...string) VolumeEdit {
	return func(v *corev1.PersistentVolume) { v.Finalizers = names }
}

// WithPolicy sets the reclaim policy of a volume.
func WithPolicy(policy corev1.PersistentVolumeReclaimPolicy) VolumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy }
}

// DeletedPolicy sets the reclaim policy Delete.
var DeletedPolicy = WithPolicy(corev1.PersistentVolumeReclaimDelete)

// OnHostPath puts a volume on a path of a node.
func OnHostPath(v *corev1.PersistentVolume) {
	v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/mnt"}
}

// RefersTo sets the claimRef.
func RefersTo(namespace, name string, uid types.UID) VolumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}
	}
}

// Reserved pre-binds a volume to FitClaim; Held binds it.
var (
	PreBound     = RefersTo("default", "data", "")
	BoundToClaim = RefersTo("default", "data", "uid-1")
)

// RefersToGone sets a claimRef to an earlier claim of the same name (L4), RefersToOther one to another claim (L5).
var (
	RefersToStale = RefersTo("default", "data", "uid-0")
	RefersToOther = RefersTo("default", "other", "uid-2")
)

// Sized sets the capacity of a volume.
func Sized(quantity string) VolumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.Capacity = Storage(quantity) }
}

// Offering sets the access modes of a volume.
func Offering(modes ...corev1.PersistentVolumeAccessMode) VolumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.AccessModes = modes }
}

// BlockMode makes a volume a block device.
var BlockMode = func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }

// OfClass sets the class of a volume.
func OfClass(name string) VolumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = name }
}

// Labelled gives a volume one label.
func Labelled(key, value string) VolumeEdit {
	return func(v *corev1.PersistentVolume) { v.Labels = map[string]string{key: value} }
}

// OnlyIn restricts the volume to the nodes of a zone.
func OnlyIn(zone string) VolumeEdit {
	return Affine(Term(Require1("zone", corev1.NodeSelectorOpIn, zone)))
}

// Affine restricts a volume to nodes that one of the terms selects.
func Affine(terms ...corev1.NodeSelectorTerm) VolumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

// Term returns a term that requires all of the expressions.
func Term(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: expressions}
}

// Require1 returns a requirement on one label or field.
func Require1(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

// NameOf returns the name of a volume; "" for nil.
func NameOf(volume *corev1.PersistentVolume) string {
	if volume == nil {
		return ""
	}
	return volume.Name
}
