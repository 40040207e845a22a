package binding_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/reclaim"
)

// TestR7ReserveAgreesWithM12 holds what Reserve says of a claim that does not fit to what the search for a volume says
// of it once the volume is reserved.
func TestR7ReserveAgreesWithM12(t *testing.T) {
	modes := [][]corev1.PersistentVolumeAccessMode{{corev1.ReadWriteOnce}, {corev1.ReadOnlyMany, corev1.ReadWriteOnce}}
	volumeModes := []*corev1.PersistentVolumeMode{nil, new(corev1.PersistentVolumeFilesystem), new(corev1.PersistentVolumeBlock)}
	classes := []*string{nil, new(""), new("gold"), new("slow")}
	var volumes []*corev1.PersistentVolume
	var claims []*corev1.PersistentVolumeClaim
	for _, size := range []string{"1Gi", "2Gi"} {
		for _, modes := range modes {
			for _, mode := range volumeModes {
				for _, class := range classes {
					volumes = append(volumes, knownVolume("a", sized(size), func(v *corev1.PersistentVolume) {
						v.Spec.ClaimRef, v.Spec.AccessModes, v.Spec.VolumeMode, v.Spec.VolumeAttributesClassName = nil, modes, mode, class
					}))
					claims = append(claims, knownClaim(func(c *corev1.PersistentVolumeClaim) {
						c.Spec.Resources.Requests = storage(size)
						c.Spec.AccessModes, c.Spec.VolumeMode, c.Spec.VolumeAttributesClassName = modes, mode, class
					}))
				}
			}
		}
	}
	fits := 0
	for _, volume := range volumes {
		for _, claim := range claims {
			_, err := reclaim.Reserve(volume, claim, reclaim.Known{})
			if err == nil {
				fits++
			}
			reserved := volume.DeepCopy()
			refersTo(claim.Namespace, claim.Name, "")(reserved)
			mismatches, invalid := binding.Check(claim, reserved, binding.Terms{})
			require.NoError(t, invalid)
			assert.Equal(t, reasonsOf(mismatches), unfit(err), "%s", mismatches)
		}
	}
	assert.NotZero(t, fits)
}

func reasonsOf(mismatches binding.Mismatches) (reasons []string) {
	for _, mismatch := range mismatches {
		reasons = append(reasons, string(mismatch.Reason))
	}
	return reasons
}

func unfit(err error) (reasons []string) {
	refused := (*reclaim.Refusal)(nil)
	if errors.As(err, &refused) {
		for _, objection := range refused.Objections {
			reason, _, _ := strings.Cut(objection.Message, ":")
			reasons = append(reasons, reason)
		}
	}
	return reasons
}
