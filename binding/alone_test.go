package binding_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// A tenant makes claims that name the volume of another, whose deleter fails, changes them and deletes them, all the time.
func TestW6ClaimsOfOthersDoNotEndABackoff(t *testing.T) {
	calls := func(t *testing.T, named string) (calls int) {
		synctest.Test(t, func(t *testing.T) {
			deletes := Deletes(func(context.Context, hooks.ReclaimRequest) error {
				calls++
				return errors.New("the disk is busy")
			})
			server, controller := hookedController(t, hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": deletes}})
			crowd := newCrowd(t, 4, controller, server)
			crowd.create(t, bindingtest.Volume("disk", "1Gi", func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "other", Name: "gone", UID: "gone"}
			}))
			observe := func(object obj.Object, err error) {
				require.NoError(t, err)
				crowd.add(crowd.Observe(object)...)
			}
			for n := range 100 {
				claim := obj.ClaimKey("tenant", fmt.Sprint(n))
				crowd.create(t, bindingtest.Claim(claim.Namespace, claim.Name, "1Gi", ofClass("none"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = named }))
				time.Sleep(100 * time.Millisecond)
				stored := server.Claim(claim.Namespace, claim.Name).DeepCopy()
				stored.Labels = map[string]string{"changed": "yes"}
				changed, err := server.UpdateClaim(t.Context(), stored)
				observe(changed, err)
				time.Sleep(100 * time.Millisecond)
				crowd.add(crowd.ObserveDeleted(changed)...)
			}
		})
		return calls
	}
	t.Run("W6 W3", func(t *testing.T) {
		alone := calls(t, "")
		require.NotZero(t, alone)
		assert.Equal(t, alone, calls(t, "disk"), "as often as without them")
	})
}
