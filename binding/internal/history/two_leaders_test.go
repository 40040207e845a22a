package history

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// twoLeaders are an old controller and a new one on one server, with one storage. A claim that has a volume is deleted, and
// another waits for it.
type twoLeaders struct {
	t        *testing.T
	server   *bindingtest.Server
	storage  *bindingtest.Storage
	old, new *bindingtest.Driver
	before   *bindingtest.Server // a backup from before there was a claim
	passed   int                 // seconds, by pass
}

func newTwoLeaders(t *testing.T, policy corev1.PersistentVolumeReclaimPolicy) *twoLeaders {
	w := &twoLeaders{t: t, server: bindingtest.NewServer(), storage: bindingtest.NewStorage()}
	volume := bindingtest.Volume("a", "2Gi", WithPolicy(policy))
	w.create(volume)
	w.storage.Add(volume)
	leader := func(name string) *bindingtest.Driver {
		return bindingtest.NewDriver(w.server, bindingtest.DriverOptions{Name: name, Hooks: w.storage.Hooks(Ours, "hostPath"),
			BindingOptions: decision.Options{Protection: decision.ProtectionOn}})
	}
	w.old, w.new = leader("old"), leader("new")
	require.NoError(t, bindingtest.Settle(t.Context(), w.old, w.new))
	w.before = w.server.Snapshot()
	w.create(bindingtest.Claim("default", "first", "2Gi", RequestingClass(new(""))))
	w.create(bindingtest.Claim("default", "second", "1Gi", RequestingClass(new(""))))
	require.NoError(t, bindingtest.Settle(t.Context(), w.old, w.new))
	require.Equal(t, "a", w.server.Claim("default", "first").Spec.VolumeName)
	require.True(t, w.storage.Write("a"))
	require.NoError(t, w.server.Delete(t.Context(), obj.ClaimKey("default", "first"), metav1.DeleteOptions{}))
	return w
}

func (w *twoLeaders) create(object obj.Object) {
	_, err := w.server.Create(w.t.Context(), object)
	require.NoError(w.t, err)
}

// takesOver has the new leader do all it can, while the old one is paused, for as long as its delays last if the pause is a long
// one. Pods then write onto what the second claim has got.
func (w *twoLeaders) takesOver(long bool) {
	require.NoError(w.t, w.new.Settle(w.t.Context()))
	w.storage.Restarted() // the new leader cannot know what the old one has done
	for range 5 {
		if long {
			require.NoError(w.t, w.new.AdvanceClock(w.t.Context()))
		}
	}
	if w.used() {
		w.storage.Write("a")
	}
}

func (w *twoLeaders) used() bool {
	return w.server.Claim("default", "second").Status.Phase == corev1.ClaimBound
}

// settle lets both go on until nothing is left to do.
func (w *twoLeaders) settle() {
	for range 8 {
		require.NoError(w.t, bindingtest.Settle(w.t.Context(), w.old, w.new))
		require.NoError(w.t, w.old.AdvanceClock(w.t.Context()))
		require.NoError(w.t, w.new.AdvanceClock(w.t.Context()))
	}
}

// pauseBefore pauses a controller before the n-th call of its client, and does something meanwhile. It returns whether there was
// such a call.
func pauseBefore(n int, client *bindingtest.Client, meanwhile func()) (paused *bool) {
	calls := 0
	paused = new(bool)
	client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb != bindingtest.VerbRecord {
			calls++
		}
		if calls == n && !*paused {
			*paused = true
			meanwhile()
		}
		return do()
	})
	return paused
}

// pauseBeforeEach plays with a pause before the first call, before the second and so on, as long as there is one.
func pauseBeforeEach(t *testing.T, atLeast int, play func(n int) (paused bool)) {
	pauses := 0
	for play(pauses + 1) {
		pauses++
	}
	assert.GreaterOrEqual(t, pauses, atLeast, "as many calls it makes at least")
	t.Logf("paused before each of %d calls", pauses)
}

// pauseInHook pauses whoever calls the storage first, right before that does anything, and does something meanwhile.
func (w *twoLeaders) pauseInHook(meanwhile func()) (paused *bool) {
	paused = new(bool)
	w.storage.Use(func(_ context.Context, _ *bindingtest.StorageCall, do func() error) error {
		if !*paused {
			*paused = true
			meanwhile()
		}
		return do()
	})
	return paused
}

// requireReclaimed requires that the volume is the second claim's, or gone with its storage, as its policy says.
func (w *twoLeaders) requireReclaimed(policy corev1.PersistentVolumeReclaimPolicy, pausedBefore int) {
	if policy == corev1.PersistentVolumeReclaimRecycle {
		require.True(w.t, w.used(), "paused before call %d", pausedBefore)
		return
	}
	require.Nil(w.t, w.server.Volume("a"), "paused before call %d", pausedBefore)
	require.Empty(w.t, w.storage.Kept(), "paused before call %d", pausedBefore)
}

