package preview

import (
	"context"
	"errors"
	"slices"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Cluster is what the preview begins with.
type Cluster struct {
	// Objects are volumes, claims, classes, pods, nodes and VolumeAttachments, in any order. What is not among them
	// does not exist: a volume whose claim is missing is taken for Released. One without a UID is created first.
	Objects []obj.Object
	// Rules are those of the controller, with the names of the hooks it has. In-use protection is on whatever they
	// say, for somebody does it.
	Rules binding.Rules
}

// Of says what the changes would do, all made at once. The objects are not modified.
//
// It fails if an object cannot be stored, if a change is about an object that is not there or one that the API server
// would refuse, and with the context's error. What no decision can be made on is in Outcome.Problems.
func Of(ctx context.Context, cluster Cluster, changes ...Change) (Outcome, error) {
	w, err := newWorld(ctx, cluster)
	if err != nil {
		return Outcome{}, err
	}
	var outcome Outcome
	if err := w.settle(ctx); err != nil {
		return Outcome{}, err
	}
	outcome.Unsettled = w.effects()
	w.begin()
	for _, change := range changes {
		if err := change.apply(ctx, w); err != nil {
			return Outcome{}, err
		}
	}
	if err := w.settle(ctx); err != nil {
		return Outcome{}, err
	}
	outcome.Effects = w.effects()
	outcome.Problems = w.problems
	return outcome, nil
}

// world is a copy of the cluster, and what has happened to it since the last begin.
type world struct {
	server  *bindingtest.Server
	driver  *bindingtest.Driver
	rules   binding.Rules
	base    map[obj.Key]obj.Object // as given
	touched map[obj.Key]obj.Object // what was written, as it was before; nil: there was none
	deleted map[obj.Key]bool       // by a Change
	ran     []ran
	users   users

	attached map[string][]string // by volume, the nodes; filled when asked for

	problems []string
}

// newWorld loads the objects; nothing has happened yet.
func newWorld(ctx context.Context, cluster Cluster) (*world, error) {
	w := &world{server: bindingtest.NewServer(), rules: cluster.Rules, base: map[obj.Key]obj.Object{}, problems: []string{}}
	w.rules.Protection = binding.ProtectionOn
	w.rules.Hooks.Provisioners = nil
	var running, fresh []obj.Object
	for _, object := range cluster.Objects {
		key, err := bindingtest.KeyOf(object)
		if err != nil {
			return nil, err
		}
		w.base[key] = object
		if object.GetUID() == "" {
			fresh = append(fresh, object)
		} else {
			running = append(running, withDefaults(object))
		}
	}
	if err := w.server.Load(running...); err != nil {
		return nil, err
	}
	for _, object := range fresh {
		if _, err := w.server.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	w.begin()
	w.driver = bindingtest.NewDriver(w.server, bindingtest.Options{Rules: w.rules, Hooks: w.hooks()})
	w.driver.Client.Use(w.note)
	return w, nil
}

// withDefaults is a copy that could be written back.
func withDefaults(object obj.Object) obj.Object {
	object = object.DeepCopyObject().(obj.Object)
	bindingtest.SetDefaults(object)
	return object
}

// begin forgets what has happened.
func (w *world) begin() {
	w.touched, w.deleted, w.ran = map[obj.Key]obj.Object{}, map[obj.Key]bool{}, nil
	w.users, w.attached = nil, nil
}

// note keeps the first state of what the controller writes.
func (w *world) note(call *bindingtest.Call, do func() error) error {
	err := do()
	if call.Changed() {
		w.touch(call.Key, call.Before)
	}
	return err
}

func (w *world) touch(key obj.Key, before obj.Object) {
	if _, known := w.touched[key]; !known {
		w.touched[key] = before
	}
}

// settle lets the controller finish, and what is collected because its owner went.
func (w *world) settle(ctx context.Context) error {
	for {
		if err := w.control(ctx); err != nil {
			return err
		}
		collected, err := w.server.CollectGarbage(ctx)
		if err != nil || len(collected) == 0 {
			return err
		}
		for _, object := range collected {
			key, err := bindingtest.KeyOf(object)
			if err != nil {
				return err
			}
			w.touch(key, object)
		}
	}
}

// control lets the controller finish. An object that it can make no decision on, or that the server takes no write of,
// is a problem, and keeps it from nothing else (X7).
func (w *world) control(ctx context.Context) error {
	for _, err := range parts(w.driver.Settle(ctx)) {
		var endless *bindingtest.UnsettledError
		if ctx.Err() != nil || errors.As(err, &endless) {
			return err
		}
		if !slices.Contains(w.problems, err.Error()) {
			w.problems = append(w.problems, err.Error())
		}
	}
	return nil
}

// parts are the errors that an error joins.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
