package testkit_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestCopiesOfStatesShareNothing lets a copy go on after its original was written to, and the other way round.
func TestCopiesOfStatesShareNothing(t *testing.T) {
	remembered := func() *engine.State {
		state := engine.New(decision.Options{}, 1)
		state.Observe(KnownClaim())
		state.Observe(KnownVolume("a"))
		state.Observe(KnownVolume("b"))
		state.Start(obj.VolumeKey("a"))
		require.Equal(t, "B1", state.Start(DataKey).Action.Rule)
		return state
	}
	state := remembered()
	copied := CloneState(state)
	assert.Equal(t, map[string]obj.Key{"a": DataKey}, Reserved(copied))
	assert.ElementsMatch(t, ObjectsOf(state), ObjectsOf(copied))

	maps := sets.New(mapsIn(reflect.ValueOf(state).Elem())...)
	assert.Greater(t, maps.Len(), 5)
	assert.Empty(t, maps.Intersection(sets.New(mapsIn(reflect.ValueOf(copied).Elem())...)))

	lost := engine.Reply{Err: errors.New("connection lost")}
	copied.Proceed(DataKey, lost)
	assert.Equal(t, DataKey, InDoubt(copied, obj.VolumeKey("a")))
	assert.Empty(t, InDoubt(state, obj.VolumeKey("a")))
	assert.Equal(t, remembered().Proceed(DataKey, lost), state.Proceed(DataKey, lost))
}

// mapsIn returns the maps in a value, but for those of API objects and of options.
func mapsIn(v reflect.Value) (found []uintptr) {
	switch v.Kind() {
	case reflect.Map:
		if v.Len() > 0 {
			found = append(found, v.Pointer())
		}
		for each := v.MapRange(); each.Next(); {
			found = append(found, mapsIn(each.Value())...)
		}
	case reflect.Pointer:
		if v.Type().Elem().PkgPath() == reflect.TypeFor[engine.State]().PkgPath() {
			found = mapsIn(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[decision.Options]() || v.Type() == reflect.TypeFor[decision.Action]() {
			return nil
		}
		for i := range v.NumField() {
			found = append(found, mapsIn(v.Field(i))...)
		}
	}
	return found
}
