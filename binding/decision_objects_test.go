package binding_test

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// The annotations and finalizers of the contract, spelled out: they are an interface.
const (
	boundBy         = "pv.kubernetes.io/bound-by-controller"
	completed       = "pv.kubernetes.io/bind-completed"
	provisionedBy   = "pv.kubernetes.io/provisioned-by"
	migratedTo      = "pv.kubernetes.io/migrated-to"
	provisioner     = "volume.kubernetes.io/storage-provisioner"
	betaProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	selectedNode    = "volume.kubernetes.io/selected-node"
	betaClass       = "volume.beta.kubernetes.io/storage-class"
	preResize       = "volume.alpha.kubernetes.io/pre-resize-capacity"

	inTreeFinalizer   = "kubernetes.io/pv-controller"
	externalFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
	claimProtection   = "kubernetes.io/pvc-protection"
	volumeProtection  = "kubernetes.io/pv-protection"

	provisioningFinalizer = "pvbind.github.io/provisioning"
)

var dataKey = obj.ClaimKey("default", "data")

// knownClaim is default/data as a server has it, Pending and of no class.
func knownClaim(edits ...claimEdit) *corev1.PersistentVolumeClaim {
	stored := func(c *corev1.PersistentVolumeClaim) {
		c.ResourceVersion = "7"
		c.Spec.StorageClassName = new("")
		c.Status.Phase = corev1.ClaimPending
	}
	return fitClaim(append([]claimEdit{stored}, edits...)...)
}

// knownVolume fits knownClaim, as a server has it: Available.
func knownVolume(name string, edits ...volumeEdit) *corev1.PersistentVolume {
	stored := func(v *corev1.PersistentVolume) {
		v.UID = "uid-of-volume"
		v.ResourceVersion = "8"
		v.Spec.StorageClassName = ""
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	return fitVolume(name, append([]volumeEdit{stored}, edits...)...)
}

func naming(volume string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

func claimNote(key, value string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) }
}

func volumeNote(key, value string) volumeEdit {
	return func(v *corev1.PersistentVolume) { metav1.SetMetaDataAnnotation(&v.ObjectMeta, key, value) }
}

func claimPhase(phase corev1.PersistentVolumeClaimPhase) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = phase }
}

// askingClass names a class in the claim; nil: it says nothing of one.
func askingClass(name *string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = name }
}

func claimBeingDeleted(c *corev1.PersistentVolumeClaim) {
	c.DeletionTimestamp = new(metav1.Unix(1_700_000_000, 0))
}

func claimFinalizers(names ...string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Finalizers = names }
}

func volumeFinalizers(names ...string) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Finalizers = names }
}

func withPolicy(policy corev1.PersistentVolumeReclaimPolicy) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy }
}

func onHostPath(v *corev1.PersistentVolume) {
	v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/mnt"}
}

// failedFor makes a volume Failed, and says why.
func failedFor(reason string) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		v.Status.Phase, v.Status.Message = corev1.VolumeFailed, "the volume cannot be reclaimed: "+reason
	}
}

// boundTo makes a claim one that is bound to the volume.
func boundTo(volume string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = volume
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, completed, "yes")
		c.Status.Phase = corev1.ClaimBound
		c.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		c.Status.Capacity = storage("10Gi")
	}
}

// gone is the claimRef to an earlier claim of the same name (L4), other to another claim (L5).
var (
	refersToGone  = refersTo("default", "data", "uid-0")
	refersToOther = refersTo("default", "other", "uid-2")
)

// classOf is a class with a provisioner.
func classOf(name, provisioner string, edits ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	class.VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
	for _, edit := range edits {
		edit(class)
	}
	return class
}

func delayedClass(c *storagev1.StorageClass) {
	c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
}

func defaultClass(c *storagev1.StorageClass) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, "storageclass.kubernetes.io/is-default-class", "true")
}

// podUsing names default/data in a volume.
func podUsing(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := bindingtest.Pod("default", name, "", "data")
	pod.UID = "uid-of-pod"
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func scheduled(p *corev1.Pod) { p.Spec.NodeName = "node" }

func podPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
