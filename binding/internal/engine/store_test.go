package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// decides is what a state's sync of a key begins with.
func decides(t *testing.T, state *engine.State, key obj.Key) string {
	t.Helper()
	step := state.Clone().Start(key)
	require.NoError(t, step.Err)
	if step.Done {
		return "nothing"
	}
	return step.Action.Rule + " " + string(step.Action.Kind)
}

func TestX5WhatIsGoneStaysGone(t *testing.T) {
	delayed := func(uid types.UID) *storagev1.StorageClass {
		class := At("5", ClassOf("local", "csi.example.com", WaitsForFirstConsumer))
		class.UID = uid
		return class
	}
	asks := KnownClaim(RequestingClass(new("local")))
	ofClass := KnownVolume("a", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" })
	t.Run("X5 a late version of a claim that was deleted", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), KnownClaim())
		state.ObserveDeleted(KnownClaim())
		assert.Empty(t, state.Observe(At("99", KnownClaim())))
		assert.Equal(t, "nothing", decides(t, state, DataKey))
	})
	t.Run("X5 a late version of a volume that was deleted", func(t *testing.T) {
		state := stateOf(KnownClaim(), KnownVolume("a"))
		state.ObserveDeleted(KnownVolume("a"))
		assert.Empty(t, state.Observe(At("99", KnownVolume("a"))))
		assert.Equal(t, "nothing", decides(t, state, DataKey))
	})
	t.Run("X5 a late version of a pod that was deleted", func(t *testing.T) {
		state := stateOf(PodUsing("web-0"))
		state.ObserveDeleted(PodUsing("web-0"))
		assert.Empty(t, state.Observe(At("99", PodUsing("web-0"))))
	})
	t.Run("X5 a late version of a class that was deleted", func(t *testing.T) {
		state := stateOf(ofClass, asks, delayed("uid-c"))
		state.ObserveDeleted(delayed("uid-c"))
		assert.Empty(t, state.Observe(At("99", delayed("uid-c"))))
		assert.Equal(t, "B1 UpdateVolume", decides(t, state, DataKey), "M11: it has no class any more")
	})
	t.Run("X5 the deletion of an earlier class of its name", func(t *testing.T) {
		state := stateOf(ofClass, asks, delayed("uid-c"), At("20", delayed("uid-9")))
		assert.Empty(t, state.ObserveDeleted(delayed("uid-c")))
		assert.Equal(t, "nothing", decides(t, state, DataKey), "M11: it waits for its consumer")
	})
	t.Run("X5 deleted before it was ever seen", func(t *testing.T) {
		state := stateOf(KnownVolume("a"))
		assert.Empty(t, state.ObserveDeleted(KnownClaim()))
		assert.Empty(t, state.Observe(KnownClaim()))
	})
	t.Run("X5 deleted, observed with an older state", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), At("10", KnownClaim()))
		assert.NotEmpty(t, state.ObserveDeleted(At("9", KnownClaim())))
		assert.Equal(t, "nothing", decides(t, state, DataKey))
	})
	t.Run("X5 another of its name is another", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), KnownClaim())
		state.ObserveDeleted(KnownClaim())
		assert.NotEmpty(t, state.Observe(At("20", KnownClaim(OfUID("uid-9")))))
		assert.Equal(t, "B1 UpdateVolume", decides(t, state, DataKey))
	})
	t.Run("X5 the deletion of an earlier one of its name", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), KnownClaim(), At("20", KnownClaim(OfUID("uid-9"))))
		assert.Empty(t, state.ObserveDeleted(KnownClaim()))
		assert.Equal(t, "B1 UpdateVolume", decides(t, state, DataKey))
		assert.Empty(t, state.Observe(At("30", KnownClaim())), "it stays buried")
	})
	t.Run("W3 recreated, its deletion never seen: the volume of the earlier one follows", func(t *testing.T) {
		state := stateOf(KnownClaim(BoundTo("a")), KnownVolume("a", BoundToClaim))
		woken := state.Observe(At("20", KnownClaim(OfUID("uid-9"))))
		assert.Contains(t, woken, obj.VolumeKey("a"))
		assert.Equal(t, "V3 Read", decides(t, state, obj.VolumeKey("a")))
	})
}

// TestTombstonesAreBounded buries many, and the last few thousand stay buried.
func TestTombstonesAreBounded(t *testing.T) {
	state := engine.New(Unprotected(decision.Options{}), 10)
	const many = 20_000
	uid := func(i int) types.UID { return types.UID(rune(i)) }
	for i := range many {
		state.ObserveDeleted(KnownClaim(OfUID(uid(i + 1))))
	}
	for i := many - 4096; i < many; i++ {
		require.Empty(t, state.Observe(KnownClaim(OfUID(uid(i+1)))), "X5, %d", i)
	}
}

func TestB5AnEmptyVersionIsNeverSent(t *testing.T) {
	server := bindingtest.NewServer()
	for _, test := range []struct {
		name    string
		key     obj.Key
		objects []obj.Object
	}{
		{"B5 of a volume", DataKey, []obj.Object{At("", KnownVolume("a")), KnownClaim()}},
		{"B5 of a volume's status", DataKey, []obj.Object{At("", KnownVolume("a", BoundToClaim, VolumeNote(BoundBy, "yes"))), KnownClaim()}},
		{"B5 of a claim", DataKey, []obj.Object{KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), At("", KnownClaim())}},
		{"B5 of a claim's status", DataKey, []obj.Object{KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), At("", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimPending)))}},
		{"B5 of a volume's phase", obj.VolumeKey("a"), []obj.Object{At("", KnownVolume("a", InPhase(corev1.VolumePending)))}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := server.NewClient("controller")
			controller := &binding.Controller{Client: client, Options: Unprotected(decision.Options{})}
			for _, object := range test.objects {
				controller.Observe(object)
			}
			result, err := controller.Sync(t.Context(), test.key)
			var invalid *obj.InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, "metadata.resourceVersion", invalid.Field)
			assert.Zero(t, result.After, "only a newer version helps")
			assert.Empty(t, server.Calls())
		})
	}
}
