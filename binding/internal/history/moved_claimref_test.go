package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// V1, X1, X3: a person writes another name into the claimRef of a Bound claim's volume, and the controller is paused anywhere in what it does then.
// Meanwhile the claimRef is removed, and another controller goes on, whose cache of claims is as of before that one was Bound. While the claim is not
// Lost, and has not been told so, no other gets its volume.
func TestV1AControllerIsPausedWhileAClaimRefIsMoved(t *testing.T) {
	pauseBeforeEach(t, 5, func(n int) (paused bool) {
		server := bindingtest.NewServer()
		leader := func(name string) *bindingtest.Driver {
			return bindingtest.NewDriver(server, bindingtest.DriverOptions{Name: name, BindingOptions: decision.Options{Protection: decision.ProtectionOn}})
		}
		for _, object := range []obj.Object{
			bindingtest.Volume("a", "2Gi", RefersTo("default", "data", "")),
			bindingtest.Claim("another", "waits", "1Gi", RequestingClass(new(""))),
			bindingtest.Claim("default", "data", "1Gi", RequestingClass(new(""))),
		} {
			_, err := server.Create(t.Context(), object)
			require.NoError(t, err)
		}
		claimRef := func(edit VolumeEdit) {
			volume := server.Volume("a")
			edit(volume)
			_, err := server.Update(t.Context(), volume)
			require.NoError(t, err)
		}
		first, second := leader("first"), leader("second")
		second.Hold(obj.KindClaim)
		second.Deliver(obj.KindClaim, 2)
		require.NoError(t, first.Settle(t.Context()))
		require.Equal(t, corev1.ClaimBound, server.Claim("default", "data").Status.Phase)

		lost := false
		claimRef(RefersTo("default", "typo", ""))
		made := pauseBefore(n, first.Client, func() {
			lost = server.Claim("default", "data").Status.Phase == corev1.ClaimLost
			claimRef(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
			require.NoError(t, second.Settle(t.Context()))
		})
		require.NoError(t, first.Settle(t.Context()))
		second.Release(obj.KindClaim)
		for range 4 {
			require.NoError(t, bindingtest.Settle(t.Context(), first, second))
			require.NoError(t, first.AdvanceClock(t.Context()))
			require.NoError(t, second.AdvanceClock(t.Context()))
		}
		if data := server.Claim("default", "data"); *made && !lost {
			assert.Equal(t, corev1.ClaimBound, data.Status.Phase, "paused before call %d", n)
			assert.Equal(t, data.UID, server.Volume("a").Spec.ClaimRef.UID, "paused before call %d", n)
			assert.Empty(t, server.Claim("another", "waits").Spec.VolumeName, "paused before call %d", n)
		}
		return *made
	})
}
