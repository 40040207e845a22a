package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
)

type (
	pv  = *corev1.PersistentVolume
	pvc = *corev1.PersistentVolumeClaim
	sc  = *storagev1.StorageClass
)

// boundClaim creates a claim with the class and makes it Bound, with 3Gi.
func boundClaim(t *testing.T, server API, class string) pvc {
	t.Helper()
	claim := must.Create(t, server, bindingtest.Claim("default", "data", "5Gi", func(c pvc) { c.Spec.StorageClassName = &class }))
	claim = must.Update(t, server, claim, func(c pvc) { c.Spec.VolumeName = "a" })
	return must.UpdateStatus(t, server, claim, func(c pvc) {
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
	class := must.Create(t, server, bindingtest.Class("clock"))
	require.NoError(t, server.Delete(t.Context(), must.KeyOf(t, class), metav1.DeleteOptions{}))
	return class.CreationTimestamp.Unix()
}
