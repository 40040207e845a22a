package preview

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// Change is something that somebody might do; see Delete and Update.
type Change struct {
	object obj.Object
	make   func(ctx context.Context, s *simulation, key obj.Key, object obj.Object) error
}

// Delete deletes the object of that kind, namespace and name. Of a pod the grace period is over at once.
func Delete(object obj.Object) Change { return Change{object, remove} }

// Update changes the object of that kind, namespace and name to what is given. What differs from the object in the
// Cluster is changed, and nothing else: the status is not, nor what the controller did in the meantime.
func Update(object obj.Object) Change { return Change{object, update} }

func (c Change) apply(ctx context.Context, s *simulation) error {
	if c.object == nil {
		return fmt.Errorf("preview: a change without an object")
	}
	key, err := bindingtest.KeyOf(c.object)
	if err != nil {
		return err
	}
	before, err := s.server.Get(ctx, key)
	if err != nil {
		return err
	}
	s.touch(key, before)
	return c.make(ctx, s, key, c.object)
}

func remove(ctx context.Context, s *simulation, key obj.Key, _ obj.Object) error {
	s.deleted[key] = true
	return s.server.Delete(ctx, key, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

func update(ctx context.Context, s *simulation, key obj.Key, object obj.Object) error {
	current, err := s.server.Get(ctx, key)
	if err != nil {
		return err
	}
	merged, err := merge(s.base[key], object, current)
	if err != nil {
		return err
	}
	merged.SetResourceVersion(current.GetResourceVersion())
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