// R8, X2: the old leader is paused in the call of the hook, right before the storage does anything. The new one scrubs the
// storage when it has waited for long enough, and binds the volume to the second claim. Then the old one goes on. Storage that
// refuses older tokens is safe. What cannot refuse is so from a pause that is not that long: see the next test.
func TestR8ALeaderIsPausedInItsHook(t *testing.T) {
	for name, test := range map[string]struct {
		long, refuses, lost bool
	}{
		"a short pause": {refuses: true},
		"a long pause":  {refuses: true, long: true},
		"a short pause, storage that cannot refuse":                      {},
		"a long pause, storage that cannot refuse: this is what remains": {long: true, lost: true},
	} {
		t.Run("R8 "+name, func(t *testing.T) {
			w := newTwoLeaders(t, corev1.PersistentVolumeReclaimRecycle)
			if !test.refuses {
				w.storage.IgnoreTokens()
			}
			paused := w.pauseInHook(func() {
				w.takesOver(test.long)
				assert.Equal(t, test.long, w.used(), "the second claim has the volume already")
			})
			require.NoError(t, w.old.Settle(t.Context()))
			require.True(t, *paused)
			assert.Equal(t, test.lost, len(w.storage.Problems()) > 0, "%s", w.storage.Problems())
			w.settle()
			assert.True(t, w.used())
			if test.long {
				assert.Equal(t, test.lost, w.storage.Kept()[0].Content == bindingtest.Scrubbed)
			}
		})
	}
}

// R8, X2: how long a pause in the hook is harmless to storage that cannot refuse. The new leader has seen the announcement at once, and goes on
// Timeout and Margin after it, whenever the call was made and however long it has worked by then.
func TestR8HowLongAPauseInAHookIsHarmless(t *testing.T) {
	timeout, margin := int(hooks.DefaultTimeout/time.Second), int(hooks.Margin/time.Second)
	for name, test := range map[string]struct {
		begins, works, harmless int // seconds; the announcement itself takes one
	}{
		"a call at once":       {harmless: timeout + margin - 1},
		"a call at the last":   {begins: margin - 1, harmless: timeout},
		"right before the end": {works: timeout - 2, harmless: margin + 1},
	} {
		for pause, lost := range map[int]bool{test.harmless: false, test.harmless + 1: true} {
			t.Run(fmt.Sprintf("R8 %s: %d s", name, pause), func(t *testing.T) {
				w := newTwoLeaders(t, corev1.PersistentVolumeReclaimRecycle)
				w.storage.IgnoreTokens()
				w.old.Client.Use(bindingtest.Before(1, bindingtest.On(bindingtest.VerbList, obj.KindAttachment), func() {
					require.NoError(t, w.new.Settle(t.Context()))
					w.pass(test.begins)
				}))
				paused := w.pauseInHook(func() {
					w.pass(test.works + pause)
					w.new.Resync()
					w.takesOver(false)
				})
				require.NoError(t, w.old.Settle(t.Context()))
				require.True(t, *paused)
				assert.Equal(t, lost, len(w.storage.Problems()) > 0, "%s", w.storage.Problems())
			})
		}
	}
}

// pass lets seconds pass, by as many writes of other objects.
func (w *twoLeaders) pass(seconds int) {
	for range seconds {
		w.passed++
		w.create(bindingtest.Class(fmt.Sprintf("class-%d", w.passed)))
	}
}

// R8, X2: the old leader is paused before any of its calls of the server, and the new one does all it can meanwhile, for a
// short time or a long one. No call ever takes effect on storage in use: not even where the storage cannot refuse, for after
// the pause come live reads, a guarded write, or the look at how late it is.
func TestR8ALeaderIsPausedAnywhere(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimDelete} {
		for _, long := range []bool{false, true} {
			t.Run(fmt.Sprintf("R8 %s long=%v", policy, long), func(t *testing.T) {
				pauseBeforeEach(t, 9, func(n int) bool { return leaderPaused(t, policy, long, n) })
			})
		}
	}
}

// leaderPaused pauses the old leader before its n-th call, and reports whether it made so many.
func leaderPaused(t *testing.T, policy corev1.PersistentVolumeReclaimPolicy, long bool, n int) (paused bool) {
	w := newTwoLeaders(t, policy)
	w.storage.IgnoreTokens()
	made := pauseBefore(n, w.old.Client, func() { w.takesOver(long) })
	require.NoError(t, w.old.Settle(t.Context()))
	w.settle()
	require.Empty(t, w.storage.Problems(), "paused before call %d", n)
	for _, call := range w.storage.Calls() {
		require.NotZero(t, call.Token)
	}
	w.requireReclaimed(policy, n)
	return *made
}

// R8: between the announcement and the call the leader is paused for longer than it may be. It announces the call anew, with a
// larger token.
func TestR8ACallThatComesTooLate(t *testing.T) {
	t.Run("R8 by a second", testCallThatComesTooLate)
}

func testCallThatComesTooLate(t *testing.T) {
	w := newTwoLeaders(t, corev1.PersistentVolumeReclaimDelete)
	w.old.Client.Use(bindingtest.Before(1, bindingtest.On(bindingtest.VerbList, obj.KindAttachment), func() {
		w.pass(31)
	}))
	var tokens []int64
	w.old.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if volume, ok := call.Sent.(*corev1.PersistentVolume); ok && call.Verb == bindingtest.VerbUpdate && call.Subresource == "" && volume.DeletionTimestamp == nil {
			announcement, _ := reclaim.AnnouncementOf(volume)
			tokens = append(tokens, announcement.Token)
		}
		return do()
	})
	require.NoError(t, w.old.Settle(t.Context()))
	require.Empty(t, w.storage.Calls())
	require.Equal(t, []bindingtest.Delay{{Key: obj.VolumeKey("a"), After: 500 * time.Millisecond}}, w.old.Delayed(), "W6")
	require.NoError(t, w.old.AdvanceClock(t.Context()))
	require.Len(t, w.storage.Calls(), 1)
	assert.Nil(t, w.server.Volume("a"))
	assert.Len(t, tokens, 2)
	assert.IsIncreasing(t, tokens)
}
