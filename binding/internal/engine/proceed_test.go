package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// binds is a cluster with a volume and a claim that fit, and the four writes that bind them as faults match them.
func binds() (*Driven, []bindingtest.Match) {
	cluster := NewDriven(bindingtest.Volume("pv", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
	return cluster, []bindingtest.Match{
		bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume), bindingtest.OnStatus(obj.KindVolume),
		bindingtest.On(bindingtest.VerbUpdate, obj.KindClaim), bindingtest.OnStatus(obj.KindClaim),
	}
}

func assertBound(t *testing.T, cluster *Driven) {
	t.Helper()
	claim := cluster.Claim("default", "data")
	require.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	assert.Equal(t, claim.UID, cluster.Volume(claim.Spec.VolumeName).Spec.ClaimRef.UID)
}

func TestB6AConflictCostsOneLiveRead(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprintf("B6 of B%d", i+1), func(t *testing.T) {
			cluster, writes := binds()
			cluster.Client.Use(bindingtest.Conflict(1, writes[i]))

			require.NoError(t, cluster.Settle(t.Context()))

			made, reads := ControllerCalls(cluster.Server)
			assert.Len(t, made, 5, "%s", made)
			assert.Len(t, reads, 1)
			assertBound(t, cluster)
		})
		t.Run(fmt.Sprintf("B6 of B%d, for somebody else was there first", i+1), func(t *testing.T) {
			cluster, writes := binds()
			cluster.Client.Use(bindingtest.Before(1, writes[i], func() {
				volume, claim := cluster.Volume("pv"), cluster.Claim("default", "data")
				volume.Labels, claim.Labels = map[string]string{"a": "b"}, map[string]string{"a": "b"}
				_, err := cluster.Update(context.Background(), volume)
				assert.NoError(t, err)
				_, err = cluster.Update(context.Background(), claim)
				assert.NoError(t, err)
			}))

			require.NoError(t, cluster.Settle(t.Context()))

			_, reads := ControllerCalls(cluster.Server)
			assert.LessOrEqual(t, len(reads), 2, "one for each of the two: %s", reads)
			assertBound(t, cluster)
		})
	}
}

func TestB6AConflictWhoseReadFailsIsReadLater(t *testing.T) {
	cluster, writes := binds()
	cluster.Client.Use(
		bindingtest.Conflict(1, writes[0]),
		bindingtest.Fail(1, bindingtest.On(bindingtest.VerbGet, obj.KindVolume), errors.New("connection lost")),
	)

	require.NoError(t, cluster.Settle(t.Context()))

	var verbs []bindingtest.Verb
	for _, call := range cluster.Calls() {
		if call.Actor != "" && call.Key.Kind == obj.KindVolume {
			verbs = append(verbs, call.Verb)
		}
	}
	assert.Equal(t, []bindingtest.Verb{"update", "get", "get", "update", "update"}, verbs, "never again on the version that lost")
	assertBound(t, cluster)
}

func TestB6AnUnknownOutcomeIsReadFirst(t *testing.T) {
	lost := errors.New("connection lost")
	for i := range 4 {
		for name, fault := range map[string]func(bindingtest.Match) bindingtest.Hook{
			"it arrived": func(m bindingtest.Match) bindingtest.Hook { return bindingtest.LoseAnswer(1, m) },
			"it did not": func(m bindingtest.Match) bindingtest.Hook { return bindingtest.Fail(1, m, lost) },
			"a timeout":  func(m bindingtest.Match) bindingtest.Hook { return bindingtest.Fail(1, m, context.DeadlineExceeded) },
			"an error of it": func(m bindingtest.Match) bindingtest.Hook {
				return bindingtest.Fail(1, m, apierrors.NewInternalError(lost))
			},
		} {
			t.Run(fmt.Sprintf("B6 B%d, %s", i+1, name), func(t *testing.T) {
				cluster, writes := binds()
				rival := bindingtest.Claim("default", "rival", "1Gi")
				cluster.Client.Use(fault(writes[i]), func(call *bindingtest.Call, do func() error) error {
					if rival != nil && call.Verb == bindingtest.VerbUpdate {
						_, err := cluster.Create(context.Background(), rival)
						assert.NoError(t, err)
						rival = nil
					}
					return do()
				})

				require.NoError(t, cluster.Settle(t.Context()))

				assertBound(t, cluster)
				assert.Equal(t, corev1.ClaimPending, cluster.Claim("default", "rival").Status.Phase, "the volume stayed reserved")
				made, reads := ControllerCalls(cluster.Server)
				assert.LessOrEqual(t, len(made), 5, "%s", made)
				assert.Len(t, reads, 1, "%s", reads)
			})
		}
	}
}

