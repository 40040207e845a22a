package index

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// When every volume is gone, nothing is left of it in the index.
func TestIndexForgets(t *testing.T) {
	volume := zonalVolume()
	states := map[string]func(*corev1.PersistentVolume){
		"free":     func(*corev1.PersistentVolume) {},
		"anywhere": func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = nil },
		"candidate": func(v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchFields = []corev1.NodeSelectorRequirement{{}}
		},
		"unindexed":     func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity.Required = &corev1.NodeSelector{} },
		"not available": func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed },
		"claimed":       func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = &corev1.ObjectReference{Name: "x"} },
		"deleting":      func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &v.CreationTimestamp },
		"malformed":     func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil },
	}
	var index Index
	for from, before := range states {
		for to, after := range states {
			for _, edit := range []func(*corev1.PersistentVolume){before, after} {
				version := volume.DeepCopy()
				version.Name = from + "-" + to
				edit(version)
				index.Set(version)
			}
			index.Reserve(from+"-"+to, "", obj.ClaimKey("default", "data"))
		}
	}
	for name := range index.volumes {
		index.Delete(name)
	}
	assert.Empty(t, index.volumes)
	assert.Empty(t, index.free)
	assert.Empty(t, index.notAvailable)
	assert.Empty(t, index.related)
	assert.Empty(t, index.malformed)
	assert.Empty(t, index.reserved)
	assert.Zero(t, index.deleting)
}

func TestBucketForgets(t *testing.T) {
	var s bucket
	for _, more := range [][]corev1.NodeSelectorRequirement{nil, {{}}, nil, {{}}} {
		volume := zonalVolume()
		volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchFields = more
		s.insert(volume)
		assert.Equal(t, 1, s.len())
		assert.Equal(t, map[string]int{"zone": 1}, s.topologyKeys)
		s.remove(volume)
		assert.Zero(t, s.len())
		assert.Empty(t, s.topologyKeys)
		assert.Empty(t, s.exact)
		assert.Empty(t, s.candidates)
		assert.Empty(t, s.labelled)
	}
}

// zonalVolume is a volume with labels that is for the nodes of one zone.
func zonalVolume() *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-a", Labels: map[string]string{"tier": "gold"}}}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}}}}
	volume.Status.Phase = corev1.VolumeAvailable
	return volume
}
