package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

var forbidden = apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))

// TestW1VolumesThatArriveOneByOne counts what n like volumes cost n like claims that wait for them.
func TestW1VolumesThatArriveOneByOne(t *testing.T) {
	syncs := func(n int) int {
		state, server := engine.New(Unprotected(decision.Options{}), 10), bindingtest.NewServer()
		var queue []obj.Key
		count := 0
		drain := func() {
			for ; len(queue) > 0; queue = queue[1:] {
				count++
				step := state.Start(queue[0])
				for !step.Done {
					step = state.Proceed(queue[0], Perform(server, step.Action))
				}
				require.NoError(t, step.Err)
				queue = append(queue, step.Next...)
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
	small, large := KnownClaim(Named("small"), Requesting("1Gi")), KnownClaim(Requesting("5Gi"))
	a, smallKey := obj.VolumeKey("a"), obj.KeyOf(small)

	t.Run("W1 the next only if the first does not take it", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
		state.Observe(At("50", KnownClaim(Requesting("500Gi"))))
		first := state.Start(DataKey)
		assert.True(t, first.Done)
		assert.Equal(t, []obj.Key{a}, first.Next, "it goes on")
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next)
	})
	t.Run("W1 the late end of another volume of that name takes no offer away", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
		former := KnownVolume("a")
		former.UID = "uid-of-former"
		state.ObserveDeleted(former)
		state.Observe(At("50", KnownClaim(Requesting("500Gi"))))
		assert.Equal(t, []obj.Key{a}, state.Start(DataKey).Next, "it goes on")
	})
	t.Run("W1 R8 not to one that is halted by what another announced, however often that is edited", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		for token := range int64(3) {
			state.Observe(At(strconv.Itoa(50+int(token)), KnownClaim(Requesting("5Gi"), ClaimFinalizers(decision.ProvisioningFinalizer), func(claim *corev1.PersistentVolumeClaim) {
				reclaim.Announce(claim, reclaim.Announcement{By: "a tenant", Token: 1 + token, Seconds: 3600})
			})))
			state.Start(DataKey)
			next := state.Start(a).Next
			assert.NotContains(t, next, DataKey)
			assert.Equal(t, token == 0, slices.Contains(next, smallKey), "once: its attempt comes next")
		}
	})
	t.Run("W1 W6 one whose write was not stored, and that waits, does not keep it from the next", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("b"))
		require.True(t, state.Start(DataKey).Action.Writes())
		require.NotZero(t, state.Proceed(DataKey, engine.Reply{Object: KnownVolume("b")}).After)
		state.Observe(At("50", KnownVolume("a")))
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
		assert.Equal(t, []obj.Key{a}, state.Start(DataKey).Next)
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next)
	})
	t.Run("W1 a volume whose claim takes another goes to the claim that the other was offered to", func(t *testing.T) {
		one, two := KnownClaim(Named("one")), KnownClaim(Named("two"))
		state := stateOf(one, two, KnownVolume("a"), KnownVolume("b"))
		assert.Equal(t, []obj.Key{obj.KeyOf(one)}, state.Start(obj.VolumeKey("b")).Next)
		assert.Equal(t, []obj.Key{obj.KeyOf(two)}, state.Start(a).Next)
		assert.Equal(t, "a", state.Start(obj.KeyOf(one)).Action.Volume.Name)
		assert.Equal(t, []obj.Key{obj.KeyOf(two)}, state.Start(obj.VolumeKey("b")).Next)
	})
	t.Run("W1 a volume too many waits until those that were notified have chosen", func(t *testing.T) {
		one, two := KnownClaim(Named("one")), KnownClaim(Named("two"))
		state := stateOf(one, two, KnownVolume("a"), KnownVolume("b"), KnownVolume("c"))
		state.Start(obj.VolumeKey("c"))
		state.Start(obj.VolumeKey("b"))
		step := state.Start(a)
		assert.True(t, step.Done, "not Available yet: %s", step.Action)
		assert.Empty(t, step.Next)
		state.ObserveDeleted(two)
		assert.Contains(t, state.Start(obj.KeyOf(two)).Next, a)
	})
	t.Run("W1 not to the next before the first had its attempt", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
		again := state.Start(a)
		assert.True(t, again.Done)
		assert.Empty(t, again.Next, "it waits for the first")
	})
	t.Run("W1 again to a claim whose attempt came while another had the volume", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
		require.Equal(t, "B1", state.Start(smallKey).Action.Rule, "it goes by itself, and first")
		assert.True(t, state.Start(DataKey).Done)
		assert.Equal(t, []obj.Key{a}, state.Proceed(smallKey, engine.Reply{Err: forbidden}).Next)
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
	})
	t.Run("W1 a claim that is gone by then does not take it", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		state.Start(a)
		state.ObserveDeleted(large)
		assert.Equal(t, []obj.Key{a}, state.Start(DataKey).Next)
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next)
	})
	t.Run("W1 refused by the server: the next", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		require.Equal(t, "B1", state.Start(DataKey).Action.Rule)
		refused := state.Proceed(DataKey, engine.Reply{Err: forbidden})
		assert.Equal(t, []obj.Key{a}, refused.Next)
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next)
	})
	t.Run("W1 nobody takes it: Available", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a", InPhase(corev1.VolumePending)))
		for _, key := range []obj.Key{DataKey, smallKey} {
			require.Equal(t, "B1", state.Start(key).Action.Rule)
			state.Proceed(key, engine.Reply{Err: forbidden})
		}
		assert.Equal(t, "V1 UpdateVolumeStatus", decides(t, state, a))
	})
	t.Run("W1 not to a claim that is being bound", func(t *testing.T) {
		state := stateOf(large, KnownVolume("a"))
		require.Equal(t, "B1", state.Start(DataKey).Action.Rule)
		state.Observe(KnownVolume("b"))
		offered := state.Start(obj.VolumeKey("b"))
		assert.True(t, offered.Done)
		assert.Empty(t, offered.Next)
	})
	t.Run("W1 X9 not asked again when it changes: a tenant who changes it all the time would keep the volume from others", func(t *testing.T) {
		state := stateOf(small, large, KnownVolume("a"))
		state.Start(DataKey)
		state.Proceed(DataKey, engine.Reply{Err: forbidden})
		changed := At("50", KnownClaim(Requesting("5Gi")))
		assert.Equal(t, []obj.Key{DataKey}, state.Observe(changed), "it looks for a volume by itself")
		assert.Equal(t, []obj.Key{smallKey}, state.Start(a).Next)
	})
	t.Run("W1 asked again once it is made again", func(t *testing.T) {
		state := stateOf(large, KnownVolume("a"))
		state.Start(DataKey)
		state.Proceed(DataKey, engine.Reply{Err: forbidden})
		state.Observe(At("50", KnownClaim(Requesting("5Gi"), OfUID("uid-9"))))
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
	})
	t.Run("W1 and once the volume has", func(t *testing.T) {
		state := stateOf(large, KnownVolume("a"))
		state.Start(DataKey)
		state.Proceed(DataKey, engine.Reply{Err: forbidden})
		state.Observe(At("50", KnownVolume("a", Sized("20Gi"))))
		assert.Equal(t, []obj.Key{DataKey}, state.Start(a).Next)
	})
}

