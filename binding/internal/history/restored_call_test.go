package history

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// beforeAnnouncement does something before the old leader first announces a call.
func (w *twoLeaders) beforeAnnouncement(do func()) {
	w.old.Client.Use(bindingtest.Before(1, func(call *bindingtest.Call) bool {
		volume, ok := call.Sent.(*corev1.PersistentVolume)
		return ok && volume.Annotations[reclaim.AnnouncementAnnotation] != ""
	}, do))
}

// W8, X2: the old leader is paused in its recycler, for less than its Timeout, and the server is restored to before its
// announcement. The new one has seen that, and notices the restore. Until the old one's call is over it neither scrubs the volume
// nor gives it to a claim, and one that the backup shows to be free it keeps. The storage cannot refuse.
func TestW8ARestoreTakesTheAnnouncementOfAPausedRecycler(t *testing.T) {
	for name, released := range map[string]bool{"the volume was Released": true, "the volume was Available": false} {
		t.Run(name, func(t *testing.T) {
			w := newTwoLeaders(t, corev1.PersistentVolumeReclaimRecycle)
			w.storage.IgnoreTokens()
			backup := w.before
			if released {
				w.beforeAnnouncement(func() { backup = w.server.Snapshot() })
			}
			paused := w.pauseInHook(func() {
				require.NoError(t, w.new.Settle(t.Context()))
				w.server.Restore(backup)
				if !released {
					w.create(bindingtest.Claim("default", "second", "1Gi", RequestingClass(new(""))))
				}
				w.new.ObserveRestore()
				_ = w.new.Settle(t.Context())
				assert.False(t, w.used(), "the second claim has the volume already")
			})
			require.NoError(t, w.old.Settle(t.Context()))
			require.True(t, *paused)
			for range 6 {
				_ = bindingtest.Settle(t.Context(), w.old, w.new)
				_ = w.new.AdvanceClock(t.Context())
			}
			assert.Empty(t, w.storage.Problems())
			if !released { // it is kept for a claim of the first one's name, until a person has looked
				assert.False(t, w.used(), "by whom it was not given back to")
				assert.Equal(t, obj.ClaimKey("default", "first"), obj.ReferencedClaim(w.server.Volume("a")))
				return
			}
			require.True(t, w.used(), "in the end")
			require.True(t, w.storage.Write("a"))
			w.old.Resync()
			w.settle()
			assert.Equal(t, bindingtest.Written, w.storage.Kept()[0].Content)
			assert.Empty(t, w.storage.Problems())
		})
	}
}

// W8, R8, X2: the first is paused in the deleter of what it could not store, for any time, and the server is restored to before
// its announcement. The second waits, and provisions after that, with a larger token. So the storage refuses the deleter when it
// goes on.
func TestW8ARestoreTakesTheAnnouncementOfAPausedDeleter(t *testing.T) {
	w := refusedThrice(t)
	backup := w.server.Snapshot()
	paused := false
	w.storage.Use(func(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
		if call.Verb != bindingtest.StorageDelete || paused {
			return do()
		}
		paused = true
		require.NoError(t, w.second.Settle(t.Context()))
		w.server.Restore(backup)
		w.second.ObserveRestore()
		_ = w.second.Settle(t.Context())
		require.Empty(t, w.claim().Spec.VolumeName, "the first may be at work")
		require.NoError(t, w.second.AdvanceClock(t.Context()))
		require.Equal(t, corev1.ClaimBound, w.claim().Status.Phase)
		require.True(t, w.storage.Write(provisioned))
		return do()
	})
	_ = w.first.Settle(t.Context())
	require.True(t, paused)
	assert.Equal(t, bindingtest.Written, w.storage.Kept()[0].Content)
	w.settle()
	assert.Empty(t, w.storage.Problems())
	assert.Equal(t, bindingtest.Written, w.storage.Kept()[0].Content)
}

// W8: this is what remains. One that starts only after the restore cannot notice it, nor know what was announced before. Start it
// when those before have ended, or HookTimeout and Margin later.
func TestW8OneThatStartsAfterTheRestoreHasNotNoticedIt(t *testing.T) {
	w := newTwoLeaders(t, corev1.PersistentVolumeReclaimRecycle)
	w.storage.IgnoreTokens()
	var backup *bindingtest.Server
	w.beforeAnnouncement(func() { backup = w.server.Snapshot() })
	paused := w.pauseInHook(func() {
		w.server.Restore(backup)
		w.new.Restart()
		w.takesOver(false)
		require.True(t, w.used())
	})
	require.NoError(t, w.old.Settle(t.Context()))
	require.True(t, *paused)
	assert.NotEmpty(t, w.storage.Problems())
}
