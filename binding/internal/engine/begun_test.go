package engine_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// V3, X2: a claim is deleted, and made again, while the first write of its binding waits (client-go's rate limit, a 429, a paused process). The
// volume may have data that is meant for its name: it is not Released for the claim that is gone, but as it was before.
func TestV3TheClaimGoesWhileItsBindingIsBegun(t *testing.T) {
	told := func(cluster *Driven) (n int) {
		for _, event := range cluster.Events() {
			if event.Reason == decision.EventVolumeMismatch && strings.Contains(event.Message, "was being bound to") {
				n++
			}
		}
		return n
	}
	for _, way := range []string{"reserved", "reserved, Released before", "reserved, the reply is lost", "reserved, Released before, the reply is lost", "named", "made again"} {
		for _, made := range []string{"made again later", "made again at once"} {
			t.Run("V3 X2 "+way+", "+made, func(t *testing.T) {
				cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": never{t}}}})
				make := func(object obj.Object) {
					_, err := cluster.Create(t.Context(), object)
					require.NoError(t, err)
				}
				claim := func() {
					make(bindingtest.Claim("default", "data", "1Gi", func(c *corev1.PersistentVolumeClaim) {
						if !strings.HasPrefix(way, "reserved") {
							c.Spec.VolumeName = "pv"
						}
					}))
				}
				volume := func() {
					make(bindingtest.Volume("pv", "1Gi", func(v *corev1.PersistentVolume) {
						v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
						if strings.HasPrefix(way, "reserved") {
							v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
						}
					}))
					if strings.Contains(way, "Released before") {
						released := cluster.Volume("pv")
						released.Status.Phase = corev1.VolumeReleased
						_, err := cluster.UpdateStatus(t.Context(), released)
						require.NoError(t, err)
					}
				}
				claim()
				if way == "made again" {
					volume()
					require.NoError(t, cluster.Settle(t.Context()))
					vanish(t, cluster, obj.VolumeKey("pv"))
				}
				require.NoError(t, cluster.Settle(t.Context()))
				volume()
				first := bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)
				cluster.Client.Use(bindingtest.Before(1, first, func() {
					vanish(t, cluster, DataKey)
					if made == "made again at once" {
						claim()
					}
				}))
				if strings.HasSuffix(way, "the reply is lost") {
					cluster.Client.Use(bindingtest.LoseAnswer(1, first))
				}

				require.NoError(t, cluster.Settle(t.Context()))
				if made == "made again later" {
					kept := cluster.Volume("pv")
					assert.Equal(t, corev1.VolumeAvailable, kept.Status.Phase)
					assert.False(t, phase.BoundByController(kept))
					assert.Equal(t, DataKey, obj.ReferencedClaim(kept), "no other's")
					assert.Empty(t, kept.Spec.ClaimRef.UID)
					assert.Equal(t, 1, told(cluster), "V4")
					claim()
					require.NoError(t, cluster.Settle(t.Context()))
				}
				assertBound(t, cluster)
			})
		}
	}
}

// never is a deleter that is not to be called.
type never struct{ t *testing.T }

func (n never) Delete(context.Context, hooks.ReclaimRequest) error {
	assert.Fail(n.t, "X2 its storage is deleted")
	return nil
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
