package preview_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

type volumeEdit = func(*corev1.PersistentVolume)

type claimEdit = func(*corev1.PersistentVolumeClaim)

func policy(policy corev1.PersistentVolumeReclaimPolicy) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy }
}

func provisionedBy(name string) volumeEdit {
	return func(v *corev1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&v.ObjectMeta, "pv.kubernetes.io/provisioned-by", name)
	}
}

func volumeFinalizer(name string) volumeEdit {
	return func(v *corev1.PersistentVolume) { v.Finalizers = append(v.Finalizers, name) }
}

func naming(volume string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
}

// volumeOf and claimOf are parts of a cluster at rest in which shop/orders has pv-1.
func volumeOf(edits ...volumeEdit) *corev1.PersistentVolume {
	return bindingtest.Volume("pv-1", "5Gi", edits...)
}

func claimOf(edits ...claimEdit) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim("shop", "orders", "5Gi", edits...)
}

// atRest returns a cluster that has settled.
func atRest(t testing.TB, rules decision.Options, objects ...obj.Object) *testkit.Driven {
	rules.Protection = decision.ProtectionOn
	cluster := testkit.NewDrivenWith(bindingtest.DriverOptions{BindingOptions: rules}, objects...)
	require.NoError(t, cluster.Settle(context.Background()))
	return cluster
}

// dump returns everything on the server.
func dump(t testing.TB, server *bindingtest.Server) []obj.Object {
	var all []obj.Object
	for _, kind := range bindingtest.Kinds() {
		list, err := server.List(context.Background(), kind, "")
		require.NoError(t, err)
		all = append(all, list...)
	}
	return all
}

// find returns the object of that key, as kubectl would name it, in a dump.
func find(t testing.TB, objects []obj.Object, kind obj.Kind, name string) obj.Object {
	for _, object := range objects {
		if key, _ := bindingtest.KeyOf(object); key.Kind == kind && key.Name == name {
			return object.DeepCopyObject().(obj.Object)
		}
	}
	require.Fail(t, "no such object", "%s %s", kind, name)
	return nil
}
