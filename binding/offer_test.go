package binding_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

var forbidden = apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))

// TestW1VolumesThatArriveOneByOne counts what n like volumes cost n like claims that wait for them.
func TestW1VolumesThatArriveOneByOne(t *testing.T) {
	syncs := func(n int) int {
		state, server := binding.NewState(binding.Rules{}), bindingtest.NewServer()
		var queue []obj.Key
		count := 0
		drain := func() {
			for ; len(queue) > 0; queue = queue[1:] {
				count++
				step := state.Start(queue[0])
				for !step.Done() {
					step = state.Proceed(queue[0], binding.Perform(server, step.Action()))
				}
				require.NoError(t, step.Err())
				queue = append(queue, step.Next()...)
			}
		}
		arrive := func(object obj.Object) {
			created, err := server.Create(t.Context(), object)
			require.NoError(t, err)
			queue = append(queue, state.Observe(created)...)
			drain()
		}
		for i := range n {
			arrive(bindingtest.Claim("default", fmt.Sprintf("c-%03d", i), "1Gi"))
		}
		for i := range n {
			arrive(bindingtest.Volume(fmt.Sprintf("v-%03d", i), "1Gi"))
		}
		writes := 0
		for _, call := range server.Calls() {
			if call.Verb == bindingtest.VerbUpdate {
				writes++
			}
		}
		assert.Equal(t, 4*n, writes, "B6, W1: and never first written Available")
		return count
	}
	few, many := syncs(20), syncs(80)
	assert.Equal(t, 4*few, many, "W1: n binds, not n × n syncs")
	assert.LessOrEqual(t, many, 4*80, "a claim's first sync, the volume, the claim, the volume")
}

func TestW1OneAtATime(t *testing.T) {
	small, large := knownClaim(named("small"), asking("1Gi")), knownClaim(asking("5Gi"))
	a, smallKey := obj.VolumeKey("a"), obj.KeyOf(small)

	t.Run("W1 the next only if the first does not take it", func(t *testing.T) {
		state := stateOf(small, large, knownVolume("a"))
		assert.Equal(t, []obj.Key{dataKey}, state.Start(a).Next())
		state.Observe(at("50", knownClaim(asking("500Gi"))))
		first := state.Start(dataKey)
		assert.True(t, first.Done())
		assert.Equal(t, []obj.Key{a}, first.Next(), "it goes on")
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next())
	})
	t.Run("W1 a volume whose claim takes another goes to the claim that the other was offered to", func(t *testing.T) {
		one, two := knownClaim(named("one")), knownClaim(named("two"))
		state := stateOf(one, two, knownVolume("a"), knownVolume("b"))
		assert.Equal(t, []obj.Key{obj.KeyOf(one)}, state.Start(obj.VolumeKey("b")).Next())
		assert.Equal(t, []obj.Key{obj.KeyOf(two)}, state.Start(a).Next())
		assert.Equal(t, "a", state.Start(obj.KeyOf(one)).Action().Volume.Name)
		assert.Equal(t, []obj.Key{obj.KeyOf(two)}, state.Start(obj.VolumeKey("b")).Next())
	})
	t.Run("W1 a volume too many waits until those that were called have chosen", func(t *testing.T) {
		one, two := knownClaim(named("one")), knownClaim(named("two"))
		state := stateOf(one, two, knownVolume("a"), knownVolume("b"), knownVolume("c"))
		state.Start(obj.VolumeKey("c"))
		state.Start(obj.VolumeKey("b"))
		step := state.Start(a)
		assert.True(t, step.Done(), "not Available yet: %s", step.Action())
		assert.Empty(t, step.Next())
		state.Forget(two)
		assert.Contains(t, state.Start(obj.KeyOf(two)).Next(), a)
	})
	t.Run("W1 not to the next before the first had its turn", func(t *testing.T) {
		state := stateOf(small, large, knownVolume("a"))
		assert.Equal(t, []obj.Key{dataKey}, state.Start(a).Next())
		again := state.Start(a)
		assert.True(t, again.Done())
		assert.Empty(t, again.Next(), "it waits for the first")
	})
	t.Run("W1 again to a claim whose turn came while another had the volume", func(t *testing.T) {
		state := stateOf(small, large, knownVolume("a"))
		assert.Equal(t, []obj.Key{dataKey}, state.Start(a).Next())
		require.Equal(t, "B1", state.Start(smallKey).Action().Rule, "it goes by itself, and first")
		assert.True(t, state.Start(dataKey).Done())
		assert.Equal(t, []obj.Key{a}, state.Proceed(smallKey, binding.Reply(nil, forbidden)).Next())
		assert.Equal(t, []obj.Key{dataKey}, state.Start(a).Next())
	})
	t.Run("W1 a claim that is gone by then does not take it", func(t *testing.T) {
		state := stateOf(small, large, knownVolume("a"))
		state.Start(a)
		state.Forget(large)
		assert.Equal(t, []obj.Key{a}, state.Start(dataKey).Next())
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next())
	})
	t.Run("W1 refused by the server: the next", func(t *testing.T) {
		state := stateOf(small, large, knownVolume("a"))
		require.Equal(t, "B1", state.Start(dataKey).Action().Rule)
		refused := state.Proceed(dataKey, binding.Reply(nil, forbidden))
		assert.Equal(t, []obj.Key{a}, refused.Next())
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next())
	})
	t.Run("W1 nobody takes it: Available", func(t *testing.T) {
		state := stateOf(small, large, knownVolume("a", inPhase(corev1.VolumePending)))
		for _, key := range []obj.Key{dataKey, smallKey} {
			require.Equal(t, "B1", state.Start(key).Action().Rule)
			state.Proceed(key, binding.Reply(nil, forbidden))
		}
		assert.Equal(t, "V1 UpdateVolumeStatus", decides(t, state, a))
	})
	t.Run("W1 not to a claim that is being bound", func(t *testing.T) {
		state := stateOf(large, knownVolume("a"))
		require.Equal(t, "B1", state.Start(dataKey).Action().Rule)
		state.Observe(knownVolume("b"))
		offered := state.Start(obj.VolumeKey("b"))
		assert.True(t, offered.Done())
		assert.Empty(t, offered.Next())
	})
	t.Run("W1 asked again once the claim has changed", func(t *testing.T) {
		state := stateOf(large, knownVolume("a"))
		state.Start(dataKey)
		state.Proceed(dataKey, binding.Reply(nil, forbidden))
		assert.Empty(t, state.Start(a).Next())
		state.Observe(at("50", knownClaim(asking("6Gi"))))
		assert.Equal(t, []obj.Key{dataKey}, state.Start(a).Next())
	})
	t.Run("W1 and once the volume has", func(t *testing.T) {
		state := stateOf(large, knownVolume("a"))
		state.Start(dataKey)
		state.Proceed(dataKey, binding.Reply(nil, forbidden))
		state.Observe(at("50", knownVolume("a", sized("20Gi"))))
		assert.Equal(t, []obj.Key{dataKey}, state.Start(a).Next())
	})
}

