package bindingtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
)

// api is all that the tests of the A rules use, so that they can be run against any API server.
type api interface {
	Create(context.Context, binding.Object) (binding.Object, error)
	Update(context.Context, binding.Object) (binding.Object, error)
	UpdateStatus(context.Context, binding.Object) (binding.Object, error)
	Delete(context.Context, binding.Key, metav1.DeleteOptions) error
	Get(context.Context, binding.Key) (binding.Object, error)
}

type (
	pv  = *corev1.PersistentVolume
	pvc = *corev1.PersistentVolumeClaim
	sc  = *storagev1.StorageClass
)

func create[T binding.Object](t *testing.T, server api, object T) T {
	t.Helper()
	created, err := server.Create(t.Context(), object)
	require.NoError(t, err)
	return created.(T)
}

func update[T binding.Object](t *testing.T, server api, object T, changes ...func(T)) T {
	t.Helper()
	for _, change := range changes {
		change(object)
	}
	updated, err := server.Update(t.Context(), object)
	require.NoError(t, err)
	return updated.(T)
}

func updateStatus[T binding.Object](t *testing.T, server api, object T, changes ...func(T)) T {
	t.Helper()
	for _, change := range changes {
		change(object)
	}
	updated, err := server.UpdateStatus(t.Context(), object)
	require.NoError(t, err)
	return updated.(T)
}

func get[T binding.Object](t *testing.T, server api, object T) T {
	t.Helper()
	key, err := bindingtest.KeyOf(object)
	require.NoError(t, err)
	found, err := server.Get(t.Context(), key)
	require.NoError(t, err)
	return found.(T)
}

var keyA = binding.VolumeKey("a")

func ptr[T any](value T) *T { return &value }
