package binding_test

import (
	"context"
	"sync"
	"time"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// driver drives a controller from many goroutines, as an adapter does: one queue that holds a key once, delays that
// are obeyed, and watches that are delivered as they come.
type driver struct {
	server     *bindingtest.Server
	client     *bindingtest.Client
	controller *binding.Controller
	mu         sync.Mutex
	idle       *sync.Cond
	queue      []obj.Key
	queued     map[obj.Key]bool
	busy       int
	delayed    int // keys that come back after a time
	watches    []*bindingtest.Watch
	errs       []error
}

func newDriver(server *bindingtest.Server) *driver {
	client := server.NewClient("controller")
	c := &driver{server: server, client: client, controller: &binding.Controller{Client: client, Recorder: client}, queued: map[obj.Key]bool{}}
	c.idle = sync.NewCond(&c.mu)
	for _, kind := range bindingtest.Kinds() {
		c.watches = append(c.watches, server.Watch(kind))
	}
	return c
}

func (c *driver) add(keys []obj.Key) {
	for _, key := range keys {
		if !c.queued[key] {
			c.queued[key] = true
			c.queue = append(c.queue, key)
		}
	}
	c.idle.Broadcast()
}

func (c *driver) deliver() {
	for _, watch := range c.watches {
		for change, ok := watch.Next(); ok; change, ok = watch.Next() {
			if change.Type == bindingtest.Deleted {
				c.add(c.controller.ObserveDeleted(change.Object))
			} else {
				c.add(c.controller.Observe(change.Object))
			}
		}
	}
}

// addAfter adds a key after a time.
func (c *driver) addAfter(key obj.Key, after time.Duration) {
	c.delayed++
	time.AfterFunc(after, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.delayed--
		c.add([]obj.Key{key})
	})
}

// next returns a key to sync; false when no work is left.
func (c *driver) next() (obj.Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deliver()
	for len(c.queue) == 0 {
		if c.busy == 0 && c.delayed == 0 {
			return obj.Key{}, false
		}
		c.idle.Wait()
	}
	key := c.queue[0]
	c.queue = c.queue[1:]
	delete(c.queued, key)
	c.busy++
	return key, true
}

func (c *driver) done(key obj.Key, result binding.Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if err != nil {
		c.errs = append(c.errs, err)
	}
	c.deliver()
	c.add(result.Next)
	if result.After > 0 {
		c.addAfter(key, result.After)
	}
	c.idle.Broadcast()
}

func (c *driver) run(ctx context.Context, workers int) []error {
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for key, ok := c.next(); ok; key, ok = c.next() {
				result, err := c.controller.Sync(ctx, key)
				c.done(key, result, err)
			}
		})
	}
	wait.Wait()
	return c.errs
}
