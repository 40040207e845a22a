package match

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
)

// plainPair is a claim and a volume that fit, with something for every rule to look at.
func plainPair() (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
	claim.Spec.StorageClassName = new("fast")
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-a", Labels: map[string]string{"tier": "gold"}}}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1000000M")}
	volume.Spec.StorageClassName = "fast"
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}}}}
	volume.Status.Phase = corev1.VolumeAvailable
	return claim, volume
}

func TestTheVerdictDoesNotAllocate(t *testing.T) {
	claim, volume := plainPair()
	selective := claim.DeepCopy()
	selective.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	elsewhere := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "b"}}}
	nobody := func(string) []obj.Key { return nil }
	others := []obj.Key{obj.VolumeKey("x")}
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		terms Terms
		want  bool
	}{
		"plain":             {claim, Terms{Owners: nobody}, true},
		"selector":          {selective, Terms{}, true},
		"a node elsewhere":  {claim, Terms{Node: elsewhere}, false},
		"a bare node":       {claim, Terms{Node: &corev1.Node{}}, false},
		"somebody's volume": {claim, Terms{Owners: func(string) []obj.Key { return others }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			criteria, err := NewCriteria(c.claim, c.terms)
			require.NoError(t, err)
			require.Equal(t, c.want, criteria.Fits(volume))
			assert.Zero(t, testing.AllocsPerRun(100, func() { criteria.Fits(volume) }))
		})
	}
}

// Neither reading the claim nor finding a volume costs an allocation for each volume, nor any at all
// where no selector has to be compiled.
func TestFindDoesNotAllocate(t *testing.T) {
	claim, volume := plainPair()
	var volumes []*corev1.PersistentVolume
	for i := range 100 {
		another := volume.DeepCopy()
		another.Name = strings.Repeat("x", i+1)
		volumes = append(volumes, another)
	}
	request := Request{Claim: claim, Volumes: volumes}
	assert.Zero(t, testing.AllocsPerRun(10, func() { _, _ = Find(request) }))
}

func TestRulesAreInTheirOrder(t *testing.T) {
	order := []Reason{Deleting, BoundToAnotherClaim, Malformed, TooSmall, AccessModes, VolumeMode, StorageClass,
		AttributesClass, Selector, NotAvailable, NodeAffinity, WaitForFirstConsumer}
	require.Len(t, fitRules, len(order))
	for i, reason := range order {
		assert.Equal(t, reason, fitRules[i].reason)
		assert.Equal(t, i, position(reason))
	}
}

func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 5, ""},
		{"abcde", 5, "abcde"},
		{"abcdef", 5, "ab…"},
		{"a\nb\tc", 5, "a b c"},
		{"éééé", 6, "é…"},
		{"abc", 0, "…"},
	} {
		assert.Equal(t, c.want, oneline.Text(c.text, c.limit), "%q to %d", c.text, c.limit)
	}
}

// A summary is the same in whatever order the verdicts come.
func TestSummaryInAnyOrder(t *testing.T) {
	claim, volume := plainPair()
	verdict := func(name, class, capacity string) Verdict {
		v := volume.DeepCopy()
		v.Name, v.Spec.StorageClassName = name, class
		v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(capacity)
		c, err := NewCriteria(claim, Terms{})
		require.NoError(t, err)
		return c.Verdict(v)
	}
	verdicts := []Verdict{verdict("a", "slow", "9Gi"), verdict("b", "fast", "1Gi"), verdict("c", "fast", "2Gi"), verdict("d", "slow", "9Gi")}
	want := "0/4 volumes fit: 2 TooSmall (largest 2Gi), 2 StorageClass; a would fit but for its class: \"slow\", the claim requests \"fast\""
	for range verdicts {
		verdicts = append(verdicts[1:], verdicts[0])
		var forwards, backwards Counts
		for i := range verdicts {
			forwards.Add(verdicts[i])
			backwards.Add(verdicts[len(verdicts)-1-i])
		}
		assert.Equal(t, want, forwards.Summary().String())
		assert.Equal(t, want, backwards.Summary().String())
	}
}
