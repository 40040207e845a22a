package match_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestInvalidClaims(t *testing.T) {
	badSelector := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: "Near", Values: []string{"gold"}}}}
	}
	cases := []struct {
		rule          string
		claim         ClaimEdit
		terms         match.Terms
		object, field string
		says          string
	}{
		{"M8 X7 malformed selector", badSelector, match.Terms{}, "pvc/default/data", "spec.selector", "Near"},
		{"X7 unknown access mode", RequestingModes("WriteNever"), match.Terms{}, "pvc/default/data", "spec.accessModes", "WriteNever"},
		{"X7 negative request", Requesting("-1Gi"), match.Terms{}, "pvc/default/data", "spec.resources.requests.storage", "-1Gi"},
		{"M11 X7 class without a mode", func(*corev1.PersistentVolumeClaim) {}, match.Terms{Class: ClassWith(nil)},
			"storageclass/fast", "volumeBindingMode", "WaitForFirstConsumer"},
		{"M11 X7 class with an unknown mode", func(*corev1.PersistentVolumeClaim) {},
			match.Terms{Class: ClassWith(new(storagev1.VolumeBindingMode("Later")))},
			"storageclass/fast", "volumeBindingMode", "WaitForFirstConsumer"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			claim, volume := FitClaim(c.claim), FitVolume("pv-a")
			request := match.Request{Claim: claim, Volumes: []*corev1.PersistentVolume{volume}, Terms: c.terms}
			_, checkErr := match.Check(claim, volume, c.terms)
			_, findErr := match.Find(request)
			_, explainErr := match.Explain(request)
			for _, err := range []error{checkErr, findErr, explainErr} {
				var invalid *obj.InvalidError
				require.ErrorAs(t, err, &invalid)
				assert.Equal(t, c.object, invalid.Object)
				assert.Equal(t, c.field, invalid.Field)
				assert.Contains(t, invalid.Error(), c.says)
				assert.Contains(t, invalid.Error(), c.object+": "+c.field+": ")
			}
		})
	}
	t.Run("C7 X7 malformed selector", func(t *testing.T) {
		_, err := match.CheckNamed(FitClaim(badSelector), FitVolume("pv-a"), nil)
		assert.ErrorContains(t, err, "pvc/default/data: spec.selector")
	})
}

func TestX7AClaimOfAnUnknownVolumeMode(t *testing.T) {
	claim := FitClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) })
	_, err := match.Check(claim, FitVolume("a"), match.Terms{})
	require.ErrorContains(t, err, "pvc/default/data: spec.volumeMode: unknown: Tape")

	tape := FitVolume("a", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) })
	mismatches, err := match.Check(FitClaim(), tape, match.Terms{})
	require.NoError(t, err)
	require.Equal(t, match.Malformed, mismatches[0].Reason)
}

// X7: the API server takes a claim of any exponent, and to work one of millions out takes it seconds each time.
func TestX7AClaimOfAHugeExponent(t *testing.T) {
	began := time.Now()
	cluster := NewDriven(bindingtest.Claim("default", "huge", "1e10000000"), bindingtest.Claim("default", "small", "5Gi"),
		bindingtest.Volume("a", "10Gi"), bindingtest.Volume("b", "10Gi"), bindingtest.Volume("vast", "1e9999999"))
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, "a", cluster.Claim("default", "small").Spec.VolumeName)
	assert.Equal(t, corev1.ClaimPending, cluster.Claim("default", "huge").Status.Phase)
	assert.Less(t, time.Since(began), 10*time.Second)
}
