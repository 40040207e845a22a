// Package conformance holds an API server to what binding relies on (rules A1 to A6), as testing/fstest does with a
// file system. The server in memory of bindingtest and a real kube-apiserver have to pass the same tests, or a
// unit test on the one says nothing of a cluster with the other.
package conformance

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// API is what is tested of an API server. Objects are volumes, claims, classes, pods, nodes and attachments. Once a class is
// created, admission knows of it.
type API interface {
	Create(context.Context, obj.Object) (obj.Object, error)
	Update(context.Context, obj.Object) (obj.Object, error)
	UpdateStatus(context.Context, obj.Object) (obj.Object, error)
	Delete(context.Context, obj.Key, metav1.DeleteOptions) error
	Get(context.Context, obj.Key) (obj.Object, error)
}

// NewAPI returns an API server that holds no object of these kinds. One test is done with its server before the
// next asks for another.
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
