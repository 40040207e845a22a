package extender

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// lookups has the informers' caches. Volumes and claims are looked up in those of Cluster, which have replies too.
type lookups struct {
	volumeStore, claimStore cache.Store

	nodes      corelisters.NodeLister
	pods       corelisters.PodLister
	classes    storagelisters.StorageClassLister
	drivers    storagelisters.CSIDriverLister
	capacities cache.Indexer
}

// byClass is the index of capacities.
const byClass = "storageClassName"

func classOfCapacity(object any) ([]string, error) {
	return []string{object.(*storagev1.CSIStorageCapacity).StorageClassName}, nil
}

var _ scheduling.View = &Cluster{}

// Volume looks up a volume.
func (c *Cluster) Volume(name string) (*corev1.PersistentVolume, decision.Source) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	volume, known := c.volumes[name]
	return volume, sourceOf(known)
}

// Claim looks up a claim.
func (c *Cluster) Claim(namespace, name string) (*corev1.PersistentVolumeClaim, decision.Source) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	claim, known := c.claims[obj.ClaimKey(namespace, name)]
	return claim, sourceOf(known)
}

func sourceOf(known bool) decision.Source {
	if known {
		return decision.FromCache
	}
	return decision.NotInCache
}

// Class looks up a class. A lister fails only by not finding.
func (c *Cluster) Class(name string) *storagev1.StorageClass {
	class, _ := c.classes.Get(name)
	return class
}

// CSIDriver looks up a driver.
func (c *Cluster) CSIDriver(name string) *storagev1.CSIDriver {
	driver, _ := c.drivers.Get(name)
	return driver
}

// CSIStorageCapacities returns those of the class.
func (c *Cluster) CSIStorageCapacities(class string) []*storagev1.CSIStorageCapacity {
	found, _ := c.capacities.ByIndex(byClass, class)
	capacities := make([]*storagev1.CSIStorageCapacity, len(found))
	for i := range found {
		capacities[i] = found[i].(*storagev1.CSIStorageCapacity)
	}
	return capacities
}
