package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
)

func onNode(value string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "host", Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}}
}

func ofCSI(v pv) {
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}
}

// refused asserts that the update is invalid because of the field; no field: that it is allowed.
func refused(t *testing.T, field string, err error) {
	t.Helper()
	if field == "" {
		require.NoError(t, err)
		return
	}
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, field)
}

func testWhatChangesOfAVolume(t *testing.T, newAPI NewAPI) {
	tests := map[string]struct {
		start, change func(pv)
		field         string // that refuses it
	}{
		"A4 source":                   {nil, func(v pv) { v.Spec.HostPath.Path = "/other" }, "persistentvolumesource"},
		"A4 volumeMode":               {nil, func(v pv) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, "volumeMode"},
		"A4 nodeAffinity set":         {nil, func(v pv) { v.Spec.NodeAffinity = onNode("n1") }, ""},
		"A4 nodeAffinity changed":     {func(v pv) { v.Spec.NodeAffinity = onNode("n1") }, func(v pv) { v.Spec.NodeAffinity = onNode("n2") }, "nodeAffinity"},
		"A4 nodeAffinity removed":     {func(v pv) { v.Spec.NodeAffinity = onNode("n1") }, func(v pv) { v.Spec.NodeAffinity = nil }, "nodeAffinity"},
		"A4 attributes class set":     {ofCSI, func(v pv) { v.Spec.VolumeAttributesClassName = new("gold") }, ""},
		"A4 attributes class removed": {func(v pv) { ofCSI(v); v.Spec.VolumeAttributesClassName = new("gold") }, func(v pv) { v.Spec.VolumeAttributesClassName = nil }, "volumeAttributesClassName"},
		"A4 expand secret set":        {ofCSI, func(v pv) { v.Spec.CSI.ControllerExpandSecretRef = &corev1.SecretReference{Namespace: "n", Name: "s"} }, ""},
		"A4 claimRef":                 {nil, func(v pv) { v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"} }, ""},
		"A4 capacity":                 {nil, func(v pv) { v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("9Gi")} }, ""},
		"A4 access modes":             {nil, func(v pv) { v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany} }, ""},
		"A4 class":                    {nil, func(v pv) { v.Spec.StorageClassName = "fast" }, ""},
		"A4 policy":                   {nil, func(v pv) { v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete }, ""},
		"A2 name of the metadata":     {nil, func(v pv) { v.Annotations = map[string]string{"not a name": ""} }, "metadata.annotations"},
		"validity":                    {nil, func(v pv) { v.Spec.AccessModes = nil }, "spec.accessModes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newAPI(t)
			volume := bindingtest.Volume("a", "1Gi")
			if test.start != nil {
				test.start(volume)
			}
			volume = must.Create(t, server, volume)
			test.change(volume)
			_, err := server.Update(t.Context(), volume)
			refused(t, test.field, err)
		})
	}
}

func testWhatChangesOfAClass(t *testing.T, newAPI NewAPI) {
	tests := map[string]struct {
		change func(sc)
		field  string
	}{
		"provisioner":       {func(c sc) { c.Provisioner = "other" }, "provisioner"},
		"parameters":        {func(c sc) { c.Parameters = map[string]string{"a": "b"} }, "parameters"},
		"reclaimPolicy":     {func(c sc) { c.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain) }, "reclaimPolicy"},
		"volumeBindingMode": {func(c sc) { c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer) }, "volumeBindingMode"},
		"default or not":    {func(c sc) { c.Annotations = map[string]string{defaultClass: "true"} }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newAPI(t)
			class := must.Create(t, server, bindingtest.Class("a"))
			test.change(class)
			_, err := server.Update(t.Context(), class)
			refused(t, test.field, err)
		})
	}
}

func testAClassHasNoStatus(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	_, err := server.UpdateStatus(t.Context(), must.Create(t, server, bindingtest.Class("a")))
	assert.Error(t, err)
}
