package bindingtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// DriverOptions say how a Driver's controller works. The zero value is useful.
type DriverOptions struct {
	// Name is the name of its client in the log; empty: "controller".
	Name string
	// BindingOptions are those of the controller. Without protection the finalizers that the server puts on claims
	// and volumes stay, as on a cluster where nobody takes them off.
	BindingOptions decision.Options
	// Hooks are those of the controller, such as Storage.Hooks.
	Hooks hooks.Set
	// Held are kinds whose changes the controller is not told of until they are released.
	Held []obj.Kind
}

// Driver runs a controller on a server without goroutines and without sleeping, by the server's clock. It is
// what a work queue and shared informers are in production, but every step is taken when a test says
// so. It is not safe for concurrent use.
type Driver struct {
	// Client is the one the controller uses; faults go here.
	Client *Client
	// Controller is the one being driven. Restart replaces it.
	Controller *binding.Controller

	server   *Server
	rules    decision.Options
	hooks    hooks.Set
	restarts int
	watches  []*Watch
	held     map[obj.Kind]bool
	cache    map[obj.Key]obj.Object // what the controller was told of last
	queue    queue
	delayed  map[obj.Key]time.Duration
}

// NewDriver starts a controller on the server. Nothing happens until Settle.
func NewDriver(server *Server, options DriverOptions) *Driver {
	d := &Driver{
		Client: server.NewClient(cmp.Or(options.Name, "controller")),
		server: server,
		rules:  options.BindingOptions,
		hooks:  options.Hooks,
		held:   map[obj.Kind]bool{},
	}
	d.Hold(options.Held...)
	for _, storage := range storagesIn(d.hooks) {
		storage.Attach(server)
	}
	d.Restart()
	return d
}

// Restart replaces the controller by one that knows nothing, as after a crash: all objects will be told
// to it anew. Kinds that are held stay held, and the hooks are the same.
func (d *Driver) Restart() {
	d.Client.Restart()
	for _, storage := range storagesIn(d.hooks) {
		storage.Restarted()
	}
	d.restarts++
	rules := d.rules
	rules.Identity = cmp.Or(rules.Identity, fmt.Sprintf("%s-%d", d.Client.name, d.restarts)) // what is random otherwise
	d.Controller = &binding.Controller{Client: d.Client, Recorder: d.Client, Options: rules, Hooks: d.hooks, Now: d.server.Now}
	d.queue, d.delayed, d.watches = queue{}, map[obj.Key]time.Duration{}, nil
	d.cache = map[obj.Key]obj.Object{}
	for _, kind := range Kinds() {
		d.watches = append(d.watches, d.server.Watch(kind))
	}
}

// Hold keeps changes of these kinds from the controller, so that its cache of them lags.
func (d *Driver) Hold(kinds ...obj.Kind) {
	for _, kind := range kinds {
		d.held[kind] = true
	}
}

// Release ends Hold for these kinds. What was kept is delivered by the next Settle.
func (d *Driver) Release(kinds ...obj.Kind) {
	for _, kind := range kinds {
		delete(d.held, kind)
	}
}

// Deliver tells the controller of the next n changes of a kind, held or not, and returns how many there
// were. What is to be synced for them waits for Settle.
func (d *Driver) Deliver(kind obj.Kind, n int) int {
	for _, watch := range d.watches {
		if watch.kind != kind {
			continue
		}
		for i := range n {
			if !d.tell(watch) {
				return i
			}
		}
	}
	return n
}

// deliver tells the controller of all changes that are not held, in the order in which they happened.
func (d *Driver) deliver() {
	for {
		var next *Watch
		best := 0
		for _, watch := range d.watches {
			change, ok := watch.peek()
			if ok && !d.held[watch.kind] && (next == nil || change.serial < best) {
				next, best = watch, change.serial
			}
		}
		if next == nil {
			return
		}
		d.tell(next)
	}
}

func (d *Driver) tell(watch *Watch) bool {
	change, ok := watch.Next()
	if !ok {
		return false
	}
	key, _ := KeyOf(change.Object) // the server stores no other kinds
	if change.Type == Deleted {
		delete(d.cache, key)
		d.queue.add(d.Controller.ObserveDeleted(change.Object)...)
	} else {
		d.cache[key] = change.Object
		d.queue.add(d.Controller.Observe(change.Object)...)
	}
	return true
}

// Delay is a key that is to be synced again after some time.
type Delay struct {
	Key   obj.Key
	After time.Duration
}

// Delayed lists the keys that are to be synced again after some time, soonest first.
func (d *Driver) Delayed() []Delay {
	delays := make([]Delay, 0, len(d.delayed))
	for key, after := range d.delayed {
		delays = append(delays, Delay{key, after})
	}
	slices.SortFunc(delays, func(a, b Delay) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return delays
}

// AdvanceClock lets all delays pass, on the server's clock too, and settles.
func (d *Driver) AdvanceClock(ctx context.Context) error {
	for _, delay := range d.Delayed() {
		d.queue.add(delay.Key)
	}
	if delays := d.Delayed(); len(delays) > 0 {
		d.server.advance(delays[len(delays)-1].After)
	}
	return d.Settle(ctx)
}

// Resync has every volume and claim that the controller was told of rechecked, and synced by the next Settle, as the
// periodic resync of an informer does. Where all is settled, that reads and writes nothing and sends no event (X8).
func (d *Driver) Resync() {
	for _, key := range slices.SortedFunc(maps.Keys(d.cache), compareKeys) {
		if key.Kind == obj.KindVolume || key.Kind == obj.KindClaim {
			d.queue.add(d.Controller.Recheck(d.cache[key])...)
		}
	}
	d.queue.add(d.Controller.RecheckKnown(func(object obj.Object) bool {
		key, _ := KeyOf(object)
		return d.cache[key] != nil && d.cache[key].GetUID() == object.GetUID()
	})...)
}

// ObserveRestore tells the controller that the server went back in time, as a list does that has an older resourceVersion than
// the one before. What is to be synced for it waits for Settle.
func (d *Driver) ObserveRestore() {
	d.queue.add(d.Controller.ObserveRestore()...)
}

// queue holds keys first in, first out, none twice.
type queue struct {
	keys []obj.Key
	in   map[obj.Key]bool
}

func (q *queue) add(keys ...obj.Key) {
	if q.in == nil {
		q.in = map[obj.Key]bool{}
	}
	for _, key := range keys {
		if !q.in[key] {
			q.in[key] = true
			q.keys = append(q.keys, key)
		}
	}
}

func (q *queue) pop() (obj.Key, bool) {
	if len(q.keys) == 0 {
		return obj.Key{}, false
	}
	key := q.keys[0]
	q.keys = q.keys[1:]
	delete(q.in, key)
	return key, true
}
