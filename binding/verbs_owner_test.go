package binding_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/reclaim"
)

// dropped is a volume whose claimRef somebody dropped, and bank/data, whose pod runs on it, Bound to it.
func dropped(edits ...volumeEdit) (*bindingtest.Server, *tool) {
	server := bindingtest.NewServer()
	volume := knownVolume("a", append([]volumeEdit{onHostPath, inPhase(corev1.VolumeBound)}, edits...)...)
	victim := knownClaim(named("data"), boundTo("a"), func(c *corev1.PersistentVolumeClaim) { c.Namespace = "bank" })
	if err := server.Load(asServed(volume), asServed(victim)); err != nil {
		panic(err)
	}
	return server, &tool{client: server.NewClient("people"), move: reclaim.Move{Volume: "a"}}
}

// refusedBy asks a verb, reading what it asks for, until it does or refuses for good.
func (t *tool) refusedBy(verb func(reclaim.Known) error) (reasons []reclaim.ObjectionReason) {
	for range 10 {
		refused := (*reclaim.Refusal)(nil)
		if err := verb(t.known); !errors.As(err, &refused) {
			return nil
		}
		if reads := refused.Reads(); len(reads) > 0 {
			_ = t.read(context.Background(), reads[0])
			continue
		}
		for _, objection := range refused.Objections {
			reasons = append(reasons, objection.Reason)
		}
		return reasons
	}
	return []reclaim.ObjectionReason{"it reads on and on"}
}

// M2, R7: what has no claimRef may be somebody's all the same, and a verb reads all claims to know.
func TestVerbsTakeNothingFromWhoIsBound(t *testing.T) {
	lives := []reclaim.ObjectionReason{reclaim.ClaimLives}
	t.Run("Open", func(t *testing.T) {
		server, tool := dropped()
		assert.Equal(t, lives, tool.refusedBy(func(known reclaim.Known) error {
			_, err := reclaim.Open(server.Volume("a"), known)
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
		server, tool := dropped(volumeNote(reclaim.MoveAnnotation,
			`{"from":{"namespace":"shop","name":"old","uid":"long-gone"},"to":{"metadata":{"namespace":"shop","name":"third"}},"reclaimPolicy":"Delete","volume":"uid-a"}`),
			func(v *corev1.PersistentVolume) { v.UID = "uid-a" })
		before := server.Volume("a")
		var err error
		for range 10 {
			if _, err = tool.turn(t.Context()); err != nil {
				break
			}
		}
		refused := (*reclaim.Refusal)(nil)
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, reclaim.ClaimLives, refused.Objections[0].Reason)
		assert.Equal(t, before, server.Volume("a"), "nothing was written")
	})
	t.Run("NextMove to a claim that has it not by this move", func(t *testing.T) {
		server, tool := dropped(held, volumeNote(reclaim.MoveAnnotation,
			`{"from":{"namespace":"shop","name":"old","uid":"long-gone"},"to":{"metadata":{"namespace":"bank","name":"data"}},"reclaimPolicy":"Delete","volume":"uid-a"}`),
			func(v *corev1.PersistentVolume) {
				v.UID, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.UID = "uid-a", "bank", "uid-2"
			})
		for range 10 {
			step, err := tool.turn(t.Context())
			require.NoError(t, err, step.String())
			if step.Kind == reclaim.StepDone {
				break
			}
		}
		assert.Equal(t, corev1.PersistentVolumeReclaimRetain, server.Volume("a").Spec.PersistentVolumeReclaimPolicy)
		assert.NotContains(t, server.Volume("a").Annotations, reclaim.MoveAnnotation)
	})
}
