package testkit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// ClaimEdit and VolumeEdit change an object that a test makes.
type (
	ClaimEdit  func(*corev1.PersistentVolumeClaim)
	VolumeEdit func(*corev1.PersistentVolume)
)

// DataKey is the key of the claim of FitClaim.
var DataKey = obj.ClaimKey("default", "data")

// FitClaim returns the claim default/data, of class fast, which requests 10Gi, ReadWriteOnce.
func FitClaim(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid-1"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = Storage("10Gi")
	claim.Spec.StorageClassName = new("fast")
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

// KnownClaim returns default/data as a server has it: Pending, and of no class.
func KnownClaim(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
	stored := func(c *corev1.PersistentVolumeClaim) {
		c.ResourceVersion = "7"
		c.Spec.StorageClassName = new("")
		c.Status.Phase = corev1.ClaimPending
	}
	return FitClaim(append([]ClaimEdit{stored}, edits...)...)
}

// ProvisioningClaim returns a claim of class fast with all that Own requires before it is run.
func ProvisioningClaim(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
	asks := []ClaimEdit{RequestingClass(new("fast")), ClaimNote(Provisioner, Own), ClaimNote(BetaProvisioner, Own), ClaimFinalizers(ProvisioningFinalizer)}
	return KnownClaim(append(asks, edits...)...)
}

// Owning returns the claim of that name, Bound to the volume.
func Owning(claim obj.Key, volume string) *corev1.PersistentVolumeClaim {
	return FitClaim(func(c *corev1.PersistentVolumeClaim) { c.Namespace, c.Name = claim.Namespace, claim.Name }, BoundTo(volume))
}

// ExampleClaim returns a claim that requests a volume of class fast.
func ExampleClaim(request string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "0c2f"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(request)}},
			StorageClassName: new("fast"),
		},
	}
}

// Naming has a claim name the volume.
func Naming(volume string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

// Named gives a claim another name and UID.
func Named(name string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = name, "uid-2" }
}

// OfUID gives a claim another UID.
func OfUID(uid types.UID) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.UID = uid }
}

// BoundTo makes a claim Bound to the volume.
func BoundTo(volume string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = volume
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, Completed, "yes")
		c.Status.Phase = corev1.ClaimBound
		c.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Status.Capacity = Storage("10Gi")
	}
}

// ClaimNote annotates a claim.
func ClaimNote(key, value string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) }
}

// WithoutNote takes an annotation off a claim.
func WithoutNote(annotation string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, annotation) }
}

// PlacedOn has the scheduler choose the node for a claim.
func PlacedOn(name string) ClaimEdit { return ClaimNote(SelectedNode, name) }

// ClaimPhase sets the phase of a claim.
func ClaimPhase(phase corev1.PersistentVolumeClaimPhase) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = phase }
}

// Lost makes a claim Lost.
var Lost = func(c *corev1.PersistentVolumeClaim) {
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}
}

// ClaimBeingDeleted marks a claim as being deleted.
func ClaimBeingDeleted(c *corev1.PersistentVolumeClaim) {
	c.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
}

// ClaimFinalizers sets the finalizers of a claim.
func ClaimFinalizers(names ...string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Finalizers = names }
}

// Asking sets the size that a claim requests.
func Requesting(quantity string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = Storage(quantity) }
}

// AskingModes sets the access modes that a claim requests.
func RequestingModes(modes ...corev1.PersistentVolumeAccessMode) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = modes }
}

// AskingClass sets the class of a claim; nil leaves it out.
func RequestingClass(name *string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = name }
}

// AskingLabel sets a selector with one label.
func RequestingLabel(key, value string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

// MalformedSelector sets a selector with an operator that does not exist.
func MalformedSelector(c *corev1.PersistentVolumeClaim) {
	c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Perhaps"}}}
}