// TestB6AnUnknownOutcomeKeepsTheVolume asks, before a live read could settle it, for a claim that the volume
// fits as well.
func TestB6AnUnknownOutcomeKeepsTheVolume(t *testing.T) {
	state := stateOf(KnownVolume("a"), KnownClaim())
	require.Equal(t, "B1", state.Start(DataKey).Action.Rule)
	ended := state.Proceed(DataKey, engine.Reply{Err: errors.New("connection lost")})
	require.Error(t, ended.Err)
	assert.Positive(t, ended.After, "W6")
	assert.Contains(t, ended.Next, obj.VolumeKey("a"), "whose sync reads it")

	state.Observe(KnownClaim(Named("other")))
	assert.Equal(t, "nothing", decides(t, state, obj.ClaimKey("default", "other")), "it is not given to another")
	assert.Equal(t, "B6 Read", decides(t, state, DataKey))
	assert.Equal(t, "B6 Read", decides(t, state, obj.VolumeKey("a")))
	state.Observe(At("20", KnownVolume("a")))
	assert.Equal(t, "B6 Read", decides(t, state, DataKey), "what a cache says does not settle it")

	state.Start(obj.VolumeKey("a"))
	after := state.Proceed(obj.VolumeKey("a"), engine.Reply{Object: At("21", KnownVolume("a"))})
	require.True(t, after.Done)
	assert.Contains(t, after.Next, DataKey, "it was not written: the claim is offered it again")
	assert.Equal(t, "B1 UpdateVolume", decides(t, state, DataKey))
}

func TestB6TheClaimGoesWhileTheOutcomeIsUnknown(t *testing.T) {
	for name, fault := range map[string]func(int, bindingtest.Match) bindingtest.Hook{
		"B6 V3 it arrived": bindingtest.LoseAnswer,
		"B6 V1 it did not": func(n int, m bindingtest.Match) bindingtest.Hook { return bindingtest.Fail(n, m, errors.New("lost")) },
	} {
		t.Run(name, func(t *testing.T) {
			cluster, writes := binds()
			gone := cluster.Claim("default", "data")
			gone.Finalizers = nil
			_, err := cluster.Update(t.Context(), gone)
			require.NoError(t, err)
			hook := fault(1, writes[0])
			cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
				outcome := hook(call, do)
				if outcome != nil && cluster.Claim("default", "data") != nil {
					assert.NoError(t, cluster.Delete(context.Background(), DataKey, metav1.DeleteOptions{}))
				}
				return outcome
			})

			require.NoError(t, cluster.Settle(t.Context()))

			if name == "B6 V3 it arrived" {
				assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
				return
			}
			assert.Equal(t, corev1.VolumeAvailable, cluster.Volume("pv").Status.Phase)
			assert.Nil(t, cluster.Volume("pv").Spec.ClaimRef)
		})
	}
}

func TestAWriteOnWhatIsGone(t *testing.T) {
	t.Run("B1 the volume is gone: the next", func(t *testing.T) {
		cluster, writes := binds()
		_, err := cluster.Create(t.Context(), bindingtest.Volume("second", "2Gi"))
		require.NoError(t, err)
		cluster.Client.Use(bindingtest.Before(1, writes[0], func() { vanish(t, cluster, obj.VolumeKey("pv")) }))

		require.NoError(t, cluster.Settle(t.Context()))

		assertBound(t, cluster)
		assert.Equal(t, "second", cluster.Claim("default", "data").Spec.VolumeName)
		_, reads := ControllerCalls(cluster.Server)
		assert.Len(t, reads, 2, "nothing is gone on one reply's word")
	})
	t.Run("B3 the claim is gone: V3", func(t *testing.T) {
		cluster, writes := binds()
		cluster.Client.Use(bindingtest.Before(1, writes[2], func() { vanish(t, cluster, DataKey) }))

		require.NoError(t, cluster.Settle(t.Context()))

		assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
	})
	t.Run("B3 X3 another of its name is there: V3", func(t *testing.T) {
		cluster, writes := binds()
		cluster.Client.Use(bindingtest.Before(1, writes[2], func() {
			vanish(t, cluster, DataKey)
			_, err := cluster.Create(context.Background(), bindingtest.Claim("default", "data", "1Gi"))
			assert.NoError(t, err)
		}))

		require.NoError(t, cluster.Settle(t.Context()))

		assert.Equal(t, corev1.VolumeReleased, cluster.Volume("pv").Status.Phase)
		assert.Equal(t, corev1.ClaimPending, cluster.Claim("default", "data").Status.Phase)
	})
}

