package preview

import (
	"context"
	"errors"
	"slices"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Cluster is what a preview begins with.
type Cluster struct {
	// Objects are volumes, claims, classes, pods, nodes and VolumeAttachments, in any order. What is not among them
	// does not exist: a volume whose claim is missing is taken for Released. One without a UID is created first.
	Objects []obj.Object
	// Options are those of the controller, with the names of the hooks it has. In-use protection is on whatever they
	// say, for somebody does it.
	Options decision.Options
}

// Of returns what the changes would do, all made at once. The objects are not modified.
//
// It fails if an object cannot be stored, if a change is about an object that is not there or one that the API server
// would refuse, and with the context's error. What no decision can be made on is in Outcome.Problems.
func Of(ctx context.Context, cluster Cluster, changes ...Change) (Outcome, error) {
	s, err := newSimulation(ctx, cluster)
	if err != nil {
		return Outcome{}, err
	}
	var outcome Outcome
	if err := s.settle(ctx); err != nil {
		return Outcome{}, err
	}
	outcome.Unsettled = s.effects()
	s.begin()
	for _, change := range changes {
		if err := change.apply(ctx, s); err != nil {
			return Outcome{}, err
		}
	}
	if err := s.settle(ctx); err != nil {
		return Outcome{}, err
	}
	outcome.Effects = s.effects()
	outcome.Problems = s.problems
	return outcome, nil
}

// simulation is a copy of the cluster, and what has happened to it since the last begin.
type simulation struct {
	server   *bindingtest.Server
	driver   *bindingtest.Driver
	rules    decision.Options
	base     map[obj.Key]obj.Object // as given
	touched  map[obj.Key]obj.Object // what was written, as it was before; nil: there was none
	deleted  map[obj.Key]bool       // by a Change
	hookRuns []hookRun
	users    users

	attached map[string][]string // by volume, the nodes; filled when asked for

	problems []string
}

// newSimulation loads the objects; nothing has happened yet.
func newSimulation(ctx context.Context, cluster Cluster) (*simulation, error) {
	s := &simulation{server: bindingtest.NewServer(), rules: cluster.Options, base: map[obj.Key]obj.Object{}, problems: []string{}}
	s.rules.Protection = decision.ProtectionOn
	s.rules.Hooks.Provisioners = nil
	var running, fresh []obj.Object
	for _, object := range cluster.Objects {
		key, err := bindingtest.KeyOf(object)
		if err != nil {
			return nil, err
		}
		s.base[key] = object
		if object.GetUID() == "" {
			fresh = append(fresh, object)
		} else {
			running = append(running, withDefaults(object))
		}
	}
	if err := s.server.Load(running...); err != nil {
		return nil, err
	}
	for _, object := range fresh {
		if _, err := s.server.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	s.begin()
	s.driver = bindingtest.NewDriver(s.server, bindingtest.Options{BindingOptions: s.rules, Hooks: s.hooks()})
	s.driver.Client.Use(s.recordWrite)
	return s, nil
}

// withDefaults returns a copy that could be written back.
func withDefaults(object obj.Object) obj.Object {
	object = object.DeepCopyObject().(obj.Object)
	bindingtest.SetDefaults(object)
	return object
}

// begin forgets what has happened.
func (s *simulation) begin() {
	s.touched, s.deleted, s.hookRuns = map[obj.Key]obj.Object{}, map[obj.Key]bool{}, nil
	s.users, s.attached = nil, nil
}

// recordWrite keeps the first state of what the controller writes.
func (s *simulation) recordWrite(call *bindingtest.Call, do func() error) error {
	err := do()
	if call.Changed() {
		s.touch(call.Key, call.Before)
	}
	return err
}

func (s *simulation) touch(key obj.Key, before obj.Object) {
	if _, known := s.touched[key]; !known {
		s.touched[key] = before
	}
}

// settle lets the controller finish, and what is collected because its owner went.
func (s *simulation) settle(ctx context.Context) error {
	for {
		if err := s.runController(ctx); err != nil {
			return err
		}
		collected, err := s.server.CollectGarbage(ctx)
		if err != nil || len(collected) == 0 {
			return err
		}
		for _, object := range collected {
			key, err := bindingtest.KeyOf(object)
			if err != nil {
				return err
			}
			s.touch(key, object)
		}
	}
}

// runController lets the controller finish. An object that it can make no decision on, or that the server takes no write of,
// is a problem, and keeps it from nothing else (X7).
func (s *simulation) runController(ctx context.Context) error {
	for _, err := range parts(s.driver.Settle(ctx)) {
		var endless *bindingtest.UnsettledError
		if ctx.Err() != nil || errors.As(err, &endless) {
			return err
		}
		if !slices.Contains(s.problems, err.Error()) {
			s.problems = append(s.problems, err.Error())
		}
	}
	return nil
}

// parts returns the errors that an error joins.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