// V1, X8, X10: a volume whose claimRef does not give it to a Bound claim any more waits until that is Lost. Where it stays Bound, for its tenant took
// bind-completed off (C9), its sync comes first once, and then the volume says why it stays as it is, once too.
func TestV1AVolumeWaitsForAClaimThatStaysBound(t *testing.T) {
	a, claim := obj.VolumeKey("a"), KnownClaim(BoundTo("a"), WithoutNote(Completed), ClaimNote(BoundBy, "yes"))
	d := newTalk(t, decision.Options{}, a, KnownVolume("a", RefersTo("default", "new", ""), InPhase(corev1.VolumeBound)), claim)
	d.starts().ends()
	assert.Equal(t, []obj.Key{DataKey}, d.step.Next)
	assert.Empty(t, d.published, "its claim comes first")
	failed := d.state.Start(DataKey)
	require.ErrorContains(t, failed.Err, "default/new", "C9")
	assert.Equal(t, []obj.Key{a}, failed.Next)
	for range 2 {
		d.starts().ends()
		assert.Empty(t, d.step.Next, "it had its attempt")
		assert.Equal(t, []string{"Warning VolumeMismatch"}, d.published)
	}
	assert.Contains(t, d.state.Observe(At("30", KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)))), a, "W3")
}

// TestAttemptsAreBounded has claims come and go that are all rejected for the one volume, which stays as it is.
func TestAttemptsAreBounded(t *testing.T) {
	state := stateOf(KnownVolume("a"), KnownClaim())
	for i := range 1000 {
		claim := KnownClaim(Named(fmt.Sprint("c-", i)), OfUID(types.UID(fmt.Sprint("uid-of-c-", i))))
		state.Observe(claim)
		require.Equal(t, "B1", state.Start(obj.KeyOf(claim)).Action.Rule)
		state.Proceed(obj.KeyOf(claim), engine.Reply{Err: forbidden})
		state.ObserveDeleted(claim)
	}
	assert.Less(t, state.Offers("a"), 5)
}

