package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
)

const (
	defaultClass     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClass = "storageclass.beta.kubernetes.io/is-default-class"
)

func testCreateSetsMetadataAndDropsStatus(t *testing.T, newAPI NewAPI) {
	t.Run("A1 volume", func(t *testing.T) {
		volume := must.Create(t, newAPI(t), bindingtest.Volume("a", "1Gi", func(v pv) {
			v.UID = "mine"
			v.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound, Message: "sent"}
		}))
		assert.NotEmpty(t, volume.UID)
		assert.NotEqual(t, "mine", string(volume.UID))
		assert.NotEmpty(t, volume.ResourceVersion)
		assert.False(t, volume.CreationTimestamp.IsZero())
		assert.Equal(t, corev1.VolumePending, volume.Status.Phase)
		assert.Empty(t, volume.Status.Message)
		require.NotNil(t, volume.Status.LastPhaseTransitionTime)
	})
	t.Run("A1 claim", func(t *testing.T) {
		claim := must.Create(t, newAPI(t), bindingtest.Claim("default", "data", "1Gi", func(c pvc) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: c.Spec.Resources.Requests}
		}))
		assert.Equal(t, corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}, claim.Status)
	})
}

func testCreateRefusals(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	must.Create(t, server, bindingtest.Volume("a", "1Gi"))

	_, err := server.Create(t.Context(), bindingtest.Volume("a", "2Gi"))
	assert.True(t, apierrors.IsAlreadyExists(err), "A1 the name is taken: %v", err)
	_, err = server.Create(t.Context(), bindingtest.Volume("b", "1Gi", func(v pv) { v.ResourceVersion = "7" }))
	assert.Error(t, err, "A1 a resourceVersion is not the creator's to set")
	_, err = server.Create(t.Context(), bindingtest.Volume("c", "1Gi", func(v pv) { v.Spec.AccessModes = nil }))
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "spec.accessModes")
}

func testGenerateName(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	generated := func(v pv) { v.GenerateName = strings.Repeat("v", 70) }
	first := must.Create(t, server, bindingtest.Volume("", "1Gi", generated))
	second := must.Create(t, server, bindingtest.Volume("", "1Gi", generated))
	assert.NotEqual(t, first.Name, second.Name)
	assert.Len(t, first.Name, 63)
	assert.True(t, strings.HasPrefix(first.Name, "vvv"))
}

func testDefaults(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	volume := must.Create(t, server, bindingtest.Volume("a", "1Gi"))
	assert.Equal(t, corev1.PersistentVolumeFilesystem, *volume.Spec.VolumeMode, "A6")
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy, "A6")
	assert.Equal(t, []string{"kubernetes.io/pv-protection"}, volume.Finalizers, "A6")

	class := must.Create(t, server, bindingtest.Class("slow"))
	assert.Equal(t, corev1.PersistentVolumeReclaimDelete, *class.ReclaimPolicy, "A6")
	assert.Equal(t, storagev1.VolumeBindingImmediate, *class.VolumeBindingMode, "A6")

	claim := must.Create(t, server, bindingtest.Claim("default", "data", "1Gi"))
	assert.Equal(t, corev1.PersistentVolumeFilesystem, *claim.Spec.VolumeMode, "A6")
	assert.Equal(t, []string{"kubernetes.io/pvc-protection"}, claim.Finalizers, "A6")
	assert.Nil(t, claim.Spec.StorageClassName, "A6 no class is default")

	volume = must.Update(t, server, volume, func(v pv) { v.Spec.PersistentVolumeReclaimPolicy, v.Spec.VolumeMode = "", nil })
	assert.Equal(t, corev1.PersistentVolumeReclaimRetain, volume.Spec.PersistentVolumeReclaimPolicy, "A6 on update too")
	assert.Equal(t, corev1.PersistentVolumeFilesystem, *volume.Spec.VolumeMode, "A6 on update too")
}

func testAdmissionAddsAFinalizerOnce(t *testing.T, newAPI NewAPI) {
	volume := must.Create(t, newAPI(t), bindingtest.Volume("a", "1Gi", func(v pv) {
		v.Finalizers = []string{"kubernetes.io/pv-protection", "example.com/mine"}
	}))
	assert.Equal(t, []string{"kubernetes.io/pv-protection", "example.com/mine"}, volume.Finalizers, "A6")
}

func marked(annotation, value string) func(sc) {
	return func(c sc) { c.Annotations = map[string]string{annotation: value} }
}

func testDefaultClassOnCreate(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	must.Create(t, server, bindingtest.Class("a-is-older", marked(defaultClass, "true")))
	must.Create(t, server, bindingtest.Class("plain"))
	tick(t, server)
	must.Create(t, server, bindingtest.Class("newest", marked(betaDefaultClass, "true")))
	must.Create(t, server, bindingtest.Class("no", marked(defaultClass, "false")))

	given := must.Create(t, server, bindingtest.Claim("default", "given", "1Gi"))
	assert.Equal(t, "newest", *given.Spec.StorageClassName, "A6 C2 the newest of two defaults")
	none := must.Create(t, server, bindingtest.Claim("default", "none", "1Gi", func(c pvc) { c.Spec.StorageClassName = new("") }))
	assert.Equal(t, "", *none.Spec.StorageClassName, "A6 no class was asked for")
	beta := must.Create(t, server, bindingtest.Claim("default", "beta", "1Gi", func(c pvc) {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "plain"}
	}))
	assert.Nil(t, beta.Spec.StorageClassName, "A6 the beta annotation names a class")
}
