package reclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// Finalizers on volumes that are to be deleted with their storage.
const (
	// InTreeFinalizer keeps a volume until this controller has deleted its
	// storage.
	InTreeFinalizer = "kubernetes.io/pv-controller"
	// ExternalFinalizer keeps a volume until its external provisioner has
	// deleted its storage.
	ExternalFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

// Finalizers that protect objects in use.
const (
	// ClaimProtection keeps a claim while a pod uses it.
	ClaimProtection = "kubernetes.io/pvc-protection"
	// VolumeProtection keeps a volume while it is bound.
	VolumeProtection = "kubernetes.io/pv-protection"
)

// Finalizers returns the finalizers that the volume should have. Those it keeps stay
// in their order, and those of others always stay. Nothing is added to a volume that
// is being deleted, for the API server would reject that, and nothing is removed from
// it while a deleter or recycler may be at work on its storage (R8). For a volume that
// no provisioner made, or one whose external provisioner looks after them itself,
// nothing changes but that InTreeFinalizer does not keep one that is being deleted and
// whose storage stays. The caller may change the slice that is returned (R6).
func Finalizers(volume *corev1.PersistentVolume, options Options) []string {
	finalizers := slices.Clone(volume.Finalizers)
	name, policy := provisioner(volume), volume.Spec.PersistentVolumeReclaimPolicy
	inTree := storageclass.InTree(name)
	ours := inTree || options.Deleters.Has(name)
	storageStays := policy == corev1.PersistentVolumeReclaimRetain || policy == corev1.PersistentVolumeReclaimRecycle
	announcement, announced := AnnouncementOf(volume)
	switch {
	case volume.DeletionTimestamp != nil && announced && !announcement.Done:
		return finalizers // what keeps it while its storage may be deleted or scrubbed
	case options.Migrations.Driver(name) != "":
		return without(finalizers, InTreeFinalizer)
	case !ours && volume.DeletionTimestamp != nil && storageStays: // whoever made it ours does not say so any more
		return without(finalizers, InTreeFinalizer)
	case !ours:
		return finalizers
	case volume.DeletionTimestamp != nil && storageStays:
		return WithoutStorage(finalizers)
	case volume.DeletionTimestamp != nil:
		return finalizers // whatever keeps it until its storage is deleted
	case inTree:
		// A CSI driver had it while the provisioner was migrated, and no longer.
		finalizers = without(finalizers, ExternalFinalizer)
	}
	switch {
	case storageStays:
		return without(finalizers, InTreeFinalizer)
	case policy == corev1.PersistentVolumeReclaimDelete && !slices.Contains(finalizers, InTreeFinalizer):
		return append(finalizers, InTreeFinalizer)
	}
	return finalizers // an unknown policy changes nothing
}

// WithoutStorage returns the finalizers that a volume should have once its storage
// is deleted or is to stay for good: without InTreeFinalizer and ExternalFinalizer.
// It modifies the slice that it is given (R3).
func WithoutStorage(finalizers []string) []string {
	return without(without(finalizers, InTreeFinalizer), ExternalFinalizer)
}

func without(finalizers []string, unwanted string) []string {
	return slices.DeleteFunc(finalizers, func(finalizer string) bool { return finalizer == unwanted })
}

// NeedsProtection reports whether the finalizer is to be added to the object: it
// is missing, and the object is not being deleted (F1).
func NeedsProtection(object metav1.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() == nil && !slices.Contains(object.GetFinalizers(), finalizer)
}

// ClaimReleasable reports whether ClaimProtection may be removed from the claim: it
// is being deleted, has the finalizer, and none of the pods uses it. The pods must be
// a live list of those in the claim's namespace: a pod missing from a cache may be
// about to start. Pods that do not name the claim may be left out (F2).
func ClaimReleasable(claim *corev1.PersistentVolumeClaim, pods []*corev1.Pod) bool {
	return heldBy(ClaimProtection, claim) &&
		!slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return UsesClaim(pod, claim) })
}

// VolumeReleasable reports whether the finalizer, VolumeProtection or
// AnnouncementFinalizer, may be removed from the volume: it is being deleted, has the
// finalizer, and is not Bound (F3). Whether what was announced may go on, the volume
// does not say.
func VolumeReleasable(volume *corev1.PersistentVolume, finalizer string) bool {
	return heldBy(finalizer, volume) && volume.Status.Phase != corev1.VolumeBound
}

// heldBy reports whether the object is being deleted and has the finalizer.
func heldBy(finalizer string, object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), finalizer)
}
