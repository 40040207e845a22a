package history

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// refusedThrice is a world in which the first cannot store what it makes, and so deletes it again.
func refusedThrice(t *testing.T) *provisioningWorld {
	w := newProvisioningWorld(t, nil)
	refused := 0
	w.first.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb == bindingtest.VerbCreate && call.Key.Kind == obj.KindVolume && refused < 3 {
			refused++
			return ErrForbidden
		}
		return do()
	})
	return w
}

// deletions counts the calls of the deleter.
func (w *provisioningWorld) deletions() (count int) {
	for _, call := range w.storage.Calls() {
		if call.Verb == bindingtest.StorageDelete {
			count++
		}
	}
	return count
}

// R8, P2: a deleter of what could not be stored answers that it is at work, or fails, and takes effect when the claim has been
// provisioned for anew and a pod has written.
func TestR8ADeleterOfWhatWasNotStoredGoesOn(t *testing.T) {
	for name, answer := range map[string]error{"R8 it is at work": InProgress(5 * time.Second), "R8 it fails": ErrBroken} {
		t.Run(name, func(t *testing.T) {
			w := refusedThrice(t)
			var late func() error
			w.storage.Use(func(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
				if call.Verb == bindingtest.StorageDelete && late == nil {
					late = do
					return answer
				}
				return do()
			})
			for range 4 {
				require.NoError(t, w.first.Settle(t.Context()))
				require.NoError(t, w.first.AdvanceClock(t.Context()))
			}
			require.NotNil(t, late)
			require.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
			require.True(t, w.storage.Write(provisioned))
			require.Error(t, late(), "another was called since, with a larger token")
			assert.Empty(t, w.storage.Problems())
		})
	}
}

// R8, P2, X10: one that never succeeds keeps the claim waiting, which is told; nothing is made for it meanwhile.
func TestR8ADeleterOfWhatWasNotStoredNeverEnds(t *testing.T) {
	w := refusedThrice(t)
	w.storage.Use(func(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
		if call.Verb == bindingtest.StorageDelete {
			return ErrBroken
		}
		return do()
	})
	for range 5 {
		require.NoError(t, w.first.Settle(t.Context()))
		require.NotEmpty(t, w.first.Delayed(), "W6")
		require.NoError(t, w.first.AdvanceClock(t.Context()))
	}
	assert.Equal(t, corev1.ClaimPending, w.claim().Status.Phase)
	assert.Nil(t, w.server.Volume(provisioned))
	assert.Equal(t, 6, w.deletions())
	assert.Len(t, w.storage.Calls(), 7, "it was provisioned for once")
}

// R8, P2: a leader is paused in the deleter of what it could not store, for longer than it may be. The next one deletes it with a
// larger token before it makes it anew, so that the storage refuses the late call.
func TestR8ALeaderIsPausedDeletingWhatWasNotStored(t *testing.T) {
	w := refusedThrice(t)
	paused := false
	w.storage.Use(func(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
		if call.Verb == bindingtest.StorageDelete && !paused {
			paused = true
			require.NoError(t, w.second.Settle(t.Context()))
			require.Equal(t, corev1.ClaimPending, w.claim().Status.Phase, "it waits for the other")
			for range 3 {
				require.NoError(t, w.second.AdvanceClock(t.Context()))
			}
			w.binds()
		}
		return do()
	})
	w.settle()
	require.True(t, paused)
	assert.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
	assert.Empty(t, w.storage.Problems())
}
