package conformance

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// assertFault creates the object and asserts that it is invalid because of the field alone; no field: that it is valid.
func assertFault(t *testing.T, server API, field string, object obj.Object) {
	t.Helper()
	_, err := server.Create(t.Context(), object)
	if field == "" {
		require.NoError(t, err)
		return
	}
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.Equal(t, []string{field}, faults(err))
}

// faults lists the fields that an error is about, none twice.
func faults(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

func testValidateVolume(t *testing.T, newAPI NewAPI) {
	terms := func(requirements ...corev1.NodeSelectorRequirement) func(pv) {
		return func(v pv) {
			v.Spec.NodeAffinity = onNode("n1")
			v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions = requirements
		}
	}
	capacity := func(list corev1.ResourceList) func(pv) { return func(v pv) { v.Spec.Capacity = list } }
	tests := map[string]struct {
		change func(pv)
		field  string
	}{
		"valid":                 {func(pv) {}, ""},
		"bad name":              {func(v pv) { v.Name = "A b" }, "metadata.name"},
		"a namespace":           {func(v pv) { v.Namespace = "default" }, ""},
		"bad label":             {func(v pv) { v.Labels = map[string]string{"a b": ""} }, "metadata.labels"},
		"no modes":              {func(v pv) { v.Spec.AccessModes = nil }, "spec.accessModes"},
		"unknown mode":          {func(v pv) { v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{"Sometimes"} }, "spec.accessModes"},
		"OncePod and more":      {func(v pv) { v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadWriteOncePod) }, "spec.accessModes"},
		"OncePod alone":         {func(v pv) { v.Spec.AccessModes[0] = corev1.ReadWriteOncePod }, ""},
		"X7 no capacity":        {capacity(nil), "spec.capacity"},
		"X7 other capacity":     {capacity(corev1.ResourceList{"cpu": resource.MustParse("1")}), "spec.capacity"},
		"X7 negative capacity":  {capacity(corev1.ResourceList{"storage": resource.MustParse("-1")}), "spec.capacity[storage]"},
		"X7 zero capacity":      {capacity(corev1.ResourceList{"storage": resource.MustParse("0")}), "spec.capacity[storage]"},
		"X7 unknown policy":     {func(v pv) { v.Spec.PersistentVolumeReclaimPolicy = "Burn" }, "spec.persistentVolumeReclaimPolicy"},
		"X7 unknown mode":       {func(v pv) { v.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }, "spec.volumeMode"},
		"no source":             {func(v pv) { v.Spec.HostPath = nil }, "spec"},
		"two sources":           {func(v pv) { v.Spec.NFS = &corev1.NFSVolumeSource{} }, "spec.nfs"},
		"local without a node":  {func(v pv) { v.Spec.HostPath, v.Spec.Local = nil, &corev1.LocalVolumeSource{Path: "/d"} }, "spec.nodeAffinity"},
		"recycled root":         {func(v pv) { v.Spec.HostPath.Path, v.Spec.PersistentVolumeReclaimPolicy = "//", "Recycle" }, "spec.persistentVolumeReclaimPolicy"},
		"bad class":             {func(v pv) { v.Spec.StorageClassName = "A b" }, "spec.storageClassName"},
		"attributes class":      {func(v pv) { v.Spec.VolumeAttributesClassName = new("gold") }, "spec.csi"},
		"attributes class, CSI": {func(v pv) { ofCSI(v); v.Spec.VolumeAttributesClassName = new("gold") }, ""},
		"no affinity":           {func(v pv) { v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{} }, "spec.nodeAffinity.required"},
		"no terms": {func(v pv) { v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}} },
			"spec.nodeAffinity.required.nodeSelectorTerms"},
		"In":               {terms(corev1.NodeSelectorRequirement{Key: "a", Operator: "In", Values: []string{"x"}}), ""},
		"In nothing":       {terms(corev1.NodeSelectorRequirement{Key: "a", Operator: "In"}), affinityField + ".values"},
		"Exists":           {terms(corev1.NodeSelectorRequirement{Key: "a", Operator: "Exists"}), ""},
		"Exists a value":   {terms(corev1.NodeSelectorRequirement{Key: "a", Operator: "Exists", Values: []string{"x"}}), affinityField + ".values"},
		"Gt two":           {terms(corev1.NodeSelectorRequirement{Key: "a", Operator: "Gt", Values: []string{"1", "2"}}), affinityField + ".values"},
		"unknown operator": {terms(corev1.NodeSelectorRequirement{Key: "a", Operator: "Near"}), affinityField + ".operator"},
		"bad key":          {terms(corev1.NodeSelectorRequirement{Key: "a b", Operator: "Exists"}), affinityField + ".key"},
		"bad value":        {terms(corev1.NodeSelectorRequirement{Key: "a", Operator: "In", Values: []string{"x y"}}), affinityField + ".values[0]"},
		"bad field": {func(v pv) {
			v.Spec.NodeAffinity = onNode("n1")
			v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchFields = []corev1.NodeSelectorRequirement{{Key: "spec", Operator: "In", Values: []string{"x"}}}
		}, "spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assertFault(t, newAPI(t), test.field, bindingtest.Volume("a", "1Gi", test.change)) })
	}
}

