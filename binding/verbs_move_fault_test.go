package binding_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// toClaim names the claim that is to have a volume, and says no more of it.
func toClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = namespace, name
	return claim
}

func removals() []removal {
	archive := toClaim("archive", "data")
	given := bindingtest.Claim("archive", "data", "5Gi", naming("pv-1"))
	waits := func(w *removalDay) { w.create(given) }
	released := func(w *removalDay) { w.deleteOld() }
	return []removal{
		{name: "R7 Delete, to another namespace", policy: "Delete", by: ours, to: archive, eager: true},
		{name: "R7 Delete, the controller idle", policy: "Delete", by: ours, to: archive},
		{name: "R7 Delete, late news of volumes", policy: "Delete", by: ours, to: archive, lag: []obj.Kind{obj.KindVolume}, eager: true},
		{name: "R7 Delete, late news of claims", policy: "Delete", by: ours, to: archive, lag: []obj.Kind{obj.KindClaim}, eager: true},
		{name: "R7 Delete, external provisioner", policy: "Delete", by: "ebs.csi.aws.com", to: archive, eager: true},
		{name: "R7 Recycle, in the same namespace", policy: "Recycle", to: toClaim("shop", "orders"), eager: true},
		{name: "R7 Retain, to a claim that waits", policy: "Retain", to: given, before: waits, eager: true},
		{name: "R7 Retain, from a claim that is gone", policy: "Retain", to: given, before: released, eager: true},
	}
}

// TestR7MoveThroughEveryFault moves a volume again and again: with each fault at each call that the tool or the
// controller makes, somebody creating claims under the old and the new name among them, and with some second ones at
// later calls; PVBIND_MODEL=long plays all of those, -short not even all of the first. At every moment the volume exists, is kept or held, and its data
// is intact; at the end the new claim is Bound to it.
func TestR7MoveThroughEveryFault(t *testing.T) {
	throughEveryFault(t, removals())
}

func throughEveryFault(t *testing.T, stories []removal) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			runs, considered := 0, [3]int{}
			var explore func(plan []mishap)
			explore = func(plan []mishap) {
				considered[len(plan)]++
				if considered[len(plan)]%oneIn(len(plan)) != 0 {
					return
				}
				w := moveThrough(t, story, plan)
				runs++
				for at := w.last() + 1; at < len(w.calls) && len(plan) < 2; at++ {
					for _, fate := range w.fatesOf(at) {
						explore(append(slices.Clip(plan), mishap{at, fate}))
					}
				}
			}
			explore(nil)
			t.Logf("%d moves", runs)
		})
	}
}

// oneIn: of the plans with so many faults, one in so many is played. The numbers are prime, so that no kind of plan is
// left out.
func oneIn(faults int) int {
	switch {
	case faults == 0 || os.Getenv("PVBIND_MODEL") == "long":
		return 1
	case testing.Short():
		return []int{0, 3, 499}[faults]
	}
	return []int{0, 1, 67}[faults]
}

func (w *removalDay) last() int {
	if len(w.plan) == 0 {
		return -1
	}
	return w.plan[len(w.plan)-1].at
}

// moveThrough moves the volume once, to the end, and judges it.
func moveThrough(t *testing.T, story removal, plan []mishap) *removalDay {
	w := newRemovalDay(story, plan)
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s\n%s", story.name, inWords(plan), strings.Join(w.told, "\n"))
			t.FailNow()
		}
	}()
	err := w.run(t.Context())
	w.armed = false
	require.NoError(t, err)
	require.Empty(t, w.broken)
	require.Less(t, w.last(), len(w.calls), "each mishap happened")

	volume, claim := w.cluster.Volume(w.volume), w.cluster.Claim(story.to.Namespace, story.to.Name)
	require.NotNil(t, claim)
	require.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	require.Equal(t, w.volume, claim.Spec.VolumeName)
	require.Equal(t, claim.UID, volume.Spec.ClaimRef.UID)
	require.Equal(t, corev1.VolumeBound, volume.Status.Phase)
	policy := story.policy // it has it back
	if story.byHand != nil {
		policy = corev1.PersistentVolumeReclaimRetain
	}
	require.Equal(t, policy, volume.Spec.PersistentVolumeReclaimPolicy)
	require.NotContains(t, volume.Annotations, reclaim.MoveAnnotation)
	require.Empty(t, w.storage.Problems())
	require.Empty(t, w.storage.Calls(), "no hook ever ran")

	before := len(w.cluster.Calls())
	w.cluster.Resync()
	require.NoError(t, w.settle(t.Context()))
	for _, call := range w.cluster.CallsSince(before) {
		require.False(t, call.Writes() || call.Verb == bindingtest.VerbRecord, "X8: %s", call)
	}
	return w
}

// TestR7MoveAbandoned stops after each write for good, and lets the controller do what it will: the volume is kept or
// held, and its data intact. Another tool, which knows no more than the name of the volume, then ends the move.
func TestR7MoveAbandoned(t *testing.T) {
	for _, story := range removals() {
		for writes := 1; writes <= 5; writes++ {
			w := newRemovalDay(story, nil)
			w.tool.client.CrashAfter(writes)
			for range 100 {
				step, err := w.tool.turn(t.Context())
				if w.tool.client.Crashed() || step.Kind == reclaim.StepDone {
					break
				}
				require.NoError(t, err)
				require.NoError(t, w.settle(t.Context()))
			}
			w.cluster.Release(story.lag...)
			require.NoError(t, w.settle(t.Context()))
			w.deleteOld()
			require.NoError(t, w.settle(t.Context()))
			require.Empty(t, w.broken, "%s, %d writes", story.name, writes)

			w.tool.restart(w.cluster.Server, nil)
			require.NoError(t, w.run(t.Context()))
			require.Empty(t, w.broken, "%s, %d writes", story.name, writes)
			claim := w.cluster.Claim(story.to.Namespace, story.to.Name)
			require.NotNil(t, claim, "%s, %d writes: %s", story.name, writes, w.claims())
			require.Equal(t, corev1.ClaimBound, claim.Status.Phase)
		}
	}
}
