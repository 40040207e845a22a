package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// says are the reasons of the events that a sync without any call publishes.
func says(t *testing.T, state *engine.State, key obj.Key) []decision.EventReason {
	t.Helper()
	step := state.Start(key)
	require.True(t, step.Done, "%v", step.Action)
	var reasons []decision.EventReason
	for _, event := range step.Publish {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

func TestEventsGoOutWhenSomethingChanges(t *testing.T) {
	failed, awaited := []decision.EventReason{decision.EventFailedBinding}, []decision.EventReason{decision.EventExternalProvisioning}
	mismatch := []decision.EventReason{decision.EventVolumeMismatch}

	t.Run("N C5 once", func(t *testing.T) {
		state := stateOf(KnownClaim())
		assert.Equal(t, failed, says(t, state, DataKey))
		assert.Empty(t, says(t, state, DataKey))
		assert.Empty(t, says(t, state, DataKey))
	})
	t.Run("N C5 again before the server has forgotten it, an hour later", func(t *testing.T) {
		state, start := stateOf(KnownClaim()), time.Unix(1_700_000_000, 0)
		for minute := range 200 {
			state.SetTime(start.Add(time.Duration(minute) * time.Minute))
			assert.Equal(t, minute%50 == 0, len(says(t, state, DataKey)) > 0, "after %d minutes", minute)
		}
	})
	t.Run("N C5 not for another count of volumes (X8)", func(t *testing.T) {
		state := stateOf(KnownClaim())
		says(t, state, DataKey)
		state.Observe(KnownVolume("a", Sized("1Gi")))
		assert.Empty(t, says(t, state, DataKey))
	})
	t.Run("N C7 again when the message changes", func(t *testing.T) {
		state := stateOf(KnownClaim(Naming("a")), KnownVolume("a", Sized("1Gi")))
		assert.Equal(t, mismatch, says(t, state, DataKey))
		assert.Empty(t, says(t, state, DataKey))
		state.Observe(At("20", KnownVolume("a", Sized("2Gi"))))
		assert.Equal(t, mismatch, says(t, state, DataKey))
	})
	t.Run("N C7 again when it was otherwise in between", func(t *testing.T) {
		state := stateOf(KnownClaim(Naming("a")), KnownVolume("a", Sized("1Gi")))
		says(t, state, DataKey)
		state.ObserveDeleted(KnownVolume("a"))
		assert.Empty(t, says(t, state, DataKey), "C6")
		again := At("30", KnownVolume("a", Sized("1Gi")))
		again.UID = "uid-of-another"
		state.Observe(again)
		assert.Equal(t, mismatch, says(t, state, DataKey))
	})
	t.Run("N P3 once, and something else when the class goes", func(t *testing.T) {
		asked := KnownClaim(RequestingClass(new("fast")), ClaimNote(Provisioner, "csi.example.com"), ClaimNote(BetaProvisioner, "csi.example.com"))
		class := At("1", ClassOf("fast", "csi.example.com"))
		state := stateOf(asked, class)
		assert.Equal(t, awaited, says(t, state, DataKey))
		assert.Empty(t, says(t, state, DataKey))
		state.ObserveDeleted(class)
		assert.Equal(t, []decision.EventReason{decision.EventProvisioningFailed}, says(t, state, DataKey), "P1")
		state.Observe(At("2", class))
		assert.Equal(t, awaited, says(t, state, DataKey))
	})
	t.Run("N C9 beside an error, once", func(t *testing.T) {
		state := stateOf(KnownClaim(Naming("a"), ClaimNote(BoundBy, "yes")), KnownVolume("a", RefersToOther))
		first, second := state.Start(DataKey), state.Start(DataKey)
		assert.Error(t, first.Err)
		assert.Len(t, first.Publish, 1)
		assert.Error(t, second.Err)
		assert.Empty(t, second.Publish)
	})
	t.Run("N another claim of that name gets the event anew", func(t *testing.T) {
		state := stateOf(KnownClaim())
		says(t, state, DataKey)
		state.ObserveDeleted(KnownClaim())
		state.Observe(At("20", KnownClaim(OfUID("uid-9"))))
		assert.Equal(t, failed, says(t, state, DataKey))
	})
	t.Run("N the same, its deletion never seen", func(t *testing.T) {
		state := stateOf(KnownClaim())
		says(t, state, DataKey)
		state.Observe(At("20", KnownClaim(OfUID("uid-9"))))
		assert.Equal(t, failed, says(t, state, DataKey))
	})
	t.Run("N each claim by itself", func(t *testing.T) {
		state := stateOf(KnownClaim(), KnownClaim(Named("other")))
		assert.Equal(t, failed, says(t, state, DataKey))
		assert.Equal(t, failed, says(t, state, obj.ClaimKey("default", "other")))
	})
	t.Run("N of a write: once it is in, and not before", func(t *testing.T) {
		state := stateOf(KnownClaim(BoundTo("")))
		step := state.Start(DataKey)
		assert.Equal(t, "C10", step.Action.Rule)
		assert.Empty(t, step.Publish)
		failed := state.Clone().Proceed(DataKey, engine.Reply{Err: forbidden})
		require.Len(t, failed.Publish, 1)
		assert.Equal(t, decision.EventFailedUpdate, failed.Publish[0].Reason, "it was not written")
		done := state.Proceed(DataKey, engine.Reply{Object: At("99", step.Action.Claim.DeepCopy())})
		require.Len(t, done.Publish, 1)
		assert.Equal(t, decision.EventClaimLost, done.Publish[0].Reason)
		assert.Empty(t, says(t, state, DataKey))
	})
}