func TestTwoSyncsOfOnePairNeverOverlap(t *testing.T) {
	a := obj.VolumeKey("a")
	t.Run("B6 of one claim: the second returns, the first goes round again", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), KnownClaim())
		state.Start(DataKey)
		second := state.Start(DataKey)
		assert.True(t, second.Done)
		assert.Empty(t, second.Next)
		assert.NoError(t, second.Err)
		assert.Contains(t, state.Proceed(DataKey, engine.Reply{Err: forbidden}).Next, DataKey)
	})
	t.Run("B6 of the volume: it follows the claim's", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), KnownClaim())
		state.Start(DataKey)
		assert.True(t, state.Start(a).Done)
		assert.Contains(t, state.Proceed(DataKey, engine.Reply{Err: forbidden}).Next, a)
	})
	t.Run("B6 the claim finds its volume locked by the volume's sync", func(t *testing.T) {
		state := stateOf(KnownVolume("a", InPhase(corev1.VolumePending)))
		require.Equal(t, "V1", state.Start(a).Action.Rule)
		state.Observe(KnownClaim())
		second := state.Start(DataKey)
		assert.True(t, second.Done, "%v", second.Action)
		ended := state.Proceed(a, engine.Reply{Object: At("50", KnownVolume("a"))})
		for ; !ended.Done; ended = state.Proceed(a, engine.Reply{Err: forbidden}) {
			require.Fail(t, "a volume that is wanted is handed over", "%v", ended.Action)
		}
		assert.Equal(t, []obj.Key{DataKey}, ended.Next, "none twice")
	})
	t.Run("B6 two claims want one volume: the second takes another", func(t *testing.T) {
		state := stateOf(KnownVolume("a"), KnownVolume("b"), KnownClaim(), KnownClaim(Named("other")))
		assert.Equal(t, "a", state.Start(DataKey).Action.Volume.Name)
		assert.Equal(t, "b", state.Start(obj.ClaimKey("default", "other")).Action.Volume.Name)
	})
}

func TestX5OwnWritesWakeNobody(t *testing.T) {
	cluster, _ := binds()
	require.NoError(t, cluster.Settle(t.Context()))

	assert.Empty(t, cluster.Controller.Observe(cluster.Volume("pv")))
	assert.Empty(t, cluster.Controller.Observe(cluster.Claim("default", "data")))
}
