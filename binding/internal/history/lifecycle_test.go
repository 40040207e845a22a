package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestX2StorageThroughEveryFault plays the life of a claim again and again: with each fault at each call that is
// made of the server or of a hook, and, after it, with each second one at each later call. What is made is never
// leaked, never deleted twice, and never while it is used, and all settles.
func TestX2StorageThroughEveryFault(t *testing.T) {
	for _, test := range lifecycles() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			test.explore(nil, func(plan []injection) []callKind {
				runs++
				return playLifecycle(t, test, plan)
			})
			for _, plan := range test.found {
				playLifecycle(t, test, plan)
			}
			t.Logf("%d lifecycles", runs)
		})
	}
}

// explore plays a life with this plan, and with each that has more in it.
func (l lifecycle) explore(plan []injection, play func(plan []injection) []callKind) {
	calls := play(plan)
	first := 0
	if len(plan) > 0 {
		first = plan[len(plan)-1].at + 1
	}
	for at := first; at < len(calls) && len(plan) < l.depth(); at++ {
		for _, outcome := range l.outcomesOf(calls[at]) {
			if more := append(slices.Clip(plan), injection{at, outcome}); l.worthwhile(more) {
				l.explore(more, play)
			}
		}
	}
}

// worthwhile reports whether the plan, as far as it goes, may have in it what the test is about.
func (l lifecycle) worthwhile(plan []injection) bool {
	if last := len(plan) - 1; last > 0 && plan[last].outcome == toldAbsent && plan[last-1].outcome == toldAbsent {
		return false // nothing survives a server that lies again and again
	}
	if testing.Short() && (plan[0].at+len(plan[0].outcome))%6 != 0 {
		return false
	}
	about := slices.ContainsFunc(plan, func(m injection) bool { return slices.Contains(l.people, m.outcome) })
	if len(plan) == 2 && (plan[0].at+plan[1].at+len(plan[0].outcome)+len(plan[1].outcome))%l.oneInPairs() != 0 {
		return false
	}
	return len(l.people) == 0 || about || len(plan) < l.depth()
}

// playLifecycle returns one life of a claim, to its end and judged. It returns what calls were made.
func playLifecycle(t *testing.T, test lifecycle, plan []injection) []callKind {
	w := newLifecycleRun(test, plan)
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s\n%s", test.name, inWords(plan), strings.Join(w.log, "\n"))
			t.FailNow()
		}
	}()
	require.NoError(t, w.settle())
	claim := w.cluster.Claim("default", "data")
	if !w.deleted {
		require.NotNil(t, claim)
		require.Equal(t, corev1.ClaimBound, claim.Status.Phase, "it is bound")
		require.NotContains(t, claim.Finalizers, decision.ProvisioningFinalizer)
		w.write(t, claim.Spec.VolumeName)
	}
	w.deleteClaim()
	require.NoError(t, w.settle())
	require.Nil(t, w.cluster.Claim("default", "data"), "it is gone")
	w.judge(t)
	w.passAgain(t)
	require.Less(t, w.last(), len(w.calls), "each injection happened")
	return w.calls
}

func inWords(plan []injection) string {
	var words []string
	for _, m := range plan {
		words = append(words, fmt.Sprintf("%s at call %d", m.outcome, m.at))
	}
	return strings.Join(words, ", ")
}

// judge looks at what is left.
func (w *lifecycleRun) judge(t *testing.T) {
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
		w.lifecycle.end(t, w, volume)
	}
	assert.ElementsMatch(t, volumes, kept, "a volume has storage, and storage a volume")
	if w.lifecycle.stays && !w.deleted {
		assert.NotEmpty(t, volumes)
	}
}

func (w *lifecycleRun) volumes(t *testing.T) []*corev1.PersistentVolume {
	list, err := w.cluster.List(t.Context(), obj.KindVolume, "")
	require.NoError(t, err)
	var volumes []*corev1.PersistentVolume
	for _, object := range list {
		volumes = append(volumes, object.(*corev1.PersistentVolume))
	}
	return volumes
}

// passAgain syncs all once more: nothing is written, said or asked of a hook (X8).
func (w *lifecycleRun) passAgain(t *testing.T) {
	calls, hookCalls := len(w.cluster.Calls()), w.hookCalls()
	w.quiet = true
	w.cluster.Resync()
	require.NoError(t, w.settle())
	w.quiet = false
	for _, call := range w.cluster.CallsSince(calls) {
		require.False(t, call.Writes() || call.Verb == bindingtest.VerbRecord, "X8: %s", call)
	}
	require.Equal(t, hookCalls, w.hookCalls(), "X8: hooks are not run again")
}