// TestTurnsAreBounded has claims come and go that are all refused the one volume, which stays as it is.
func TestTurnsAreBounded(t *testing.T) {
	state := stateOf(knownVolume("a"), knownClaim())
	for i := range 1000 {
		claim := knownClaim(named(fmt.Sprint("c-", i)), ofUID(types.UID(fmt.Sprint("uid-of-c-", i))))
		state.Observe(claim)
		require.Equal(t, "B1", state.Start(obj.KeyOf(claim)).Action().Rule)
		state.Proceed(obj.KeyOf(claim), binding.Reply(nil, forbidden))
		state.Forget(claim)
	}
	assert.Less(t, state.Turns("a"), 5)
}

func TestTwoSyncsOfOnePairNeverOverlap(t *testing.T) {
	a := obj.VolumeKey("a")
	t.Run("B6 of one claim: the second returns, the first goes round again", func(t *testing.T) {
		state := stateOf(knownVolume("a"), knownClaim())
		state.Start(dataKey)
		second := state.Start(dataKey)
		assert.True(t, second.Done())
		assert.Empty(t, second.Next())
		assert.NoError(t, second.Err())
		assert.Contains(t, state.Proceed(dataKey, binding.Reply(nil, forbidden)).Next(), dataKey)
	})
	t.Run("B6 of the volume: it follows the claim's", func(t *testing.T) {
		state := stateOf(knownVolume("a"), knownClaim())
		state.Start(dataKey)
		assert.True(t, state.Start(a).Done())
		assert.Contains(t, state.Proceed(dataKey, binding.Reply(nil, forbidden)).Next(), a)
	})
	t.Run("B6 the claim finds its volume in the hands of the volume's sync", func(t *testing.T) {
		state := stateOf(knownVolume("a", inPhase(corev1.VolumePending)))
		require.Equal(t, "V1", state.Start(a).Action().Rule)
		state.Observe(knownClaim())
		second := state.Start(dataKey)
		assert.True(t, second.Done(), "%v", second.Action())
		ended := state.Proceed(a, binding.Reply(at("50", knownVolume("a")), nil))
		for ; !ended.Done(); ended = state.Proceed(a, binding.Reply(nil, forbidden)) {
			require.Fail(t, "a volume that is wanted is handed over", "%v", ended.Action())
		}
		assert.Equal(t, []obj.Key{dataKey}, ended.Next(), "none twice")
	})
	t.Run("B6 two claims want one volume: the second takes another", func(t *testing.T) {
		state := stateOf(knownVolume("a"), knownVolume("b"), knownClaim(), knownClaim(named("other")))
		assert.Equal(t, "a", state.Start(dataKey).Action().Volume.Name)
		assert.Equal(t, "b", state.Start(obj.ClaimKey("default", "other")).Action().Volume.Name)
	})
}

func TestX5OwnWritesWakeNobody(t *testing.T) {
	cluster, _ := binds()
	require.NoError(t, cluster.Settle(t.Context()))

	assert.Empty(t, cluster.Controller.Observe(cluster.Volume("pv")))
	assert.Empty(t, cluster.Controller.Observe(cluster.Claim("default", "data")))
}
