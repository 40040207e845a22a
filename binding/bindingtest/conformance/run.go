package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/obj"
)

// API is the part of an API server that is tested. Objects are volumes, claims, classes, pods, nodes and attachments. Once a class is
// created, admission knows of it.
type API interface {
	Create(context.Context, obj.Object) (obj.Object, error)
	Update(context.Context, obj.Object) (obj.Object, error)
	UpdateStatus(context.Context, obj.Object) (obj.Object, error)
	Delete(context.Context, obj.Key, metav1.DeleteOptions) error
	Get(context.Context, obj.Key) (obj.Object, error)
}

// NewAPI returns an API server that holds no object of these kinds. One test is done with its server before the
// next one begins.
type NewAPI func(*testing.T) API

// Run runs all tests, one after the other.
func Run(t *testing.T, newAPI NewAPI) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, NewAPI)
	}{
		{"CreateSetsMetadataAndDropsStatus", testCreateSetsMetadataAndDropsStatus},
		{"CreateRefusals", testCreateRefusals},
		{"GenerateName", testGenerateName},
		{"Defaults", testDefaults},
		{"AdmissionAddsAFinalizerOnce", testAdmissionAddsAFinalizerOnce},
		{"DefaultClassOnCreate", testDefaultClassOnCreate},
		{"ValidateVolume", testValidateVolume},
		{"ValidateClaim", testValidateClaim},
		{"ValidateTheRest", testValidateTheRest},
		{"UpdateIgnoresStatus", testUpdateIgnoresStatus},
		{"UpdateStatusIgnoresSpecAndKeepsMetadata", testUpdateStatusIgnoresSpecAndKeepsMetadata},
		{"ResourceVersions", testResourceVersions},
		{"UpdateMeantForAnEarlierObject", testUpdateMeantForAnEarlierObject},
		{"UpdateWithoutChangeWritesNothing", testUpdateWithoutChangeWritesNothing},
		{"TransitionTime", testTransitionTime},
		{"MetadataThatMayBeLeftOut", testMetadataThatMayBeLeftOut},
		{"NodesAndPods", testNodesAndPods},
		{"WhatChangesOfAVolume", testWhatChangesOfAVolume},
		{"WhatChangesOfAClass", testWhatChangesOfAClass},
		{"Attachments", testAttachments},
		{"AClassHasNoStatus", testAClassHasNoStatus},
		{"WhatChangesOfAClaim", testWhatChangesOfAClaim},
		{"WhatChangesOfABoundClaim", testWhatChangesOfABoundClaim},
		{"AnAttributesClassInUseStays", testAnAttributesClassInUseStays},
		{"StatusOfAClaimIsChecked", testStatusOfAClaimIsChecked},
		{"DeleteWithoutFinalizers", testDeleteWithoutFinalizers},
		{"DeleteWithFinalizers", testDeleteWithFinalizers},
		{"LastFinalizerRemovedThroughStatus", testLastFinalizerRemovedThroughStatus},
		{"AnUpdateDoesNotDelete", testAnUpdateDoesNotDelete},
		{"DeletePreconditions", testDeletePreconditions},
		{"RecreatedObjectIsAnother", testRecreatedObjectIsAnother},
		{"DeletePod", testDeletePod},
		{"GracePeriods", testGracePeriods},
		{"APodWithAFinalizerStays", testAPodWithAFinalizerStays},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newAPI) })
	}
}

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

// now returns the server's time, as a new object tells it.
func now(t *testing.T, server API) int64 {
	t.Helper()
	class := must.Create(t, server, bindingtest.Class("clock"))
	require.NoError(t, server.Delete(t.Context(), must.KeyOf(t, class), metav1.DeleteOptions{}))
	return class.CreationTimestamp.Unix()
}