const affinityField = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0]"

func testValidateClaim(t *testing.T, newAPI NewAPI) {
	selector := func(requirement metav1.LabelSelectorRequirement) func(pvc) {
		return func(c pvc) {
			c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
		}
	}
	const expression = "spec.selector.matchExpressions[0]"
	tests := map[string]struct {
		change func(pvc)
		field  string
	}{
		"valid":                {func(pvc) {}, ""},
		"no name":              {func(c pvc) { c.Name = "" }, "metadata.name"},
		"no modes":             {func(c pvc) { c.Spec.AccessModes = nil }, "spec.accessModes"},
		"unknown mode":         {func(c pvc) { c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{"Sometimes"} }, "spec.accessModes"},
		"no request":           {func(c pvc) { c.Spec.Resources.Requests = nil }, "spec.resources[storage]"},
		"negative request":     {requests("-1Gi"), "spec.resources[storage]"},
		"X7 selector operator": {selector(metav1.LabelSelectorRequirement{Key: "a", Operator: "Near"}), expression + ".operator"},
		"X7 selector values":   {selector(metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpIn}), expression + ".values"},
		"selector labels":      {func(c pvc) { c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}} }, "spec.selector.matchLabels"},
		"bad class":            {classOf("A b"), "spec.storageClassName"},
		"no class":             {classOf(""), ""},
		"bad attributes class": {func(c pvc) { c.Spec.VolumeAttributesClassName = new("A b") }, "spec.volumeAttributesClassName"},
		"unknown volume mode":  {func(c pvc) { c.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }, "spec.volumeMode"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assertFault(t, newAPI(t), test.field, bindingtest.Claim("default", "data", "1Gi", test.change))
		})
	}
}

func testValidateTheRest(t *testing.T, newAPI NewAPI) {
	nameless := bindingtest.Pod("default", "web", "n1", "data")
	nameless.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = ""
	tests := map[string]struct {
		object obj.Object
		field  string
	}{
		"class":             {bindingtest.Class("fast"), ""},
		"no provisioner":    {bindingtest.Class("fast", func(c sc) { c.Provisioner = "" }), "provisioner"},
		"bad provisioner":   {bindingtest.Class("fast", func(c sc) { c.Provisioner = "a b" }), "provisioner"},
		"recycling class":   {bindingtest.Class("fast", func(c sc) { c.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRecycle) }), "reclaimPolicy"},
		"X7 binding mode":   {bindingtest.Class("fast", func(c sc) { c.VolumeBindingMode = new(storagev1.VolumeBindingMode("")) }), "volumeBindingMode"},
		"pod":               {bindingtest.Pod("default", "web", "n1", "data"), ""},
		"pod without claim": {nameless, "spec.volumes[0].persistentVolumeClaim.claimName"},
		"node":              {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assertFault(t, newAPI(t), test.field, test.object) })
	}
}
