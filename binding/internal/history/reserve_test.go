package history

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
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
					volumes = append(volumes, KnownVolume("a", Sized(size), func(v *corev1.PersistentVolume) {
						v.Spec.ClaimRef, v.Spec.AccessModes, v.Spec.VolumeMode, v.Spec.VolumeAttributesClassName = nil, modes, mode, class
					}))
					claims = append(claims, KnownClaim(func(c *corev1.PersistentVolumeClaim) {
						c.Spec.Resources.Requests = Storage(size)
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
			RefersTo(claim.Namespace, claim.Name, "")(reserved)
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
		return KnownVolume("a", func(v *corev1.PersistentVolume) { change(&v.Spec) })
	}
	for name, volume := range map[string]*corev1.PersistentVolume{
		"no capacity":         spec(func(s *corev1.PersistentVolumeSpec) { s.Capacity = nil }),
		"a negative capacity": spec(func(s *corev1.PersistentVolumeSpec) { s.Capacity = Storage("-1Gi") }),
		"an unknown mode":     spec(func(s *corev1.PersistentVolumeSpec) { s.AccessModes = append(s.AccessModes, "ReadSometimes") }),
		"a volume mode":       spec(func(s *corev1.PersistentVolumeSpec) { s.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }),
	} {
		t.Run(name, func(t *testing.T) {
			asksNothing := KnownClaim(func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil })
			toCome := &corev1.PersistentVolumeClaim{ObjectMeta: asksNothing.ObjectMeta}
			for _, claim := range []*corev1.PersistentVolumeClaim{asksNothing, toCome} {
				_, err := reclaim.Reserve(volume, claim, reclaim.Known{AllClaims: true})
				require.Error(t, err)
				assert.Equal(t, "Malformed", unfit(err)[0])
			}
			reserved := volume.DeepCopy()
			RefersTo(asksNothing.Namespace, asksNothing.Name, "")(reserved)
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
	refused := (*reclaim.Error)(nil)
	if errors.As(err, &refused) {
		for _, objection := range refused.Reasons {
			reason, _, _ := strings.Cut(objection.Message, ":")
			reasons = append(reasons, reason)
		}
	}
	return reasons
}

// dropped returns a volume whose claimRef somebody dropped, and bank/data, whose pod runs on it, Bound to it.
func dropped(edits ...VolumeEdit) (*bindingtest.Server, *tool) {
	server := bindingtest.NewServer()
	volume := KnownVolume("a", append([]VolumeEdit{OnHostPath, InPhase(corev1.VolumeBound)}, edits...)...)
	victim := KnownClaim(Named("data"), BoundTo("a"), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "bank" })
	if err := server.Load(asServed(volume), asServed(victim)); err != nil {
		panic(err)
	}
	return server, &tool{client: server.NewClient("people"), transfer: reclaim.Transfer{Volume: "a"}}
}

// refusedBy asks an operation, reading what it asks for, until it does or refuses for good.
func (t *tool) refusedBy(verb func(reclaim.Known) error) (reasons []reclaim.ReasonCode) {
	for range 10 {
		refused := (*reclaim.Error)(nil)
		if err := verb(t.known); !errors.As(err, &refused) {
			return nil
		}
		if reads := refused.Reads(); len(reads) > 0 {
			_ = t.read(context.Background(), reads[0])
			continue
		}
		for _, objection := range refused.Reasons {
			reasons = append(reasons, objection.Code)
		}
		return reasons
	}
	return []reclaim.ReasonCode{"it reads on and on"}
}

// TestVerbsTakeNothingFromWhoIsBound holds them to M2 and R7: what has no claimRef may be somebody's all the same, and an operation reads all claims to know.
func TestVerbsTakeNothingFromWhoIsBound(t *testing.T) {
	lives := []reclaim.ReasonCode{reclaim.ClaimLives}
	t.Run("Open", func(t *testing.T) {
		server, tool := dropped()
		assert.Equal(t, lives, tool.refusedBy(func(known reclaim.Known) error {
			_, err := reclaim.MakeAvailable(server.Volume("a"), known)
			return err
		}))
	})
	t.Run("Reserve", func(t *testing.T) {
		server, tool := dropped()
		assert.Equal(t, lives, tool.refusedBy(func(known reclaim.Known) error {
			_, err := reclaim.Reserve(server.Volume("a"), toClaim("shop", "third"), known)
			return err
		}))
	})
	t.Run("NextMove with an old note", func(t *testing.T) {
		server, tool := dropped(VolumeNote(reclaim.TransferAnnotation,
			`{"from":{"namespace":"shop","name":"old","uid":"long-gone"},"to":{"metadata":{"namespace":"shop","name":"third"}},"reclaimPolicy":"Delete","volume":"uid-a"}`),
			func(v *corev1.PersistentVolume) { v.UID = "uid-a" })
		before := server.Volume("a")
		var err error
		for range 10 {
			if _, err = tool.step(t.Context()); err != nil {
				break
			}
		}
		refused := (*reclaim.Error)(nil)
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, reclaim.ClaimLives, refused.Reasons[0].Code)
		assert.Equal(t, before, server.Volume("a"), "nothing was written")
	})
	t.Run("NextMove to a claim that has it not by this move", func(t *testing.T) {
		server, tool := dropped(BoundToClaim, VolumeNote(reclaim.TransferAnnotation,
			`{"from":{"namespace":"shop","name":"old","uid":"long-gone"},"to":{"metadata":{"namespace":"bank","name":"data"}},"reclaimPolicy":"Delete","volume":"uid-a"}`),
			func(v *corev1.PersistentVolume) {
				v.UID, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.UID = "uid-a", "bank", "uid-2"
			})
		for range 10 {
			step, err := tool.step(t.Context())
			require.NoError(t, err, step.String())
			if step.Kind == reclaim.StepDone {
				break
			}
		}
		assert.Equal(t, corev1.PersistentVolumeReclaimRetain, server.Volume("a").Spec.PersistentVolumeReclaimPolicy)
		assert.NotContains(t, server.Volume("a").Annotations, reclaim.TransferAnnotation)
	})
}
