package binding_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// says are the reasons of the events that a sync without any call publishes.
func says(t *testing.T, state *binding.State, key obj.Key) []binding.EventReason {
	t.Helper()
	step := state.Start(key)
	require.True(t, step.Done(), "%v", step.Action())
	var reasons []binding.EventReason
	for _, event := range step.Published() {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

func TestEventsGoOutWhenSomethingChanges(t *testing.T) {
	failed, awaited := []binding.EventReason{binding.EventFailedBinding}, []binding.EventReason{binding.EventExternalProvisioning}
	mismatch := []binding.EventReason{binding.EventVolumeMismatch}

	t.Run("N C5 once", func(t *testing.T) {
		state := stateOf(knownClaim())
		assert.Equal(t, failed, says(t, state, dataKey))
		assert.Empty(t, says(t, state, dataKey))
		assert.Empty(t, says(t, state, dataKey))
	})
	t.Run("N C5 not for another count of volumes (X8)", func(t *testing.T) {
		state := stateOf(knownClaim())
		says(t, state, dataKey)
		state.Observe(knownVolume("a", sized("1Gi")))
		assert.Empty(t, says(t, state, dataKey))
	})
	t.Run("N C7 again when the message changes", func(t *testing.T) {
		state := stateOf(knownClaim(naming("a")), knownVolume("a", sized("1Gi")))
		assert.Equal(t, mismatch, says(t, state, dataKey))
		assert.Empty(t, says(t, state, dataKey))
		state.Observe(at("20", knownVolume("a", sized("2Gi"))))
		assert.Equal(t, mismatch, says(t, state, dataKey))
	})
	t.Run("N C7 again when it was otherwise in between", func(t *testing.T) {
		state := stateOf(knownClaim(naming("a")), knownVolume("a", sized("1Gi")))
		says(t, state, dataKey)
		state.Forget(knownVolume("a"))
		assert.Empty(t, says(t, state, dataKey), "C6")
		again := at("30", knownVolume("a", sized("1Gi")))
		again.UID = "uid-of-another"
		state.Observe(again)
		assert.Equal(t, mismatch, says(t, state, dataKey))
	})
	t.Run("N P3 once, and something else when the class goes", func(t *testing.T) {
		asked := knownClaim(askingClass(new("fast")), claimNote(provisioner, "csi.example.com"), claimNote(betaProvisioner, "csi.example.com"))
		class := at("1", classOf("fast", "csi.example.com"))
		state := stateOf(asked, class)
		assert.Equal(t, awaited, says(t, state, dataKey))
		assert.Empty(t, says(t, state, dataKey))
		state.Forget(class)
		assert.Equal(t, []binding.EventReason{binding.EventProvisioningFailed}, says(t, state, dataKey), "P1")
		state.Observe(at("2", class))
		assert.Equal(t, awaited, says(t, state, dataKey))
	})
	t.Run("N C9 beside an error, once", func(t *testing.T) {
		state := stateOf(knownClaim(naming("a"), claimNote(boundBy, "yes")), knownVolume("a", refersToOther))
		first, second := state.Start(dataKey), state.Start(dataKey)
		assert.Error(t, first.Err())
		assert.Len(t, first.Published(), 1)
		assert.Error(t, second.Err())
		assert.Empty(t, second.Published())
	})
	t.Run("N another claim of that name is told anew", func(t *testing.T) {
		state := stateOf(knownClaim())
		says(t, state, dataKey)
		state.Forget(knownClaim())
		state.Observe(at("20", knownClaim(ofUID("uid-9"))))
		assert.Equal(t, failed, says(t, state, dataKey))
	})
	t.Run("N the same, its deletion never seen", func(t *testing.T) {
		state := stateOf(knownClaim())
		says(t, state, dataKey)
		state.Observe(at("20", knownClaim(ofUID("uid-9"))))
		assert.Equal(t, failed, says(t, state, dataKey))
	})
	t.Run("N each claim by itself", func(t *testing.T) {
		state := stateOf(knownClaim(), knownClaim(named("other")))
		assert.Equal(t, failed, says(t, state, dataKey))
		assert.Equal(t, failed, says(t, state, obj.ClaimKey("default", "other")))
	})
	t.Run("N of a write: once it is in, and not before", func(t *testing.T) {
		state := stateOf(knownClaim(boundTo("")))
		step := state.Start(dataKey)
		assert.Equal(t, "C10", step.Action().Rule)
		assert.Empty(t, step.Published())
		failed := state.Clone().Proceed(dataKey, binding.Reply(nil, forbidden))
		assert.Empty(t, failed.Published(), "it was not written")
		done := state.Proceed(dataKey, binding.Reply(at("99", step.Action().Claim.DeepCopy()), nil))
		require.Len(t, done.Published(), 1)
		assert.Equal(t, binding.EventClaimLost, done.Published()[0].Reason)
		assert.Empty(t, says(t, state, dataKey))
	})
}
