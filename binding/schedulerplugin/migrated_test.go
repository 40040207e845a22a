package schedulerplugin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// S3, S8: the zone of an in-tree volume that is migrated counts. It keeps a bound claim's pod from a node of another zone, and a
// claim from being bound there to a volume that is free, before anything is written.
func TestS3MigratedVolumeInAnotherZone(t *testing.T) {
	const here, there = "us-east-1", "us-east-2"
	inTree := func(name string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		return bindingtest.Volume(name, "10Gi", append(changes, func(v *corev1.PersistentVolume) {
			v.Spec.StorageClassName = "local"
			v.Labels = map[string]string{corev1.LabelFailureDomainBetaZone: here, corev1.LabelFailureDomainBetaRegion: "us-east-1a"}
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
		})...)
	}
	taken := inTree("taken", func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "there", UID: "uid"}
	})
	migrated := func(node string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node, Annotations: map[string]string{corev1.MigratedPluginsAnnotationKey: "kubernetes.io/gce-pd"}}}
	}
	s := schedulerOn(t, nil, taken, inTree("free"), claim("there", "local", boundTo("taken"), func(c *corev1.PersistentVolumeClaim) { c.UID = "uid" }),
		claim("new", "local"), migrated("n1"), migrated("n2"), pod("web", "new"))
	for i, zone := range []string{here, there} {
		s.nodes[i].Labels["topology.gke.io/zone"] = zone
	}

	bound := pod("bound", "there")
	assert.Equal(t, map[string]string{"n2": "node(s) didn't match PersistentVolume's node affinity"}, s.filter(s.plan(bound), bound))

	web := s.pod("web")
	state := s.plan(web)
	assert.Empty(t, s.filter(state, web))
	s.reserve(state, web, "n2")
	status := s.PreBind(t.Context(), state, web, "n2")
	assert.Equal(t, framework.Error, status.Code())
	assert.Equal(t, "pvc/default/new, pv/free: VolumeElsewhere: the volume cannot be used on node n2", status.Message())
	assert.Zero(t, s.writes())
}
