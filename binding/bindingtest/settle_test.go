package bindingtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// fighter undoes B1 as soon as it is written.
func fighter(server *bindingtest.Server) bindingtest.Hook {
	rival := server.NewClient("rival")
	return func(call *bindingtest.Call, do func() error) error {
		err := do()
		if volume, ok := call.After.(pv); ok && err == nil && volume.Spec.ClaimRef != nil {
			volume = volume.DeepCopy()
			volume.Spec.ClaimRef, volume.ResourceVersion = nil, ""
			_, err := rival.Update(context.Background(), volume)
			return err
		}
		return err
	}
}

func TestSettleSaysWhatFlips(t *testing.T) {
	cluster := newPair()
	cluster.Client.Use(fighter(cluster.Server))
	err := cluster.Settle(t.Context())
	var unsettled *bindingtest.UnsettledError
	require.ErrorAs(t, err, &unsettled, "X8")
	assert.Equal(t, keyA, unsettled.Key)
	assert.Greater(t, unsettled.Count, 20)
	assert.ErrorContains(t, err, "pv/a was written")
	assert.ErrorContains(t, err, "controller: update pv/a: spec.claimRef={default/data uid-2}")
	assert.ErrorContains(t, err, "rival: update pv/a: -spec.claimRef")
}

func TestSettleReportsBadObjectsAndDoesTheRest(t *testing.T) {
	cluster := newPair()
	bad := bindingtest.Claim("default", "bad", "1Gi", func(c pvc) {
		c.UID, c.Status.Phase = "bad", corev1.ClaimPending
		c.Finalizers = []string{"kubernetes.io/pvc-protection"}
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	})
	require.NoError(t, cluster.Load(bad))
	err := cluster.Settle(t.Context())
	var invalid *obj.InvalidError
	require.ErrorAs(t, err, &invalid, "X7")
	assert.ErrorContains(t, err, "pvc/default/bad")
	assert.ErrorContains(t, err, "selector")
	assertBound(t, cluster)
	require.NoError(t, cluster.Settle(t.Context()), "it is said once")
}

func TestSettleStopsWithTheContext(t *testing.T) {
	cluster := newPair()
	ctx, cancel := context.WithCancel(t.Context())
	cluster.Client.Use(bindingtest.Before(2, bindingtest.AnyWrite, cancel))
	require.ErrorIs(t, cluster.Settle(ctx), context.Canceled)
	require.NoError(t, bindingtest.Settle(t.Context()), "no controller, no work")
}

func TestErrorThatGoesAwayIsNotReported(t *testing.T) {
	cluster := newPair()
	cluster.Client.Use(
		bindingtest.Fail(1, bindingtest.AnyWrite, errBroken),
		bindingtest.Fail(2, bindingtest.AnyWrite, errBroken),
	)
	require.NoError(t, cluster.Settle(t.Context()))
	assertBound(t, cluster)
}

func TestSettleIsDeterministic(t *testing.T) {
	story := func() []string {
		cluster := newPair()
		for _, name := range []string{"c", "b", "d"} {
			must.Create(t, cluster.Server, bindingtest.Volume(name, "7Gi"))
			must.Create(t, cluster.Server, bindingtest.Claim("default", name, "6Gi"))
		}
		require.NoError(t, cluster.Settle(t.Context()))
		var lines []string
		for _, call := range cluster.Calls() {
			lines = append(lines, call.Actor+" "+call.String())
		}
		return lines
	}
	first := story()
	for range 20 {
		require.Equal(t, first, story())
	}
}

func TestADeletedClaimGoesAndItsVolumeIsReleased(t *testing.T) {
	cluster := newPair()
	require.NoError(t, cluster.Settle(t.Context()))
	require.NoError(t, cluster.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Nil(t, cluster.Claim("default", "data"), "F2")
	assert.Equal(t, corev1.VolumeReleased, cluster.Volume("a").Status.Phase, "V3")
}

func TestEventsAreThoseRecorded(t *testing.T) {
	cluster := testkit.NewDriven(bindingtest.Claim("default", "data", "1Gi"))
	require.NoError(t, cluster.Settle(t.Context()))
	events := cluster.Events()
	require.Len(t, events, 1)
	assert.Equal(t, decision.EventFailedBinding, events[0].Reason, "C5")
}

func TestADryRunIsRefused(t *testing.T) {
	cluster := newPair()
	err := cluster.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	assert.True(t, apierrors.IsBadRequest(err), "%v", err)
	assert.NotNil(t, cluster.Claim("default", "data"))
}
