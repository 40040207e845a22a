package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
)

// PairView looks up claims and their volumes. Every View is one, and so is a Snapshot.
type PairView interface {
	// Volume looks up a volume by name.
	Volume(name string) (*corev1.PersistentVolume, Evidence)
	// Claim looks up a claim.
	Claim(namespace, name string) (*corev1.PersistentVolumeClaim, Evidence)
}

// PodView is what planning a pod may know of the cluster beside the volumes to choose from. Everything in it
// is read only. PodSnapshot implements it on plain lists.
type PodView interface {
	PairView
	// Class looks up a class; nil if it is not known.
	Class(name string) *storagev1.StorageClass
	// CSIDriver looks up a driver by the name of its provisioner; nil if there is none, or if the provisioner
	// is no CSI driver.
	CSIDriver(name string) *storagev1.CSIDriver
	// CSIStorageCapacities are those whose storageClassName is the class, in any order.
	CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity
}

// PodSnapshot is a PodView on plain lists, in any order.
type PodSnapshot struct {
	Snapshot
	CSIDrivers []*storagev1.CSIDriver
	Capacities []*storagev1.CSIStorageCapacity
}

var _ PodView = PodSnapshot{}

// CSIDriver looks up a driver.
func (s PodSnapshot) CSIDriver(name string) *storagev1.CSIDriver {
	for _, driver := range s.CSIDrivers {
		if driver.Name == name {
			return driver
		}
	}
	return nil
}

// CSIStorageCapacities are the capacities of a class.
func (s PodSnapshot) CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity {
	var ofClass []*storagev1.CSIStorageCapacity
	for _, capacity := range s.Capacities {
		if capacity.StorageClassName == class {
			ofClass = append(ofClass, capacity)
		}
	}
	return ofClass
}

// Index is a new Index of the snapshot's volumes and claims.
func (s PodSnapshot) Index() *index.Index {
	index := &index.Index{}
	index.Load(s.Volumes...)
	for _, claim := range s.Claims {
		index.SetClaim(claim)
	}
	return index
}
