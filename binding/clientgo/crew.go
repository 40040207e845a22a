package clientgo

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// crew is a controller, the queue of what it is to sync, and the workers.
//
// The queue has no rate limiter of its own: how long to wait after a failure is the controller's business, which
// counts failures by key (W6).
type crew struct {
	controller *binding.Controller
	queue      workqueue.TypedDelayingInterface[obj.Key]
	metrics    *metrics
	log        *slog.Logger
	unseen     unseen

	workers    int
	resync     time.Duration
	stopWithin time.Duration
}

func newCrew(r *Runner) *crew {
	c := &crew{
		queue:      workqueue.NewTypedDelayingQueue[obj.Key](),
		log:        r.logger(),
		workers:    cmp.Or(r.Workers, defaultWorkers),
		resync:     cmp.Or(r.Resync, defaultResync),
		stopWithin: cmp.Or(r.StopWithin, defaultStopWithin),
	}
	c.metrics = newMetrics(c.queue.Len)
	client := &Client{Clientset: r.Clientset, called: c.metrics.called}
	if c.resync > 0 {
		client.replied = c.unseen.note
	}
	c.controller = &binding.Controller{Client: client, Rules: r.Rules, Hooks: r.Hooks}
	return c
}

func (c *crew) add(keys ...obj.Key) {
	for _, key := range keys {
		c.queue.Add(key)
	}
}

// work syncs until the context ends. Syncs get the other one, which is cancelled only if they take too long to end.
func (c *crew) work(ctx, running context.Context, known caches) {
	syncing, cut := context.WithCancel(running)
	defer cut()
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() {
			for c.next(ctx, syncing) {
			}
		})
	}
	c.resyncUntil(ctx, known)
	c.queue.ShutDown()
	timer := time.AfterFunc(c.stopWithin, cut)
	defer timer.Stop()
	workers.Wait()
}

// caches are what the informers have shown.
type caches interface {
	objects() []obj.Object
	has(obj.Object) bool
}

// resyncUntil has all that the informers have shown rechecked from time to time until the context ends, and looks for what
// went unseen.
func (c *crew) resyncUntil(ctx context.Context, known caches) {
	if c.resync < 0 {
		<-ctx.Done()
		return
	}
	ticker := time.NewTicker(c.resync)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.checkUnseen(ctx, known.has)
			for _, object := range known.objects() {
				c.add(c.controller.Recheck(object)...)
			}
		}
	}
}

// next syncs one key. What is still queued when the context ends is left: the next start finds it again.
func (c *crew) next(ctx, syncing context.Context) bool {
	key, closed := c.queue.Get()
	if closed {
		return false
	}
	defer c.queue.Done(key)
	if ctx.Err() == nil {
		c.sync(syncing, key)
	}
	return true
}

// sync does what the result of a sync asks for.
func (c *crew) sync(ctx context.Context, key obj.Key) {
	result, err := c.controller.Sync(ctx, key)
	c.add(result.Next...)
	if result.After > 0 {
		c.queue.AddAfter(key, result.After)
	}
	c.metrics.synced(key, err)
	if err != nil {
		c.log.WarnContext(ctx, "sync failed", "key", key.String(), "error", err, "retry", result.After)
	}
}
