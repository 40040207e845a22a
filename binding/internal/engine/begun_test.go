package engine_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// V3, X2: a claim is deleted, and made again, while the first write of its binding waits (client-go's rate limit, a 429, a paused process). The
// volume may have data that is meant for its name: it is not Released for the claim that is gone, but as it was before.
func TestV3TheClaimGoesWhileItsBindingIsBegun(t *testing.T) {
	for _, way := range []string{"reserved", "named", "made again"} {
		for _, made := range []string{"made again later", "made again at once"} {
			t.Run("V3 X2 "+way+", "+made, func(t *testing.T) {
				cluster := NewDriven()
				make := func(object obj.Object) {
					_, err := cluster.Create(t.Context(), object)
					require.NoError(t, err)
				}
				claim := func() {
					make(bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) {
						if way != "reserved" {
							c.Spec.VolumeName = "pv"
						}
					}))
				}
				volume := func() {
					make(bindingtest.Volume("pv", "1Gi", func(v *corev1.PersistentVolume) {
						v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
						if way == "reserved" {
							v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
						}
					}))
				}
				claim()
				if way == "made again" {
					volume()
					require.NoError(t, cluster.Settle(t.Context()))
					vanish(t, cluster, obj.VolumeKey("pv"))
				}
				require.NoError(t, cluster.Settle(t.Context()))
				volume()
				cluster.Client.Use(bindingtest.Before(1, bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume), func() {
					vanish(t, cluster, DataKey)
					if made == "made again at once" {
						claim()
					}
				}))

				require.NoError(t, cluster.Settle(t.Context()))
				if made == "made again later" {
					kept := cluster.Volume("pv")
					assert.Equal(t, corev1.VolumeAvailable, kept.Status.Phase)
					assert.False(t, phase.BoundByController(kept))
					if way == "named" {
						assert.Nil(t, kept.Spec.ClaimRef, "as it was before")
					} else {
						assert.Equal(t, DataKey, obj.ReferencedClaim(kept), "no other's")
						assert.Empty(t, kept.Spec.ClaimRef.UID)
					}
					claim()
					require.NoError(t, cluster.Settle(t.Context()))
				}
				assertBound(t, cluster)
			})
		}
	}
}

// V3: what is noted of a binding that is begun says nothing of a volume that is Bound.
func TestV3ABoundVolumeIsReleased(t *testing.T) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi", Naming("pv")))
	require.NoError(t, cluster.Settle(t.Context()))
	assertBound(t, cluster)
	vanish(t, cluster, DataKey)
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
}
