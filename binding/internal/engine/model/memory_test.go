package model_test

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// memory writes down what the state of a leader remembers, so that two states that will do the same read the same. It
// writes every field of the engine's types, a new one too, but for those that writeField names.
type memory struct {
	*notes
	state *engine.State
}

// writeField writes down the field of a struct that is kept for an object; about is zero for what is kept for all. Versions
// are written apart from the objects, for only their order counts.
func (m memory) writeField(of reflect.Value, i int, about obj.Key) {
	v := Exposed(of.Field(i))
	switch fieldsOf(of.Type())[i] {
	case "State.options": // nothing changes them
	case "State.failures": // decide nothing but the length of a delay
	case "store.gone", "store.gonePods": // only the UIDs count that anybody may still mention; see leader
	case "task.steps": // tell of an end that the model sees as a cycle
	case "task.pending": // which the request has
	case "task.version":
		m.number(m.age(of, about))
	case "store.objects":
		m.objects()
	case "task.before":
		if before, _ := v.Interface().(obj.Object); m.flag(before != nil) {
			m.string(string(before.GetUID()))
			m.versionOf(keyOfAny(before), before.GetResourceVersion())
		}
	case "task.next": // the queue is a set
		next := map[obj.Key]struct{}{}
		for _, key := range v.Interface().([]obj.Key) {
			next[key] = struct{}{}
		}
		m.keySet(next)
	case "State.rejected":
		m.eachName(v, func(rejection reflect.Value, claim obj.Key) {
			volume := obj.VolumeKey(rejection.FieldByName("volume").String())
			m.versionOf(claim, rejection.FieldByName("claimVersion").String())
			m.key(volume)
			m.versionOf(volume, rejection.FieldByName("volumeVersion").String())
		})
	case "offer.version":
		m.versionOf(about, v.String())
	default:
		m.write(v, about)
	}
}

var fieldNames sync.Map

// fieldsOf returns the names of the fields of a struct, after the name of its type.
func fieldsOf(of reflect.Type) []string {
	if known, ok := fieldNames.Load(of); ok {
		return known.([]string)
	}
	var names []string
	for i := range of.NumField() {
		names = append(names, of.Name()+"."+of.Field(i).Name)
	}
	fieldNames.Store(of, names)
	return names
}

func (m memory) write(v reflect.Value, about obj.Key) {
	switch value := v.Addr().Interface().(type) {
	case *obj.Key:
		m.key(*value)
	case *map[obj.Key]struct{}:
		m.keySet(*value)
	case *map[obj.Key]string: // the versions of objects
		m.eachName(v, func(version reflect.Value, of obj.Key) { m.versionOf(of, version.String()) })
	case **index.Index:
		m.index(*value)
	case *index.Waiting:
		for _, key := range m.revisions.keys {
			object := value.Get(key)
			m.write(reflect.ValueOf(&object).Elem(), key)
		}
	case *decision.Event:
		m.event(value)
	case *engine.Reply: // what it had of objects is known by now
		m.write(reflect.ValueOf(&value.Pods).Elem(), about)
		m.write(reflect.ValueOf(&value.Attachments).Elem(), about)
	case *error:
		if m.flag(*value != nil) {
			m.string((*value).Error())
		}
	default:
		m.writeKind(v, about)
	}
}

func (m memory) writeKind(v reflect.Value, about obj.Key) {
	switch v.Kind() {
	case reflect.String:
		m.string(v.String())
	case reflect.Bool:
		m.flag(v.Bool())
	case reflect.Int:
		m.number(int(v.Int()))
	case reflect.Pointer:
		m.pointer(v, about)
	case reflect.Slice:
		m.number(v.Len())
		for i := range v.Len() {
			m.write(v.Index(i), about)
		}
	case reflect.Map:
		m.eachName(v, m.write)
	case reflect.Struct:
		for i := range v.NumField() {
			m.writeField(v, i, about)
		}
	default:
		panic(fmt.Sprintf("the model cannot write down a %s", v.Type()))
	}
}

// pointer writes down an object, or what else there is behind a pointer.
func (m memory) pointer(v reflect.Value, about obj.Key) {
	object, isObject := v.Interface().(obj.Object)
	switch {
	case !isObject:
		m.write(v.Elem(), about)
	case v.IsNil():
		m.revision(nil)
	default:
		m.revision(m.revisions.of(object))
	}
}

// eachName writes down what a map has for each name, with the function.
func (m memory) eachName(v reflect.Value, write func(v reflect.Value, about obj.Key)) {
	left := v.Len()
	for i, key := range m.revisions.keys {
		found := v.MapIndex(m.revisions.values[i])
		if !m.flag(found.IsValid()) {
			continue
		}
		value := reflect.New(found.Type()).Elem()
		value.Set(found)
		write(value, key)
		left--
	}
	m.none(left)
}

// none panics if something is left that is about no name of the world.
func (m memory) none(left int) {
	if left != 0 {
		panic("the state remembers a name that the world does not have")
	}
}

func (m memory) objects() {
	left := len(ObjectsOf(m.state))
	for _, key := range m.revisions.keys {
		if known := m.state.Known(key); m.flag(known != nil) {
			m.revision(m.revisions.of(known))
			left--
		}
	}
	m.none(left)
}

func (m memory) index(volumes *index.Index) {
	for _, key := range m.revisions.keys {
		if key.Kind != obj.KindVolume {
			continue
		}
		owners := volumes.Owners(key.Name)
		m.write(reflect.ValueOf(&owners).Elem(), key)
		if claim, reserved := volumes.Reservation(key.Name); m.flag(reserved) {
			m.key(claim)
		}
	}
}

func (m memory) event(event *decision.Event) {
	m.key(event.On)
	m.string(string(event.UID))
	m.string(string(event.Reason))
	m.string(event.Message)
	m.string(event.Identity().Message)
}

// age is whether what was read, or is about to be, was read for the object as it is known now.
func (m memory) age(task reflect.Value, of obj.Key) int {
	if task.FieldByName("live").Len() == 0 && task.FieldByName("pending").FieldByName("Kind").String() != string(decision.Read) {
		return 0
	}
	known, version := "", task.FieldByName("version").String()
	if object := m.state.Known(of); object != nil {
		known = object.GetResourceVersion()
	}
	return 1 + btoi(version == known) + 2*btoi(version == "")
}
