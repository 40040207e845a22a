package extender

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// Cluster is a cache of a cluster, and of what was decided for pods that are being bound. Make one with Watch. It is safe
// for concurrent use.
type Cluster struct {
	lookups
	stop func()

	index   index.Index
	assumed scheduling.Assumptions

	mutex   sync.RWMutex
	volumes map[string]*corev1.PersistentVolume
	claims  map[obj.Key]*corev1.PersistentVolumeClaim
	next    chan struct{} // closed at the next change
}

func newCluster() *Cluster {
	return &Cluster{
		volumes: map[string]*corev1.PersistentVolume{},
		claims:  map[obj.Key]*corev1.PersistentVolumeClaim{},
		next:    make(chan struct{}),
	}
}

// Stop ends what Watch has started.
func (c *Cluster) Stop() { c.stop() }

// changed returns a channel that is closed at the next change. A waiter takes it before it looks.
func (c *Cluster) changed() <-chan struct{} {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	return c.next
}

// notify wakes the waiters. The caller holds the mutex.
func (c *Cluster) notify() {
	close(c.next)
	c.next = make(chan struct{})
}

// observe takes an object from an informer.
func (c *Cluster) observe(object any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		c.setVolume(o)
	case *corev1.PersistentVolumeClaim:
		c.setClaim(o)
	default:
		return // a pod: only its end matters to waiters
	}
	c.notify()
}

// wrote takes the server's reply to a write. What was deleted meanwhile stays deleted.
func (c *Cluster) wrote(object obj.Object) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		if known := c.volumes[o.Name]; known != nil && known.UID == o.UID {
			c.setVolume(o)
		}
	case *corev1.PersistentVolumeClaim:
		if known := c.claims[obj.KeyOf(o)]; known != nil && known.UID == o.UID {
			c.setClaim(o)
		}
	}
	c.notify()
}

func (c *Cluster) setVolume(volume *corev1.PersistentVolume) {
	if known := c.volumes[volume.Name]; known != nil && newer(known, volume) {
		return
	}
	c.volumes[volume.Name] = volume
	c.index.Set(volume)
}

func (c *Cluster) setClaim(claim *corev1.PersistentVolumeClaim) {
	key := obj.KeyOf(claim)
	if known := c.claims[key]; known != nil && newer(known, claim) {
		return
	}
	c.claims[key] = claim
	c.index.SetClaim(claim)
}

// forget takes the last state of an object that is gone, from an informer.
func (c *Cluster) forget(object any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		if known := c.volumes[o.Name]; known != nil && known.UID == o.UID {
			delete(c.volumes, o.Name)
			c.index.Delete(o.Name)
		}
	case *corev1.PersistentVolumeClaim:
		if known := c.claims[obj.KeyOf(o)]; known != nil && known.UID == o.UID {
			delete(c.claims, obj.KeyOf(o))
			c.index.DeleteClaim(obj.KeyOf(o))
		}
	}
	c.notify()
}

// newer reports whether the known object is a later version of the one seen.
func newer(known, seen obj.Object) bool {
	return known.GetUID() == seen.GetUID() && obj.Older(seen, known)
}
