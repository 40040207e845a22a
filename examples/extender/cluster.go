package extender

import (
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

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

	mutex    sync.RWMutex
	volumes  map[string]*corev1.PersistentVolume
	claims   map[obj.Key]*corev1.PersistentVolumeClaim
	restores int           // how often the server went back in time
	next     chan struct{} // closed at the next change
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

// observe takes an object from an informer, unless a reply has shown a newer version.
func (c *Cluster) observe(object any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.known(object); known == nil || !newer(known, object.(obj.Object)) {
		c.put(object)
	}
	if _, pod := object.(*corev1.Pod); !pod { // of a pod only the end matters to waiters
		c.notify()
	}
}

// observeBack takes an older version of an object from an informer, which shows one only if the server went back in time.
func (c *Cluster) observeBack(object any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.put(object)
	c.notify()
}

// era returns how often the server went back in time.
func (c *Cluster) era() int {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	return c.restores
}

// wrote takes the server's reply to a request that was made in that era. What was deleted meanwhile stays deleted, and what was
// written before the server went back is not so any more.
func (c *Cluster) wrote(object obj.Object, era int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.known(object); era == c.restores && known != nil && known.GetUID() == object.GetUID() && !newer(known, object) {
		c.put(object)
	}
	c.notify()
}

// serverWentBack forgets what replies alone have shown, for what was written since the backup is lost. The informer that has
// noticed it lists anew after that.
func (c *Cluster) serverWentBack(kind string, err error) {
	slog.Warn("the server went back in time; all is listed anew", "kind", kind, "error", err)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.restores++
	for _, volume := range c.volumes {
		c.restore(c.volumeStore, volume)
	}
	for _, claim := range c.claims {
		c.restore(c.claimStore, claim)
	}
	c.notify()
}

// restore puts what an informer has of an object in place of what is known.
func (c *Cluster) restore(informed cache.Store, known obj.Object) {
	if object, exists, _ := informed.Get(known); exists {
		c.put(object)
	} else {
		c.drop(known)
	}
}

// known returns what is known of a volume or claim of that name; nil if there is none.
func (c *Cluster) known(object any) obj.Object {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		if known, ok := c.volumes[o.Name]; ok {
			return known
		}
	case *corev1.PersistentVolumeClaim:
		if known, ok := c.claims[obj.KeyOf(o)]; ok {
			return known
		}
	}
	return nil
}

// put stores a volume or a claim.
func (c *Cluster) put(object any) {
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		c.volumes[o.Name] = o
		c.index.Set(o)
	case *corev1.PersistentVolumeClaim:
		c.claims[obj.KeyOf(o)] = o
		c.index.SetClaim(o)
	}
}

// forget takes the last state of an object that is gone, from an informer.
func (c *Cluster) forget(object any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.drop(object)
	c.notify()
}

// drop removes a volume or a claim, unless another has its name by now.
func (c *Cluster) drop(object any) {
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
}

// newer reports whether the known object is a later version of the one seen.
func newer(known, seen obj.Object) bool {
	return known.GetUID() == seen.GetUID() && obj.Older(seen, known)
}