func (w *lifecycleRun) hookCalls() (n int) {
	for _, storage := range w.storages {
		n += len(storage.Calls())
	}
	return n
}

func (w *lifecycleRun) write(t *testing.T, volume string) {
	written := slices.ContainsFunc(w.storages, func(s *bindingtest.Storage) bool { return s.Write(volume) })
	require.True(t, written, "the claim's storage exists")
	w.written = volume
}

// lifecycle is that of a claim: it is created, bound and deleted.
type lifecycle struct {
	name    string
	objects func() []obj.Object
	class   string
	// people are what else may happen, in lifecycles in which at least one of these does.
	people []outcome
	// oneIn: of the plans of two faults, only each of so many is played; what they share with others is played there.
	oneIn int
	// late: after a crash the volumes are known before the claims.
	late bool
	// found are plans that have found something, to be played even where there is no time for all.
	found [][]injection
	// stays: a volume is left. end judges it.
	stays bool
	end   func(t *testing.T, w *lifecycleRun, volume *corev1.PersistentVolume)
}

// depth returns how many things happen in one lifecycle.
func (l lifecycle) depth() int {
	if testing.Short() {
		return 1
	}
	return 2
}

// oneInPairs returns of how many plans of two faults one is played.
func (l lifecycle) oneInPairs() int {
	n := max(1, l.oneIn)
	if ModeOfRun() == RunUsual {
		n *= 3
	}
	return n
}

func lifecycles() []lifecycle {
	class := func(policy corev1.PersistentVolumeReclaimPolicy, edits ...func(*storagev1.StorageClass)) func() []obj.Object {
		return func() []obj.Object { return []obj.Object{DirsClass(Ours, policy, edits...)} }
	}
	volume := func(policy corev1.PersistentVolumeReclaimPolicy) func() []obj.Object {
		return func() []obj.Object {
			return []obj.Object{bindingtest.Volume("a", "1Gi", WithPolicy(policy))}
		}
	}
	gone := func(t *testing.T, _ *lifecycleRun, volume *corev1.PersistentVolume) {
		assert.Fail(t, "a volume is left", "%s %s", volume.Name, volume.Status.Phase)
	}
	return []lifecycle{
		{name: "R3 Delete", objects: class("Delete"), class: "dirs", end: gone},
		{name: "R3 Delete, another volume comes", oneIn: 3, objects: class("Delete"), class: "dirs", people: []outcome{rivalComes, rivalComesTold}, end: gone},
		{name: "R3 Delete, another provisioner comes", oneIn: 3, objects: class("Delete"), class: "dirs", people: []outcome{classChanges, classChangesTold}, end: gone,
			found: [][]injection{
				{{3, classChangesTold}},                        // the storage was deleted, and then the volume created
				{{0, classChangesTold}, {6, claimDeletedTold}}, // what the second one made was taken for what the first one's deleter had deleted
			}},
		{name: "R3 Delete, its volume is deleted as well", objects: class("Delete"), class: "dirs", people: []outcome{volumeDeleted}, end: gone},
		{name: "V3 Delete, claims are known late", objects: class("Delete"), class: "dirs", late: true, people: []outcome{crashBefore, crashAfter}, end: gone},
		{name: "P2 Delete, on a node", oneIn: 3, objects: class("Delete", WaitsForFirstConsumer), class: "dirs", end: gone},
		{name: "R2 Retain", objects: class("Retain"), class: "dirs", stays: true, end: retained},
		{name: "R3 Delete by source", objects: volume("Delete"), end: neverClaimed},
		{name: "R4 Recycle by source", objects: volume("Recycle"), stays: true, end: recycled},
	}
}

func retained(t *testing.T, w *lifecycleRun, volume *corev1.PersistentVolume) {
	assert.Equal(t, corev1.VolumeReleased, volume.Status.Phase)
	if w.written != "" {
		assert.Equal(t, bindingtest.Written, w.storages[0].Kept()[0].Content, "X2")
	}
}

// neverClaimed: the claim was deleted before the volume was its own.
func neverClaimed(t *testing.T, w *lifecycleRun, volume *corev1.PersistentVolume) {
	assert.Empty(t, w.written)
	assert.Nil(t, volume.Spec.ClaimRef)
	assert.Equal(t, corev1.VolumeAvailable, volume.Status.Phase)
}

func recycled(t *testing.T, w *lifecycleRun, volume *corev1.PersistentVolume) {
	assert.Nil(t, volume.Spec.ClaimRef)
	assert.Equal(t, corev1.VolumeAvailable, volume.Status.Phase)
	if w.written != "" {
		assert.Equal(t, bindingtest.Scrubbed, w.storages[0].Kept()[0].Content)
	}
}
