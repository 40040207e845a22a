package index_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
)

// selecting is a claim that asks for these labels and meets these conditions.
func selecting(namespace, name string, labels map[string]string, conditions ...metav1.LabelSelectorRequirement) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim(namespace, name, "1Gi", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: conditions}
	})
}

func labelled(labels map[string]string) *corev1.PersistentVolume {
	return bindingtest.Volume("pv", "10Gi", func(v *corev1.PersistentVolume) { v.Labels = labels })
}

// A volume is compared with few selectors: with one that many claims have once, and of those that ask for a label which
// all volumes have only with the ones that ask for the rest too.
func TestWaitingComparesFewSelectors(t *testing.T) {
	var waiting index.Waiting
	var claims []*corev1.PersistentVolumeClaim
	for i := range 100 {
		name := fmt.Sprint("data-", i)
		claims = append(claims,
			selecting("exists", name, nil, metav1.LabelSelectorRequirement{Key: "ssd", Operator: metav1.LabelSelectorOpExists}),
			selecting("not", name, nil, metav1.LabelSelectorRequirement{Key: "disk", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"9", "8", "7"}}),
			selecting("gold", name, map[string]string{"app": "db", "tier": "gold"}),
			selecting("shard", name, map[string]string{"app": "db", "shard": fmt.Sprint(i)}))
	}
	for _, claim := range claims {
		waiting.Set(claim, nil)
	}
	labels := map[string]string{"app": "db", "shard": "7", "disk": "7"}
	var asked []string
	waiting.First(labelled(labels), func(claim *corev1.PersistentVolumeClaim) bool {
		asked = append(asked, obj.KeyOf(claim).String())
		return false
	})
	assert.Equal(t, []string{"pvc/shard/data-7"}, asked)
	assert.LessOrEqual(t, waiting.Compared(labels), 6)

	waiting.Set(selecting("default", "data", map[string]string{"other": "label"}), nil)
	for _, claim := range claims {
		waiting.Delete(obj.KeyOf(claim))
	}
	assert.Zero(t, waiting.Compared(labels), "nothing is left of them")
	assert.Equal(t, 1, waiting.Queues())
}

func TestWaitingForgets(t *testing.T) {
	anyone := func(*corev1.PersistentVolumeClaim) bool { return true }
	var waiting index.Waiting
	ssd := map[string]string{"disk": "ssd"}
	assert.Nil(t, waiting.First(labelled(ssd), anyone), "nobody waits")
	claim := selecting("default", "data", ssd)
	waiting.Set(claim, nil)
	assert.Same(t, claim, waiting.First(labelled(ssd), anyone))

	bound := claim.DeepCopy()
	bound.Spec.VolumeName = "pv"
	waiting.Set(bound, nil)
	assert.Zero(t, waiting.Len(), "it does not wait any more")
	assert.Zero(t, waiting.Queues(), "nothing is left of it")
	waiting.Delete(obj.KeyOf(claim))

	waiting.Set(claim, &storagev1.StorageClass{VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)})
	assert.Zero(t, waiting.Len(), "M11: delayed")
	waiting.Set(claim, nil)
	waiting.Delete(obj.KeyOf(claim))
	assert.Zero(t, waiting.Queues())
}
