package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
)

type (
	pv  = *corev1.PersistentVolume
	pvc = *corev1.PersistentVolumeClaim
	sc  = *storagev1.StorageClass
)

func create[T binding.Object](t *testing.T, server API, object T) T {
	t.Helper()
	created, err := server.Create(t.Context(), object)
	require.NoError(t, err)
	return created.(T)
}

func update[T binding.Object](t *testing.T, server API, object T, changes ...func(T)) T {
	t.Helper()
	for _, change := range changes {
		change(object)
	}
	updated, err := server.Update(t.Context(), object)
	require.NoError(t, err)
	return updated.(T)
}

func updateStatus[T binding.Object](t *testing.T, server API, object T, changes ...func(T)) T {
	t.Helper()
	for _, change := range changes {
		change(object)
	}
	updated, err := server.UpdateStatus(t.Context(), object)
	require.NoError(t, err)
	return updated.(T)
}

func get[T binding.Object](t *testing.T, server API, object T) T {
	t.Helper()
	found, err := server.Get(t.Context(), keyOf(t, object))
	require.NoError(t, err)
	return found.(T)
}

func ptr[T any](value T) *T { return &value }

// boundClaim creates a claim with the class and makes it Bound, with 3Gi.
func boundClaim(t *testing.T, server API, class string) pvc {
	t.Helper()
	claim := create(t, server, bindingtest.Claim("default", "data", "5Gi", func(c pvc) { c.Spec.StorageClassName = &class }))
	claim = update(t, server, claim, func(c pvc) { c.Spec.VolumeName = "a" })
	return updateStatus(t, server, claim, func(c pvc) {
		c.Status.Phase = corev1.ClaimBound
		c.Status.Capacity = bindingtest.Volume("a", "3Gi").Spec.Capacity
	})
}

// tick returns when the server's clock has reached another second than at its last write.
func tick(t *testing.T, server API) {
	t.Helper()
	for first := now(t, server); first == now(t, server); {
	}
}

// now is the server's time, as a new object tells it.
func now(t *testing.T, server API) int64 {
	t.Helper()
	class := create(t, server, bindingtest.Class("clock"))
	require.NoError(t, server.Delete(t.Context(), keyOf(t, class), metav1.DeleteOptions{}))
	return class.CreationTimestamp.Unix()
}

func keyOf(t *testing.T, object binding.Object) binding.Key {
	t.Helper()
	key, err := bindingtest.KeyOf(object)
	require.NoError(t, err)
	return key
}
