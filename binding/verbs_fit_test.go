package binding_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/match"
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
			_, err := reclaim.Reserve(volume, claim, reclaim.Known{AllClaims: true})
			if err == nil {
				fits++
			}
			reserved := volume.DeepCopy()
			refersTo(claim.Namespace, claim.Name, "")(reserved)
			mismatches, invalid := match.Check(claim, reserved, match.Terms{})
			require.NoError(t, invalid)
			assert.Equal(t, reasonsOf(mismatches), unfit(err), "%s", mismatches)
		}
	}
	assert.NotZero(t, fits)
}

// M3: nobody is promised a volume that is never matched, not even who asks for nothing or is still to come.
func TestR7ReserveRefusesMalformedVolumes(t *testing.T) {
	spec := func(change func(*corev1.PersistentVolumeSpec)) *corev1.PersistentVolume {
		return knownVolume("a", func(v *corev1.PersistentVolume) { change(&v.Spec) })
	}
	for name, volume := range map[string]*corev1.PersistentVolume{
		"no capacity":         spec(func(s *corev1.PersistentVolumeSpec) { s.Capacity = nil }),
		"a negative capacity": spec(func(s *corev1.PersistentVolumeSpec) { s.Capacity = storage("-1Gi") }),
		"an unknown mode":     spec(func(s *corev1.PersistentVolumeSpec) { s.AccessModes = append(s.AccessModes, "ReadSometimes") }),
		"a volume mode":       spec(func(s *corev1.PersistentVolumeSpec) { s.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }),
	} {
		t.Run(name, func(t *testing.T) {
			asksNothing := knownClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil })
			toCome := &corev1.PersistentVolumeClaim{ObjectMeta: asksNothing.ObjectMeta}
			for _, claim := range []*corev1.PersistentVolumeClaim{asksNothing, toCome} {
				_, err := reclaim.Reserve(volume, claim, reclaim.Known{AllClaims: true})
				require.Error(t, err)
				assert.Equal(t, "Malformed", unfit(err)[0])
			}
			reserved := volume.DeepCopy()
			refersTo(asksNothing.Namespace, asksNothing.Name, "")(reserved)
			mismatches, err := match.Check(asksNothing, reserved, match.Terms{})
			require.NoError(t, err)
			assert.Equal(t, "Malformed", reasonsOf(mismatches)[0])
		})
	}
}

func reasonsOf(mismatches match.Mismatches) (reasons []string) {
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
