package bindingtest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// SettleOn does on any API server what a cluster would have done by now: it binds claims, has storage made and deleted, places
// pods, releases volumes, and removes the protection finalizers from what nobody uses. It goes on until there is nothing left to
// do, and returns what is not bound or not placed, and why.
//
// It waits for nothing: what failed, or asked to be called again later, is tried again at once, five times. It returns the errors
// that remain, joined; an *UnsettledError if there is no end to it; the error of a list, and that of the context, at once.
//
// What a fake leaves out of an object, and a server would not, is written first: the UID, which distinguishes a claim from its
// successor of the same name, the defaults (SetDefaults), and the phase Pending.
//
// Pods are placed by their volumes, their node selector and affinity, and whether the node is cordoned; of several nodes by Score,
// then by the fewest pods, then by name. Resources, taints and other pods do not count. Where a test has set a pod's nodeName, its
// claims are bound for that node, which need not exist. Pods without claims are left alone.
//
// The claims of generic ephemeral volumes are made. Nothing is collected as garbage: see Server.CollectGarbage.
func SettleOn(ctx context.Context, api API, options SettleOptions) (Outcome, error) {
	s := newSettlement(api, options)
	for {
		wrote, err := s.round(ctx)
		switch {
		case err != nil:
			return s.outcome(), err
		case !wrote && !s.again:
			return s.outcome(), s.remaining()
		}
	}
}

// settlement is one run of SettleOn.
type settlement struct {
	api        *watchedAPI
	options    SettleOptions
	storage    *Storage
	recorder   binding.Recorder // nil if the server takes no events
	controller *binding.Controller

	world    *world                 // as of this round
	known    map[obj.Key]obj.Object // to the controller, as listed
	queue    queue
	syncs    map[obj.Key]int
	tries    map[obj.Key]int
	again    bool              // something failed that is to be tried again
	failures map[obj.Key]error // of syncs
	undone   map[obj.Key]error // what else failed in this round
	pods     scheduler
	warnings map[obj.Key][]string // the messages of warnings about each object, each once
}

func newSettlement(api API, options SettleOptions) *settlement {
	s := &settlement{
		api:      newWatchedAPI(api),
		options:  options,
		storage:  cmp.Or(options.Storage, NewStorage()),
		known:    map[obj.Key]obj.Object{},
		syncs:    map[obj.Key]int{},
		tries:    map[obj.Key]int{},
		failures: map[obj.Key]error{},
		pods:     scheduler{chosen: map[obj.Key]string{}, selected: map[obj.Key]int{}},
		warnings: map[obj.Key][]string{},
	}
	s.recorder, _ = api.(binding.Recorder)
	// Each call of SettleOn is another controller, and none leaves a call of a hook behind: the next one need not wait for that.
	s.options.Binding.Identity = cmp.Or(options.Binding.Identity, "bindingtest.SettleOn")
	s.controller = &binding.Controller{Client: s.api, Recorder: s, Options: s.options.Binding, Hooks: options.Hooks, Now: clockOf(api)}
	for _, storage := range append(storagesIn(options.Hooks), s.storage) {
		storage.Restarted()
		if memory, ok := api.(interface{ itself() *Server }); ok {
			storage.Attach(memory.itself())
		}
	}
	return s
}

// clockOf returns the clock of a server in memory; nil for any other.
func clockOf(api API) func() time.Time {
	if clock, ok := api.(interface{ Now() time.Time }); ok {
		return clock.Now
	}
	return nil
}

// round reads everything once and lets each part of the cluster do what it can do now. It reports whether anything was written.
func (s *settlement) round(ctx context.Context) (wrote bool, err error) {
	s.again, s.api.wrote, s.undone = false, false, map[obj.Key]error{}
	objects, err := s.list(ctx)
	if err != nil {
		return false, err
	}
	s.world = newWorld()
	for i, object := range objects {
		objects[i] = s.complete(ctx, object)
	}
	s.observe(objects)
	s.makeEphemeralClaims(ctx)
	s.placePods(ctx)
	s.playDrivers(ctx)
	return s.api.wrote, s.sync(ctx)
}

func (s *settlement) list(ctx context.Context) ([]obj.Object, error) {
	var all []obj.Object
	for _, kind := range Kinds() {
		objects, err := s.api.List(ctx, kind, "")
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// observe tells the controller of what there is, and of what is gone.
func (s *settlement) observe(objects []obj.Object) {
	gone := s.known
	s.known = map[obj.Key]obj.Object{}
	for _, object := range objects {
		s.note(object)
	}
	for _, key := range slices.SortedFunc(maps.Keys(gone), compareKeys) {
		if s.known[key] == nil {
			s.queue.add(s.controller.ObserveDeleted(gone[key])...)
		}
	}
}

// note takes an object as the server has it now.
func (s *settlement) note(object obj.Object) {
	if key, err := KeyOf(object); err == nil {
		s.known[key] = object
		s.world.put(object)
		s.queue.add(s.controller.Observe(object)...)
	}
}

// sync runs the controller until idle.
func (s *settlement) sync(ctx context.Context) error {
	for {
		if err := cmp.Or(ctx.Err(), s.api.unsettled); err != nil {
			return err
		}
		key, ok := s.queue.pop()
		if !ok {
			return nil
		}
		result, err := s.controller.Sync(ctx, key)
		s.queue.add(result.Next...)
		if delete(s.failures, key); err != nil {
			s.failures[key] = describe(key, err)
		}
		if result.After > 0 && s.mayTryAgain(key) {
			s.queue.add(key)
		}
		if s.syncs[key]++; s.syncs[key] > maxSyncs(len(s.known)) {
			return s.api.unsettledAt(key, s.syncs[key])
		}
	}
}

// failed notes that something failed that is not the controller's, and has another round try it again.
func (s *settlement) failed(key obj.Key, err error) {
	s.undone[key] = describe(key, err)
	s.again = s.mayTryAgain(key) || s.again
}

func (s *settlement) mayTryAgain(key obj.Key) bool {
	s.tries[key]++
	return s.tries[key] <= retries
}

// remaining returns the errors that are left.
func (s *settlement) remaining() error {
	errs := slices.Collect(maps.Values(s.failures))
	errs = slices.AppendSeq(errs, maps.Values(s.undone))
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// Record keeps what warnings say about each object, and gives every event to a server that takes events.
func (s *settlement) Record(event decision.Event) {
	if event.Type == corev1.EventTypeWarning && !slices.Contains(s.warnings[event.On], event.Message) {
		s.warnings[event.On] = append(s.warnings[event.On], event.Message)
	}
	if s.recorder != nil {
		s.recorder.Record(event)
	}
}
