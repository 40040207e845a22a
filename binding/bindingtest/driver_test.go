package bindingtest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

func newPair() *testkit.Driven {
	return testkit.NewDriven(bindingtest.Volume("a", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
}

// writes counts what changed anything, since the first n calls.
func writes(server *bindingtest.Server, n int) int {
	count := 0
	for _, call := range server.CallsSince(n) {
		if call.Writes() && call.Changed() {
			count++
		}
	}
	return count
}

func assertBound(t *testing.T, cluster *testkit.Driven) {
	t.Helper()
	volume, claim := cluster.Volume("a"), cluster.Claim("default", "data")
	assert.Equal(t, corev1.VolumeBound, volume.Status.Phase)
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	assert.Equal(t, claim.UID, volume.Spec.ClaimRef.UID)
	assert.Equal(t, "a", claim.Spec.VolumeName)
}

func TestSettleBinds(t *testing.T) {
	cluster := newPair()
	before := len(cluster.Calls())
	require.NoError(t, cluster.Settle(t.Context()))
	assertBound(t, cluster)
	assert.Len(t, cluster.CallsSince(before), 4, "B6 four writes and no read")

	calls := len(cluster.Calls())
	cluster.Resync()
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Len(t, cluster.Calls(), calls, "X8 a second pass does nothing")
}

func TestCrashAfterEachWriteThenRestart(t *testing.T) {
	for n := range 5 {
		t.Run(fmt.Sprintf("B5 crash after write %d", n), func(t *testing.T) {
			cluster := newPair()
			cluster.Client.CrashAfter(n)
			before := len(cluster.Calls())
			require.ErrorIs(t, cluster.Settle(t.Context()), bindingtest.ErrCrashed)
			assert.Equal(t, n, writes(cluster.Server, before))
			cluster.Restart()
			require.NoError(t, cluster.Settle(t.Context()))
			assertBound(t, cluster)
			assert.Equal(t, 4, writes(cluster.Server, before), "nothing is written twice")
		})
	}
}

func TestFaultsAtEachWrite(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for name, fault := range map[string]bindingtest.Hook{
			"Conflict":    bindingtest.Conflict(n, bindingtest.AnyWrite),
			"answer lost": bindingtest.LoseAnswer(n, bindingtest.AnyWrite),
			"not sent":    bindingtest.Fail(n, bindingtest.AnyWrite, errBroken),
		} {
			t.Run(fmt.Sprintf("B6 %s at write %d", name, n), func(t *testing.T) {
				cluster := newPair()
				cluster.Client.Use(fault)
				before := len(cluster.Calls())
				require.NoError(t, cluster.Settle(t.Context()))
				assertBound(t, cluster)
				assert.Equal(t, 4, writes(cluster.Server, before))
			})
		}
	}
}

func TestHeldKindsAreNotSeen(t *testing.T) {
	cluster := newPair()
	cluster.Hold(obj.KindVolume)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Nil(t, cluster.Volume("a").Spec.ClaimRef, "the volume is not known yet")

	must.Create(t, cluster.Server, bindingtest.Volume("b", "5Gi"))
	assert.Equal(t, 1, cluster.Deliver(obj.KindVolume, 1))
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, "a", cluster.Claim("default", "data").Spec.VolumeName, "b would fit better, but is not known")

	cluster.Release(obj.KindVolume)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, corev1.VolumeAvailable, cluster.Volume("b").Status.Phase)
	assert.Zero(t, cluster.Deliver(obj.KindVolume, 1), "nothing is left")
}

func TestTwoControllersOnOneServer(t *testing.T) {
	cluster := newPair()
	old := bindingtest.NewDriver(cluster.Server, bindingtest.DriverOptions{Name: "old leader"})
	require.NoError(t, bindingtest.Settle(t.Context(), cluster.Driver, old))
	assertBound(t, cluster)
	assert.Equal(t, 6, writes(cluster.Server, 0), "two creates and one bind")
}

func TestDelaysAreNotWork(t *testing.T) {
	cluster := newPair()
	down := true
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if down && call.Writes() {
			return errBroken
		}
		return do()
	})
	require.ErrorIs(t, cluster.Settle(t.Context()), errBroken)
	require.NotEmpty(t, cluster.Delayed())
	for _, delay := range cluster.Delayed() {
		assert.Positive(t, delay.After)
	}
	down = false
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Nil(t, cluster.Volume("a").Spec.ClaimRef, "nothing is due")
	require.NoError(t, cluster.AdvanceClock(t.Context()))
	assertBound(t, cluster)
	assert.Empty(t, cluster.Delayed())
}

func TestProtectionIsAnOption(t *testing.T) {
	for name, test := range map[string]struct {
		options bindingtest.DriverOptions
		goes    bool
	}{"on": {bindingtest.DriverOptions{}, true}, "off": {bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOff}}, false}} {
		t.Run("F3 "+name, func(t *testing.T) {
			cluster := testkit.NewDrivenWith(test.options, bindingtest.Volume("a", "1Gi"))
			require.NoError(t, cluster.Settle(t.Context()))
			require.NoError(t, cluster.Delete(t.Context(), keyA, metav1.DeleteOptions{}))
			require.NoError(t, cluster.Settle(t.Context()))
			assert.Equal(t, test.goes, cluster.Volume("a") == nil)
		})
	}
}
