package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
)

// ObjectView looks up claims and volumes. A View is one, and so is every decision.View.
type ObjectView interface {
	// Volume looks up a volume by name.
	Volume(name string) (*corev1.PersistentVolume, decision.Source)
	// Claim looks up a claim.
	Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source)
}

// View is what a plan may know of the cluster beside the volumes to choose from. Everything in it is read only. Snapshot
// implements it on plain lists.
type View interface {
	ObjectView
	// Class looks up a class; nil if it is not known.
	Class(name string) *storagev1.StorageClass
	// CSIDriver looks up a driver by the name of its provisioner; nil if there is none, or if the provisioner
	// is no CSI driver.
	CSIDriver(name string) *storagev1.CSIDriver
	// CSIStorageCapacities returns those whose storageClassName is the class, in any order.
	CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity
}

// Snapshot is a View on plain lists, in any order.
type Snapshot struct {
	decision.Snapshot
	CSIDrivers []*storagev1.CSIDriver
	Capacities []*storagev1.CSIStorageCapacity
}

var _ View = Snapshot{}

// CSIDriver implements View.
func (s Snapshot) CSIDriver(name string) *storagev1.CSIDriver {
	for _, driver := range s.CSIDrivers {
		if driver.Name == name {
			return driver
		}
	}
	return nil
}

// CSIStorageCapacities implements View.
func (s Snapshot) CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity {
	var ofClass []*storagev1.CSIStorageCapacity
	for _, capacity := range s.Capacities {
		if capacity.StorageClassName == class {
			ofClass = append(ofClass, capacity)
		}
	}
	return ofClass
}

// Index returns a new Index of the snapshot's volumes and claims.
func (s Snapshot) Index() *index.Index {
	index := &index.Index{}
	index.Load(s.Volumes...)
	for _, claim := range s.Claims {
		index.SetClaim(claim)
	}
	return index
}
