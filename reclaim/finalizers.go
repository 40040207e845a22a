package reclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

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

// Finalizers returns the finalizers that the volume should have (rule R6). Those
// it keeps stay in their order; other people's are always kept. Nothing is added
// to a volume that is being deleted, which the API server refuses. Nothing changes
// for a volume that nobody is said to have made, or whose external provisioner
// looks after them itself. The slice returned is the caller's.
func Finalizers(volume *corev1.PersistentVolume, rules Rules) []string {
	finalizers := slices.Clone(volume.Finalizers)
	name := provisioner(volume)
	inTree := storageclass.InTree(name)
	switch {
	case rules.migrated(name):
		return without(finalizers, InTreeFinalizer)
	case !inTree && !rules.Deleters.Has(name):
		return finalizers
	case volume.DeletionTimestamp != nil:
		return ofDeleted(finalizers, volume.Spec.PersistentVolumeReclaimPolicy)
	case inTree:
		// A CSI driver had it while the provisioner was migrated, and no longer.
		finalizers = without(finalizers, ExternalFinalizer)
	}
	return byPolicy(finalizers, volume.Spec.PersistentVolumeReclaimPolicy)
}

// byPolicy leaves the finalizers alone under a policy it does not know.
func byPolicy(finalizers []string, policy corev1.PersistentVolumeReclaimPolicy) []string {
	switch policy {
	case corev1.PersistentVolumeReclaimDelete:
		if !slices.Contains(finalizers, InTreeFinalizer) {
			finalizers = append(finalizers, InTreeFinalizer)
		}
	case corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle:
		finalizers = without(finalizers, InTreeFinalizer)
	}
	return finalizers
}

// ofDeleted lets a volume that is being deleted go where its storage stays. One whose
// storage is still to be deleted keeps whatever keeps it until then.
func ofDeleted(finalizers []string, policy corev1.PersistentVolumeReclaimPolicy) []string {
	switch policy {
	case corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle:
		return WithoutStorage(finalizers)
	}
	return finalizers
}

// WithoutStorage returns the finalizers that a volume should have once its storage
// is deleted or is to stay for good: less the two that wait for that (rule R3). It
// modifies the slice that it is given.
func WithoutStorage(finalizers []string) []string {
	return without(without(finalizers, InTreeFinalizer), ExternalFinalizer)
}

func without(finalizers []string, unwanted string) []string {
	return slices.DeleteFunc(finalizers, func(finalizer string) bool { return finalizer == unwanted })
}
