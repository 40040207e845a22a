package preview

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Cluster is what a preview begins with.
type Cluster struct {
	// Objects are volumes, claims, classes, pods, nodes and VolumeAttachments, in any order. What is not among them
	// does not exist: a volume whose claim is missing counts as Released. One without a UID is created first.
	Objects []obj.Object
	// Options are those of the controller in the cluster, with the names of its hooks. Provisioners are left out. In-use
	// protection is always on, for kube-controller-manager or this controller does it.
	Options decision.Options
}

// Change is something that somebody might do; see Delete and Update.
type Change struct {
	object  obj.Object
	deletes bool
}

// Delete deletes the object of that kind, namespace and name. A pod is deleted without its grace period.
func Delete(object obj.Object) Change { return Change{object, true} }

// Update changes the object of that kind, namespace and name to what is given. What differs from the object in the
// Cluster is changed, and nothing else: the status is not, nor what the controller did in the meantime.
func Update(object obj.Object) Change { return Change{object, false} }

// Of returns what the changes would do, all made at once. The objects are not modified.
//
// It fails if an object cannot be stored, if a change is about an object that is not there or one that the API server
// would refuse, and with the context's error. Objects that cannot be decided on are in Outcome.Problems.
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
	s.resetEffects()
	for _, change := range changes {
		if err := s.apply(ctx, change); err != nil {
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
	options  decision.Options
	base     map[obj.Key]obj.Object // as given
	touched  map[obj.Key]obj.Object // what was written, as it was before; nil: there was none
	deleted  map[obj.Key]bool       // by a Change
	hookRuns []hookRun
	problems []string
	pods     func() map[obj.Key][]*corev1.Pod    // by the claims that they name
	nodes    func() map[obj.Key]sets.Set[string] // by the volumes that are attached to them
}

// newSimulation loads the objects; nothing has happened yet.
func newSimulation(ctx context.Context, cluster Cluster) (*simulation, error) {
	s := &simulation{
		server:   bindingtest.NewServer(),
		options:  cluster.Options.WithDefaults(),
		base:     map[obj.Key]obj.Object{},
		problems: []string{},
	}
	s.options.Protection = decision.ProtectionOn
	s.options.Hooks.Provisioners = nil // what a provisioner would make cannot be known
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
	s.resetEffects()
	s.driver = bindingtest.NewDriver(s.server, bindingtest.DriverOptions{BindingOptions: s.options, Hooks: s.hooks()})
	s.driver.Client.Use(s.recordWrite)
	return s, nil
}

// withDefaults returns a copy that could be written back.
func withDefaults(object obj.Object) obj.Object {
	object = object.DeepCopyObject().(obj.Object)
	bindingtest.SetDefaults(object)
	return object
}

// resetEffects starts recording anew.
func (s *simulation) resetEffects() {
	s.touched, s.deleted, s.hookRuns = map[obj.Key]obj.Object{}, map[obj.Key]bool{}, nil
	s.pods, s.nodes = sync.OnceValue(s.podsByClaim), sync.OnceValue(s.nodesByVolume)
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

// settle runs the controller and the garbage collector in turn, until neither changes anything.
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

func (s *simulation) apply(ctx context.Context, change Change) error {
	if change.object == nil {
		return errors.New("preview: a change without an object")
	}
	key, err := bindingtest.KeyOf(change.object)
	if err != nil {
		return err
	}
	before, err := s.server.Get(ctx, key)
	if err != nil {
		return err
	}
	s.touch(key, before)
	if change.deletes {
		s.deleted[key] = true
		return s.server.Delete(ctx, key, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	}
	merged, err := merge(s.base[key], change.object, before)
	if err != nil {
		return err
	}
	merged.SetResourceVersion(before.GetResourceVersion())
	_, err = s.server.Update(ctx, merged)
	return err
}

// merge returns the current object with what differs between the other two.
func merge(base, wanted, current obj.Object) (obj.Object, error) {
	var fields [3]map[string]any
	for i, object := range []obj.Object{base, wanted, current} {
		converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		fields[i] = converted
	}
	mergeFields(fields[0], fields[1], fields[2])
	merged := reflect.New(reflect.TypeOf(current).Elem()).Interface().(obj.Object)
	return merged, runtime.DefaultUnstructuredConverter.FromUnstructured(fields[2], merged)
}

func mergeFields(base, wanted, current map[string]any) {
	for name := range base {
		if _, stays := wanted[name]; !stays {
			delete(current, name)
		}
	}
	for name, value := range wanted {
		if reflect.DeepEqual(base[name], value) {
			continue
		}
		old, _ := base[name].(map[string]any)
		now, into := current[name].(map[string]any)
		if inner, both := value.(map[string]any); both && into {
			mergeFields(old, inner, now)
		} else {
			current[name] = value
		}
	}
}