// vanish deletes an object whatever its finalizers say.
func vanish(t *testing.T, cluster *Driven, key obj.Key) {
	object, err := cluster.Get(context.Background(), key)
	assert.NoError(t, err)
	object.SetFinalizers(nil)
	_, err = cluster.Update(context.Background(), object)
	assert.NoError(t, err)
	assert.NoError(t, cluster.Delete(context.Background(), key, metav1.DeleteOptions{}))
}

func TestWhatALiveReadProves(t *testing.T) {
	a := obj.VolumeKey("a")
	again := At("20", KnownClaim(OfUID("uid-9")))

	t.Run("V3 not of a claim that came after it was asked", func(t *testing.T) {
		state := stateOf(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), KnownVolume("b"))
		require.Equal(t, decision.Read, state.Start(a).Action.Kind)
		state.Observe(again)
		require.Equal(t, decision.Read, state.Proceed(a, engine.Reply{Err: NotFoundError(DataKey)}).Action.Kind)
		require.Equal(t, decision.Read, state.Proceed(a, engine.Reply{Err: NotFoundError(DataKey)}).Action.Kind, "that was of no claim")
		assert.Equal(t, "V3", state.Proceed(a, engine.Reply{Object: again}).Action.Rule)
		assert.Equal(t, "B1 UpdateVolume", decides(t, state, DataKey), "the new one is there")
	})
	t.Run("V3 C10 that of an older version proves nothing about what was seen since", func(t *testing.T) {
		state := stateOf(KnownClaim(BoundTo("a")))
		require.Equal(t, decision.Read, state.Start(DataKey).Action.Kind)
		state.Observe(At("30", KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))))
		ended := state.Proceed(DataKey, engine.Reply{Err: NotFoundError(a)})
		assert.True(t, ended.Done, "X4: %v", ended.Action)
		assert.NoError(t, ended.Err)
	})
	t.Run("B6 a claim goes while its write is in doubt: the volume is read", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), KnownClaim())
		state.Start(DataKey)
		state.Proceed(DataKey, engine.Reply{Err: context.DeadlineExceeded})
		assert.Contains(t, state.ObserveDeleted(KnownClaim()), a)
		assert.Equal(t, "B6 Read", decides(t, state, a))
	})
	t.Run("A5 F2 the write that takes the last finalizer off", func(t *testing.T) {
		state := stateOf(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), KnownClaim(BoundTo("a"), ClaimBeingDeleted, ClaimNote(Provisioner, "kubernetes.io/cinder")))
		require.Equal(t, "G2", state.Start(DataKey).Action.Rule)
		ended := state.Proceed(DataKey, engine.Reply{Object: At("30", KnownClaim(BoundTo("a"), ClaimBeingDeleted))})
		assert.True(t, ended.Done)
		assert.Contains(t, ended.Next, a, "V3 follows")
		assert.Equal(t, "V3 Read", decides(t, state, a))
	})
}

// TestW2WhatALiveReadOfThePairShows begins to bind, and a live read shows that the volume is being deleted: the
// claim looks further, and the volume's own sync is due (F3).
func TestW2WhatALiveReadOfThePairShows(t *testing.T) {
	state := stateOf(KnownVolume("a", BoundToClaim, VolumeNote(BoundBy, "yes")), KnownClaim())
	require.Equal(t, "B2", state.Start(DataKey).Action.Rule)
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed"))
	require.Equal(t, decision.Read, state.Proceed(DataKey, engine.Reply{Err: conflict}).Action.Kind)

	ended := state.Proceed(DataKey, engine.Reply{Object: At("50", KnownVolume("a", BoundToClaim, BeingDeleted))})

	require.True(t, ended.Done, "%v", ended.Action)
	assert.Contains(t, ended.Next, obj.VolumeKey("a"))
}
