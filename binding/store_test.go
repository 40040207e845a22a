package binding_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

func ofUID(uid types.UID) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.UID = uid }
}

// decides is what a state's sync of a key begins with.
func decides(t *testing.T, state *binding.State, key obj.Key) string {
	t.Helper()
	step := state.Clone().Start(key)
	require.NoError(t, step.Err())
	if step.Done() {
		return "nothing"
	}
	return step.Action().Rule + " " + string(step.Action().Kind)
}

func TestX5WhatIsGoneStaysGone(t *testing.T) {
	delayed := func(uid types.UID) *storagev1.StorageClass {
		class := at("5", classOf("local", "csi.example.com", delayedClass))
		class.UID = uid
		return class
	}
	asks := knownClaim(askingClass(new("local")))
	ofClass := knownVolume("a", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" })
	t.Run("X5 a late version of a claim that was deleted", func(t *testing.T) {
		state := stateOf(knownVolume("a"), knownClaim())
		state.Forget(knownClaim())
		assert.Empty(t, state.Observe(at("99", knownClaim())))
		assert.Equal(t, "nothing", decides(t, state, dataKey))
	})
	t.Run("X5 a late version of a volume that was deleted", func(t *testing.T) {
		state := stateOf(knownClaim(), knownVolume("a"))
		state.Forget(knownVolume("a"))
		assert.Empty(t, state.Observe(at("99", knownVolume("a"))))
		assert.Equal(t, "nothing", decides(t, state, dataKey))
	})
	t.Run("X5 a late version of a pod that was deleted", func(t *testing.T) {
		state := stateOf(podUsing("web-0"))
		state.Forget(podUsing("web-0"))
		assert.Empty(t, state.Observe(at("99", podUsing("web-0"))))
	})
	t.Run("X5 a late version of a class that was deleted", func(t *testing.T) {
		state := stateOf(ofClass, asks, delayed("uid-c"))
		state.Forget(delayed("uid-c"))
		assert.Empty(t, state.Observe(at("99", delayed("uid-c"))))
		assert.Equal(t, "B1 UpdateVolume", decides(t, state, dataKey), "M11: it has no class any more")
	})
	t.Run("X5 the deletion of an earlier class of its name", func(t *testing.T) {
		state := stateOf(ofClass, asks, delayed("uid-c"), at("20", delayed("uid-9")))
		assert.Empty(t, state.Forget(delayed("uid-c")))
		assert.Equal(t, "nothing", decides(t, state, dataKey), "M11: it waits for its consumer")
	})
	t.Run("X5 deleted before it was ever seen", func(t *testing.T) {
		state := stateOf(knownVolume("a"))
		assert.Empty(t, state.Forget(knownClaim()))
		assert.Empty(t, state.Observe(knownClaim()))
	})
	t.Run("X5 deleted, told with an older state", func(t *testing.T) {
		state := stateOf(knownVolume("a"), at("10", knownClaim()))
		assert.NotEmpty(t, state.Forget(at("9", knownClaim())))
		assert.Equal(t, "nothing", decides(t, state, dataKey))
	})
	t.Run("X5 another of its name is another", func(t *testing.T) {
		state := stateOf(knownVolume("a"), knownClaim())
		state.Forget(knownClaim())
		assert.NotEmpty(t, state.Observe(at("20", knownClaim(ofUID("uid-9")))))
		assert.Equal(t, "B1 UpdateVolume", decides(t, state, dataKey))
	})
	t.Run("X5 the deletion of an earlier one of its name", func(t *testing.T) {
		state := stateOf(knownVolume("a"), knownClaim(), at("20", knownClaim(ofUID("uid-9"))))
		assert.Empty(t, state.Forget(knownClaim()))
		assert.Equal(t, "B1 UpdateVolume", decides(t, state, dataKey))
		assert.Empty(t, state.Observe(at("30", knownClaim())), "it stays buried")
	})
	t.Run("W3 recreated, its deletion never seen: the volume of the earlier one follows", func(t *testing.T) {
		state := stateOf(knownClaim(boundTo("a")), knownVolume("a", held))
		woken := state.Observe(at("20", knownClaim(ofUID("uid-9"))))
		assert.Contains(t, woken, obj.VolumeKey("a"))
		assert.Equal(t, "V3 Read", decides(t, state, obj.VolumeKey("a")))
	})
}

// TestTombstonesAreBounded buries many, and the last few thousand stay buried.
func TestTombstonesAreBounded(t *testing.T) {
	state := binding.NewState(binding.Rules{})
	const many = 20_000
	uid := func(i int) types.UID { return types.UID(rune(i)) }
	for i := range many {
		state.Forget(knownClaim(ofUID(uid(i + 1))))
	}
	for i := many - 4096; i < many; i++ {
		require.Empty(t, state.Observe(knownClaim(ofUID(uid(i+1)))), "X5, %d", i)
	}
}

func TestB5AnEmptyVersionIsNeverSent(t *testing.T) {
	server := bindingtest.NewServer()
	for _, test := range []struct {
		name    string
		key     obj.Key
		objects []obj.Object
	}{
		{"B5 of a volume", dataKey, []obj.Object{at("", knownVolume("a")), knownClaim()}},
		{"B5 of a volume's status", dataKey, []obj.Object{at("", knownVolume("a", held)), knownClaim()}},
		{"B5 of a claim", dataKey, []obj.Object{knownVolume("a", held, inPhase(corev1.VolumeBound)), at("", knownClaim())}},
		{"B5 of a claim's status", dataKey, []obj.Object{knownVolume("a", held, inPhase(corev1.VolumeBound)), at("", knownClaim(boundTo("a"), claimPhase(corev1.ClaimPending)))}},
		{"B5 of a volume's phase", obj.VolumeKey("a"), []obj.Object{at("", knownVolume("a", inPhase(corev1.VolumePending)))}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := server.NewClient("controller")
			controller := &binding.Controller{Client: client}
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
