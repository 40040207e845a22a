package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func requests(size string) func(pvc) {
	return func(c pvc) { c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size) }
}

func classOf(name string) func(pvc) {
	return func(c pvc) { c.Spec.StorageClassName = &name }
}

func betaClassOf(name string) func(pvc) {
	return func(c pvc) { c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: name} }
}

func testWhatChangesOfAClaim(t *testing.T, newAPI NewAPI) {
	nothing := func(pvc) {}
	tests := map[string]struct {
		start, change func(pvc)
		field         string // that refuses it
	}{
		"A3 volumeName set":           {nothing, func(c pvc) { c.Spec.VolumeName = "a" }, ""},
		"A3 volumeName changed":       {func(c pvc) { c.Spec.VolumeName = "a" }, func(c pvc) { c.Spec.VolumeName = "b" }, "spec"},
		"A3 volumeName cleared":       {func(c pvc) { c.Spec.VolumeName = "a" }, func(c pvc) { c.Spec.VolumeName = "" }, "spec"},
		"A3 class given":              {nothing, classOf("fast"), ""},
		"A3 no class, from nil":       {nothing, classOf(""), ""},
		"A3 class changed":            {classOf("fast"), classOf("slow"), "spec"},
		"A3 class given after none":   {classOf(""), classOf("slow"), "spec"},
		"A3 class dropped":            {classOf("fast"), func(c pvc) { c.Spec.StorageClassName = nil }, "spec"},
		"A3 beta class changed":       {betaClassOf("fast"), betaClassOf("slow"), "annotations"},
		"A3 beta class dropped":       {betaClassOf("fast"), func(c pvc) { c.Annotations = nil }, "annotations"},
		"A3 beta class added":         {nothing, betaClassOf("fast"), "annotations"},
		"A3 beta class moved":         {betaClassOf("fast"), func(c pvc) { c.Annotations = nil; classOf("fast")(c) }, ""},
		"A3 beta class copied":        {betaClassOf("fast"), classOf("fast"), ""},
		"A3 beta class contradicted":  {betaClassOf("fast"), classOf("slow"), "spec"},
		"A3 request while Pending":    {nothing, requests("6Gi"), "spec"},
		"A3 attributes while Pending": {nothing, func(c pvc) { c.Spec.VolumeAttributesClassName = new("gold") }, "spec"},
		"A3 access modes": {nothing, func(c pvc) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}, "spec"},
		"A3 selector":    {nothing, func(c pvc) { c.Spec.Selector = &metav1.LabelSelector{} }, "spec"},
		"A3 volume mode": {nothing, func(c pvc) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, "volumeMode"},
		"A3 metadata":    {nothing, func(c pvc) { c.Annotations = map[string]string{"a": "b"} }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newAPI(t)
			claim := must.Create(t, server, bindingtest.Claim("default", "data", "5Gi", test.start))
			test.change(claim)
			_, err := server.Update(t.Context(), claim)
			refused(t, test.field, err)
		})
	}
}

func testWhatChangesOfABoundClaim(t *testing.T, newAPI NewAPI) {
	expandable := func(c sc) { c.AllowVolumeExpansion = new(true) }
	tests := map[string]struct {
		class  string
		change func(pvc)
		field  string
	}{
		"A3 grows":                         {"expandable", requests("6Gi"), ""},
		"A3 shrinks above its capacity":    {"rigid", requests("4Gi"), ""},
		"A3 shrinks to its capacity":       {"rigid", requests("3Gi"), "spec.resources.requests"},
		"A3 shrinks below its capacity":    {"rigid", requests("2Gi"), "spec.resources.requests"},
		"A3 attributes class":              {"rigid", func(c pvc) { c.Spec.VolumeAttributesClassName = new("gold") }, ""},
		"A3 another resource is requested": {"rigid", func(c pvc) { c.Spec.Resources.Requests["cpu"] = resource.MustParse("1") }, "spec"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := newAPI(t)
			must.Create(t, server, bindingtest.Class("expandable", expandable))
			must.Create(t, server, bindingtest.Class("rigid"))
			claim := boundClaim(t, server, test.class)
			test.change(claim)
			_, err := server.Update(t.Context(), claim)
			refused(t, test.field, err)
		})
	}
	t.Run("A3 grows in the class of the beta annotation", func(t *testing.T) {
		server := newAPI(t)
		must.Create(t, server, bindingtest.Class("expandable", expandable))
		claim := must.Create(t, server, bindingtest.Claim("default", "data", "5Gi", betaClassOf("expandable")))
		claim = must.UpdateStatus(t, server, claim, func(c pvc) { c.Status.Phase = corev1.ClaimBound })
		must.Update(t, server, claim, requests("6Gi"))
	})
	for _, class := range []string{"rigid", "absent", ""} {
		t.Run("A3 no expansion in class "+class, func(t *testing.T) {
			server := newAPI(t)
			must.Create(t, server, bindingtest.Class("rigid"))
			claim := boundClaim(t, server, class)
			requests("6Gi")(claim)
			_, err := server.Update(t.Context(), claim)
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
		})
	}
}

func testAnAttributesClassInUseStays(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	claim := boundClaim(t, server, "")
	claim = must.Update(t, server, claim, func(c pvc) { c.Spec.VolumeAttributesClassName = new("gold") })
	claim = must.UpdateStatus(t, server, claim, func(c pvc) { c.Status.CurrentVolumeAttributesClassName = new("gold") })
	claim.Spec.VolumeAttributesClassName = nil
	_, err := server.Update(t.Context(), claim)
	refused(t, "spec.volumeAttributesClassName", err)
}

func testStatusOfAClaimIsChecked(t *testing.T, newAPI NewAPI) {
	server := newAPI(t)
	claim := must.Create(t, server, bindingtest.Claim("default", "data", "5Gi"))
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("-1")}
	_, err := server.UpdateStatus(t.Context(), claim)
	refused(t, "status.capacity[storage]", err)
}
