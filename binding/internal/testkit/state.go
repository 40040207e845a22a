package testkit

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/obj"
)

// Exposed returns a field of a struct that its package keeps to itself, to be read and written. The struct must be
// addressable.
func Exposed(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
}

// fields has where the fields of a state are, and those of its store.
var fields = func() map[string][]int {
	found := map[string][]int{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[engine.State]()) {
		found[field.Name] = field.Index
	}
	return found
}()

func exposed(state *engine.State, field string) reflect.Value {
	return Exposed(reflect.ValueOf(state).Elem().FieldByIndex(fields[field]))
}

// IndexOf returns the volumes of a state, to choose from.
func IndexOf(state *engine.State) *index.Index {
	return exposed(state, "index").Interface().(*index.Index)
}

// ObjectsOf returns all objects that are known to a state, in any order: the very ones that it observed.
func ObjectsOf(state *engine.State) []obj.Object {
	var known []obj.Object
	for _, objects := range exposed(state, "objects").Interface().(map[obj.Kind]map[obj.Key]obj.Object) {
		known = slices.AppendSeq(known, maps.Values(objects))
	}
	return known
}

// ObjectsIn returns the objects of one kind that are known to a state, in any order.
func ObjectsIn[O obj.Object](state *engine.State) (known []O) {
	for _, object := range ObjectsOf(state) {
		if of, ok := object.(O); ok {
			known = append(known, of)
		}
	}
	return known
}

// Remembered returns the objects that a Controller has stored.
func Remembered(controller *binding.Controller) []obj.Object {
	state := Exposed(reflect.ValueOf(controller).Elem().FieldByName("state")).Interface().(*engine.State)
	if state == nil {
		return nil // it has not been told of anything
	}
	return ObjectsOf(state)
}

// Reserved returns the claim of each volume that a state has reserved.
func Reserved(state *engine.State) map[string]obj.Key {
	found := map[string]obj.Key{}
	for _, volume := range ObjectsIn[*corev1.PersistentVolume](state) {
		if claim, reserved := IndexOf(state).Reservation(volume.Name); reserved {
			found[volume.Name] = claim
		}
	}
	return found
}

// InDoubt returns the sync whose last write of the object has an unknown outcome; zero if none.
func InDoubt(state *engine.State, object obj.Key) (by obj.Key) {
	return exposed(state, "inDoubt").Interface().(map[obj.Key]obj.Key)[object]
}

// Buried reports whether a state has the UID among those of objects that are gone.
func Buried(state *engine.State, uid types.UID) bool {
	for _, field := range []string{"gone", "gonePods"} {
		generations := exposed(state, field)
		for i := range generations.NumField() {
			if _, found := Exposed(generations.Field(i)).Interface().(map[types.UID]struct{})[uid]; found {
				return true
			}
		}
	}
	return false
}

// CloneState returns a copy of a state, for a test that goes on from it in more ways than one. Objects are shared, for
// nothing modifies them.
func CloneState(state *engine.State) *engine.State {
	copied := new(engine.State)
	clone(reflect.ValueOf(copied).Elem(), reflect.ValueOf(state).Elem())
	volumes, from := new(index.Index), IndexOf(state)
	exposed(copied, "index").Set(reflect.ValueOf(volumes))
	volumes.Load(ObjectsIn[*corev1.PersistentVolume](state)...)
	for _, volume := range ObjectsIn[*corev1.PersistentVolume](state) {
		if claim, reserved := from.Reservation(volume.Name); reserved {
			volumes.Reserve(volume.Name, volume.ResourceVersion, claim)
		}
	}
	for _, claim := range ObjectsIn[*corev1.PersistentVolumeClaim](state) { // after the reservations, which owners would prevent
		volumes.SetClaim(claim)
	}
	return copied
}

var engineTypes = reflect.TypeFor[engine.State]().PkgPath()

// clone copies maps, slices and what is of the engine's own types. What else there is nothing modifies.
func clone(to, from reflect.Value) {
	switch value := from.Addr().Interface().(type) {
	case *map[obj.Key]struct{}: // as most are
		to.Set(reflect.ValueOf(maps.Clone(*value)))
		return
	case *map[obj.Key]obj.Object:
		to.Set(reflect.ValueOf(maps.Clone(*value)))
		return
	case *index.Waiting:
		to.Set(reflect.ValueOf(value.Clone()))
		return
	}
	switch from.Kind() {
	case reflect.Map:
		cloneMap(to, from)
	case reflect.Slice:
		to.Set(reflect.AppendSlice(to, from))
	case reflect.Struct:
		if from.Type().PkgPath() != engineTypes {
			to.Set(from)
			return
		}
		for i := range from.NumField() {
			clone(Exposed(to.Field(i)), Exposed(from.Field(i)))
		}
	case reflect.Pointer:
		if from.Type().Elem().PkgPath() != engineTypes {
			to.Set(from)
			return
		}
		to.Set(reflect.New(from.Type().Elem()))
		clone(to.Elem(), from.Elem())
	default:
		to.Set(from)
	}
}

func cloneMap(to, from reflect.Value) {
	if from.Len() == 0 {
		return
	}
	to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
	value, copied := reflect.New(from.Type().Elem()).Elem(), reflect.New(from.Type().Elem()).Elem()
	for each := from.MapRange(); each.Next(); {
		value.SetIterValue(each)
		copied.SetZero()
		clone(copied, value)
		to.SetMapIndex(each.Key(), copied)
	}
}
