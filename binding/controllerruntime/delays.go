package controllerruntime

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/pvbind/pvbind/binding/obj"
)

var _ workqueue.TypedRateLimiter[obj.Key] = (*delays)(nil)

// delays is a rate limiter that says what the binding.Controller has said, which counts failures itself (W6).
type delays struct {
	mu sync.Mutex
	by map[obj.Key]time.Duration
}

func (d *delays) set(key obj.Key, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[obj.Key]time.Duration{}
	}
	d.by[key] = after
}

// When is how long to wait before the key is synced again.
func (d *delays) When(key obj.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.by[key]
}

// Forget is called when a sync has succeeded.
func (d *delays) Forget(key obj.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.by, key)
}

// NumRequeues is of no use to anyone here.
func (d *delays) NumRequeues(obj.Key) int { return 0 }
