package binding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestX2StorageThroughEveryFault plays the life of a claim again and again: with each fault at each call that is
// made of the server or of a hook, and, after it, with each second one at each later call. What is made is never
// leaked, never deleted twice, and never while it is used, and all settles.
func TestX2StorageThroughEveryFault(t *testing.T) {
	for _, story := range lives() {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			story.explore(nil, func(plan []mishap) []callKind {
				runs++
				return live(t, story, plan)
			})
			for _, plan := range story.found {
				live(t, story, plan)
			}
			t.Logf("%d lives", runs)
		})
	}
}

// explore plays a life with this plan, and with each that has more in it.
func (l life) explore(plan []mishap, play func(plan []mishap) []callKind) {
	calls := play(plan)
	first := 0
	if len(plan) > 0 {
		first = plan[len(plan)-1].at + 1
	}
	for at := first; at < len(calls) && len(plan) < l.depth(); at++ {
		for _, fate := range l.fatesOf(calls[at]) {
			if more := append(slices.Clip(plan), mishap{at, fate}); l.worthwhile(more) {
				l.explore(more, play)
			}
		}
	}
}

// worthwhile reports whether the plan, as far as it goes, may have in it what the story is about.
func (l life) worthwhile(plan []mishap) bool {
	if last := len(plan) - 1; last > 0 && plan[last].fate == toldAbsent && plan[last-1].fate == toldAbsent {
		return false // nothing survives a server that lies again and again
	}
	about := slices.ContainsFunc(plan, func(m mishap) bool { return slices.Contains(l.people, m.fate) })
	if len(plan) == 2 && l.oneIn > 0 && (plan[0].at+plan[1].at+len(plan[0].fate)+len(plan[1].fate))%l.oneIn != 0 {
		return false
	}
	return len(l.people) == 0 || about || len(plan) < l.depth()
}

// live is one life of a claim, to its end and judged. It returns what calls were made.
func live(t *testing.T, story life, plan []mishap) []callKind {
	w := newLifetime(story, plan)
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s\n%s", story.name, inWords(plan), strings.Join(w.told, "\n"))
			t.FailNow()
		}
	}()
	require.NoError(t, w.settle())
	claim := w.cluster.Claim("default", "data")
	if !w.deleted {
		require.NotNil(t, claim)
		require.Equal(t, corev1.ClaimBound, claim.Status.Phase, "it is bound")
		require.NotContains(t, claim.Finalizers, binding.ProvisioningFinalizer)
		w.write(t, claim.Spec.VolumeName)
	}
	w.deleteClaim()
	require.NoError(t, w.settle())
	require.Nil(t, w.cluster.Claim("default", "data"), "it is gone")
	w.judge(t)
	w.passAgain(t)
	require.Less(t, w.last(), len(w.calls), "each mishap happened")
	return w.calls
}

func inWords(plan []mishap) string {
	var words []string
	for _, m := range plan {
		words = append(words, fmt.Sprintf("%s at call %d", m.fate, m.at))
	}
	return strings.Join(words, ", ")
}

// judge looks at what is left.
func (w *lifetime) judge(t *testing.T) {
	var kept []string
	for _, storage := range w.storages {
		require.Empty(t, storage.Problems())
		for _, k := range storage.Kept() {
			kept = append(kept, k.Volume)
		}
	}
	volumes := []string{}
	for _, volume := range w.volumes(t) {
		volumes = append(volumes, volume.Name)
		if volume.Name == "rival" && volume.Status.Phase == corev1.VolumeAvailable {
			continue
		}
		w.story.end(t, w, volume)
	}
	assert.ElementsMatch(t, volumes, kept, "a volume has storage, and storage a volume")
	if w.story.stays && !w.deleted {
		assert.NotEmpty(t, volumes)
	}
}

func (w *lifetime) volumes(t *testing.T) []*corev1.PersistentVolume {
	list, err := w.cluster.List(t.Context(), obj.KindVolume, "")
	require.NoError(t, err)
	var volumes []*corev1.PersistentVolume
	for _, object := range list {
		volumes = append(volumes, object.(*corev1.PersistentVolume))
	}
	return volumes
}

// passAgain syncs all once more: nothing is written, said or asked of a hook (X8).
func (w *lifetime) passAgain(t *testing.T) {
	calls, hooks := len(w.cluster.Calls()), w.hookCalls()
	w.quiet = true
	w.cluster.Resync()
	require.NoError(t, w.settle())
	w.quiet = false
	for _, call := range w.cluster.CallsSince(calls) {
		require.False(t, call.Writes() || call.Verb == bindingtest.VerbRecord, "X8: %s", call)
	}
	require.Equal(t, hooks, w.hookCalls(), "X8: hooks are not run again")
}

func (w *lifetime) hookCalls() (n int) {
	for _, storage := range w.storages {
		n += len(storage.Calls())
	}
	return n
}

func (w *lifetime) write(t *testing.T, volume string) {
	written := slices.ContainsFunc(w.storages, func(s *bindingtest.Storage) bool { return s.Write(volume) })
	require.True(t, written, "the claim's storage exists")
	w.written = volume
}
