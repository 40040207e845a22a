// Package must makes calls of an API server for tests that cannot go on without the answer: an error ends the test.
package must

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// API is the part of an API server that is called.
type API interface {
	Create(context.Context, obj.Object) (obj.Object, error)
	Update(context.Context, obj.Object) (obj.Object, error)
	UpdateStatus(context.Context, obj.Object) (obj.Object, error)
	Get(context.Context, obj.Key) (obj.Object, error)
}

// Create creates the object, and returns what is stored.
func Create[T obj.Object](t *testing.T, server API, object T) T {
	t.Helper()
	return write(t, server.Create, object)
}

// Update makes the changes to the object, writes it, and returns what is stored.
func Update[T obj.Object](t *testing.T, server API, object T, changes ...func(T)) T {
	t.Helper()
	return write(t, server.Update, object, changes...)
}

// UpdateStatus makes the changes to the object, writes its status, and returns what is stored.
func UpdateStatus[T obj.Object](t *testing.T, server API, object T, changes ...func(T)) T {
	t.Helper()
	return write(t, server.UpdateStatus, object, changes...)
}

func write[T obj.Object](t *testing.T, call func(context.Context, obj.Object) (obj.Object, error), object T, changes ...func(T)) T {
	t.Helper()
	for _, change := range changes {
		change(object)
	}
	stored, err := call(t.Context(), object)
	require.NoError(t, err)
	return stored.(T)
}

// Get reads the object of that name.
func Get[T obj.Object](t *testing.T, server API, object T) T {
	t.Helper()
	found, err := server.Get(t.Context(), KeyOf(t, object))
	require.NoError(t, err)
	return found.(T)
}

// KeyOf names the object.
func KeyOf(t *testing.T, object obj.Object) obj.Key {
	t.Helper()
	key, err := bindingtest.KeyOf(object)
	require.NoError(t, err)
	return key
}
