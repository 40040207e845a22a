package bindingtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

const driver = "csi.example.com"

// csiClass is a class of a CSI driver.
func csiClass(name string, mode storagev1.VolumeBindingMode, changes ...func(sc)) sc {
	return bindingtest.Class(name, append([]func(sc){func(class sc) { class.Provisioner, class.VolumeBindingMode = driver, &mode }}, changes...)...)
}

// zoned is a node in a zone.
func zoned(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}}}
}

// statefulSet is what the controller of a StatefulSet makes: a claim and a pod for each replica.
func statefulSet(class string, replicas int) []obj.Object {
	var objects []obj.Object
	for i := range replicas {
		claim := fmt.Sprint("data-db-", i)
		objects = append(objects, bindingtest.Claim("shop", claim, "5Gi", RequestingClass(&class)), bindingtest.Pod("shop", fmt.Sprint("db-", i), "", claim))
	}
	return objects
}

func TestAStatefulSetIsBoundAndPlaced(t *testing.T) {
	objects := append(statefulSet("fast", 2), csiClass("fast", storagev1.VolumeBindingWaitForFirstConsumer), zoned("n1", "a"), zoned("n2", "b"))
	cluster := bindingtest.NewCluster(objects...)
	cluster.MustBind(t)
	for i, zone := range []string{"a", "b"} {
		claim := cluster.Claim("shop", fmt.Sprint("data-db-", i))
		volume := cluster.Volume(claim.Spec.VolumeName)
		assert.Equal(t, driver, volume.Spec.CSI.Driver)
		assert.Equal(t, []corev1.NodeSelectorRequirement{Require1(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zone)},
			volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions)
		pod, err := cluster.Get(t.Context(), bindingtest.PodKey("shop", fmt.Sprint("db-", i)))
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint("n", i+1), pod.(*corev1.Pod).Spec.NodeName)
	}
	for _, call := range cluster.Calls() {
		t.Log(call.Actor, call)
	}
}
