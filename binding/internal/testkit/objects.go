package testkit

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// The annotations and finalizers of the contract, spelled out: they are an interface.
const (
	BoundBy         = "pv.kubernetes.io/bound-by-controller"
	Completed       = "pv.kubernetes.io/bind-completed"
	ProvisionedBy   = "pv.kubernetes.io/provisioned-by"
	MigratedTo      = "pv.kubernetes.io/migrated-to"
	Provisioner     = "volume.kubernetes.io/storage-provisioner"
	BetaProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	SelectedNode    = "volume.kubernetes.io/selected-node"
	BetaClass       = "volume.beta.kubernetes.io/storage-class"
	PreResize       = "volume.alpha.kubernetes.io/pre-resize-capacity"

	InTreeFinalizer   = "kubernetes.io/pv-controller"
	ExternalFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
	ClaimProtection   = "kubernetes.io/pvc-protection"
	VolumeProtection  = "kubernetes.io/pv-protection"

	ProvisioningFinalizer = "pvbind.github.io/provisioning"
)

// Own is the provisioner whose hooks Hooked registers.
const Own = "own.example.com"

// Ours is the provisioner of the tests that have a storage.
const Ours = "example.com/dirs"

// Other is another provisioner than Ours.
const Other = "example.com/other"

// ClassOf returns a class with a provisioner.
func ClassOf(name, provisioner string, edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	class.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	for _, edit := range edits {
		edit(class)
	}
	return class
}

// ClassWith returns the class fast with that binding mode.
func ClassWith(mode *storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, VolumeBindingMode: mode}
}

// DelayedClass sets the binding mode WaitForFirstConsumer.
func WaitsForFirstConsumer(c *storagev1.StorageClass) {
	c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
}

// DefaultClass marks a class as the default.
func DefaultClass(c *storagev1.StorageClass) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, "storageclass.kubernetes.io/is-default-class", "true")
}

// DirsClass returns the class dirs of a provisioner, with a reclaim policy.
func DirsClass(provisioner string, policy corev1.PersistentVolumeReclaimPolicy, edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := ClassOf("dirs", provisioner, edits...)
	class.ReclaimPolicy = new(policy)
	return class
}

// NodeIn returns the node of a zone.
func NodeIn(zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{"zone": zone}}}
}

// PodUsing returns a pod that uses default/data.
func PodUsing(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := bindingtest.Pod("default", name, "", "data")
	pod.UID = "uid-of-pod"
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// Scheduled has a pod run on a node.
func Scheduled(p *corev1.Pod) { p.Spec.NodeName = "node" }

// PodPhase sets the phase of a pod.
func PodPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

// AttachedTo returns the attachment of volume a to a node, as a server has it.
func AttachedTo(node string, edits ...func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	attachment := bindingtest.Attachment("a", node)
	attachment.UID, attachment.ResourceVersion = types.UID("uid-of-"+attachment.Name), "5"
	for _, edit := range edits {
		edit(attachment)
	}
	return attachment
}

// Inline makes an attachment one of an inline volume.
func Inline(a *storagev1.VolumeAttachment) {
	a.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{}}
}

// OfVolume makes an attachment one of another volume.
func OfVolume(name string) func(*storagev1.VolumeAttachment) {
	return func(a *storagev1.VolumeAttachment) { a.Spec.Source.PersistentVolumeName = &name }
}

// Storage returns a list of resources with that much storage.
func Storage(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(quantity)}
}

// Modes returns the access modes that the letters stand for: Once, Read, Many, oncePod.
func Modes(letters string) []corev1.PersistentVolumeAccessMode {
	var list []corev1.PersistentVolumeAccessMode
	for _, letter := range letters {
		list = append(list, map[rune]corev1.PersistentVolumeAccessMode{'O': corev1.ReadWriteOnce,
			'R': corev1.ReadOnlyMany, 'M': corev1.ReadWriteMany, 'P': corev1.ReadWriteOncePod}[letter])
	}
	return list
}

// At gives an object another resourceVersion.
func At[T obj.Object](version string, object T) T {
	object.SetResourceVersion(version)
	return object
}
