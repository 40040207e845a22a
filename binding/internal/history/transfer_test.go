package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// toClaim names the claim that is to have a volume, and says no more of it.
func toClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = namespace, name
	return claim
}

func transfers() []transfer {
	archive := toClaim("archive", "data")
	given := bindingtest.Claim("archive", "data", "5Gi", Naming("pv-1"))
	waits := func(w *transferRun) { w.create(given) }
	released := func(w *transferRun) { w.deleteOld() }
	return []transfer{
		{name: "R7 Delete, to another namespace", policy: "Delete", by: Ours, to: archive, eager: true},
		{name: "R7 Delete, the controller idle", policy: "Delete", by: Ours, to: archive},
		{name: "R7 Delete, late news of volumes", policy: "Delete", by: Ours, to: archive, lag: []obj.Kind{obj.KindVolume}, eager: true},
		{name: "R7 Delete, late news of claims", policy: "Delete", by: Ours, to: archive, lag: []obj.Kind{obj.KindClaim}, eager: true},
		{name: "R7 Delete, external provisioner", policy: "Delete", by: "ebs.csi.aws.com", to: archive, eager: true},
		{name: "R7 Recycle, in the same namespace", policy: "Recycle", to: toClaim("shop", "orders"), eager: true},
		{name: "R7 Retain, to a claim that waits", policy: "Retain", to: given, before: waits, eager: true},
		{name: "R7 Retain, from a claim that is gone", policy: "Retain", to: given, before: released, eager: true},
	}
}

// TestR7TransferThroughEveryFault moves a volume again and again: with each fault at each call that the tool or the
// controller makes, somebody creating claims under the old and the new name among them, and with some second ones at
// later calls; PVBIND_MODE=long plays all of those, -short not even all of the first. At every moment the volume exists, is kept or held, and its data
// is intact; at the end the new claim is Bound to it.
func TestR7TransferThroughEveryFault(t *testing.T) {
	throughEveryFault(t, transfers())
}

func throughEveryFault(t *testing.T, tests []transfer) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			runs, considered := 0, [3]int{}
			var explore func(plan []injection)
			explore = func(plan []injection) {
				considered[len(plan)]++
				if considered[len(plan)]%oneIn(len(plan)) != 0 {
					return
				}
				w := playTransfer(t, test, plan)
				runs++
				for at := w.last() + 1; at < len(w.calls) && len(plan) < 2; at++ {
					for _, outcome := range w.outcomesOf(at) {
						explore(append(slices.Clip(plan), injection{at, outcome}))
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
	switch mode := ModeOfRun(); {
	case faults == 0 || mode == RunLong:
		return 1
	case mode == RunShort:
		return []int{0, 29, 9973}[faults]
	case mode == RunUsual:
		return []int{0, 1, 199}[faults]
	}
	return []int{0, 1, 67}[faults]
}

func (w *transferRun) last() int {
	if len(w.plan) == 0 {
		return -1
	}
	return w.plan[len(w.plan)-1].at
}

// playTransfer moves the volume once, to the end, and judges it.
func playTransfer(t *testing.T, test transfer, plan []injection) *transferRun {
	w := newTransferRun(test, plan)
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s\n%s", test.name, inWords(plan), strings.Join(w.log, "\n"))
			t.FailNow()
		}
	}()
	err := w.run(t.Context())
	w.armed = false
	require.NoError(t, err)
	require.Empty(t, w.broken)
	require.Less(t, w.last(), len(w.calls), "each injection happened")

	volume, claim := w.cluster.Volume(w.volume), w.cluster.Claim(test.to.Namespace, test.to.Name)
	require.NotNil(t, claim)
	require.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	require.Equal(t, w.volume, claim.Spec.VolumeName)
	require.Equal(t, claim.UID, volume.Spec.ClaimRef.UID)
	require.Equal(t, corev1.VolumeBound, volume.Status.Phase)
	policy := test.policy // it has it back
	if test.byHand != nil {
		policy = corev1.PersistentVolumeReclaimRetain
	}
	require.Equal(t, policy, volume.Spec.PersistentVolumeReclaimPolicy)
	require.NotContains(t, volume.Annotations, reclaim.TransferAnnotation)
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

// TestR7TransferAbandoned stops after each write for good, and lets the controller do what it will: the volume is kept or
// held, and its data intact. Another tool, which knows no more than the name of the volume, then ends the transfer.
func TestR7TransferAbandoned(t *testing.T) {
	for _, test := range transfers() {
		for writes := 1; writes <= 5; writes++ {
			w := newTransferRun(test, nil)
			w.tool.client.CrashAfter(writes)
			for range 100 {
				step, err := w.tool.step(t.Context())
				if w.tool.client.Crashed() || step.Kind == reclaim.StepDone {
					break
				}
				require.NoError(t, err)
				require.NoError(t, w.settle(t.Context()))
			}
			w.cluster.Release(test.lag...)
			require.NoError(t, w.settle(t.Context()))
			w.deleteOld()
			require.NoError(t, w.settle(t.Context()))
			require.Empty(t, w.broken, "%s, %d writes", test.name, writes)

			w.tool.restart(w.cluster.Server, nil)
			require.NoError(t, w.run(t.Context()))
			require.Empty(t, w.broken, "%s, %d writes", test.name, writes)
			claim := w.cluster.Claim(test.to.Namespace, test.to.Name)
			require.NotNil(t, claim, "%s, %d writes: %s", test.name, writes, w.claims())
			require.Equal(t, corev1.ClaimBound, claim.Status.Phase)
		}
	}
}

// TestR7OperationsThroughEveryFault keeps a volume, deletes its claim, opens or reserves the volume and creates the claim
// that is to have it: through the same faults as a transfer, and with the same that must hold.
func TestR7OperationsThroughEveryFault(t *testing.T) {
	t.Parallel()
	to := bindingtest.Claim("archive", "data", "5Gi", RequestingClass(new("")))
	open := func(volume *corev1.PersistentVolume, known reclaim.Known) (reclaim.Change, error) {
		return reclaim.MakeAvailable(volume, known)
	}
	reserve := func(volume *corev1.PersistentVolume, known reclaim.Known) (reclaim.Change, error) {
		return reclaim.Reserve(volume, to, known)
	}
	late := []obj.Kind{obj.KindVolume, obj.KindClaim}
	throughEveryFault(t, []transfer{
		{name: "R7 Retain and Open", policy: "Delete", by: Ours, to: to, byHand: open, alone: true, eager: true},
		{name: "R7 Retain and Open, late news", policy: "Delete", to: to, byHand: open, alone: true, lag: late},
		{name: "R7 Retain and Reserve", policy: "Delete", by: Ours, to: to, byHand: reserve, eager: true},
		{name: "R7 Retain and Reserve, Recycle", policy: "Recycle", to: to, byHand: reserve},
		{name: "R7 Retain and Reserve, late news", policy: "Delete", by: "ebs.csi.aws.com", to: to, byHand: reserve, lag: late, eager: true},
	})
}

// stepByHand does what comes next of Retain, the deletion of the claim, the case's operation, and the creation of the new
// claim. What comes next it reads off the volume, as a person would.
func (t *tool) stepByHand(ctx context.Context, test transfer) (reclaim.Step, error) {
	volume, err := t.client.GetVolume(ctx, t.transfer.Volume)
	if err != nil {
		return reclaim.Step{Why: "read the volume"}, err
	}
	old := obj.Key{Kind: obj.KindClaim, Namespace: oldKey.Namespace, Name: oldKey.Name}
	t.known = reclaim.Known{}
	if err := t.read(ctx, old); err != nil {
		return reclaim.Step{Why: "read the claim"}, err
	}
	lives := len(t.known.Claims) > 0 && phase.ClaimRefStateOf(volume, t.known.Claims[0]) == phase.ClaimRefBound
	switch ref := volume.Spec.ClaimRef; {
	case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		_, err = t.client.UpdateVolume(ctx, reclaim.SetRetain(volume).Volume)
		return reclaim.Step{Kind: reclaim.StepUpdateVolume, Volume: volume, Why: "retain"}, err
	case lives && t.known.Claims[0].DeletionTimestamp == nil:
		preconditions := metav1.Preconditions{UID: new(t.known.Claims[0].UID)}
		err = t.client.Delete(ctx, oldKey, metav1.DeleteOptions{Preconditions: &preconditions})
		return reclaim.Step{Kind: reclaim.StepDeleteClaim, Claim: t.known.Claims[0]}, err
	case lives:
		return reclaim.Step{Kind: reclaim.StepWait}, nil
	case ref != nil && ref.Namespace == oldKey.Namespace:
		return t.takeByHand(ctx, volume, test.byHand)
	case ref == nil || ref.UID == "":
		return t.createByHand(ctx, test.to)
	}
	return reclaim.Step{Kind: reclaim.StepDone}, nil
}

// takeByHand reads what the operation asks for, and does it.
func (t *tool) takeByHand(ctx context.Context, volume *corev1.PersistentVolume, verb operation) (reclaim.Step, error) {
	change, err := verb(volume, t.known)
	if refused := (*reclaim.Error)(nil); errors.As(err, &refused) {
		for _, read := range refused.Reads() {
			if err := t.read(ctx, read); err != nil {
				return reclaim.Step{Why: "read " + read.String()}, err
			}
		}
		if change, err = verb(volume, t.known); err != nil {
			return reclaim.Step{Why: "take the volume"}, err
		}
	}
	_, err = t.client.UpdateVolume(ctx, change.Volume)
	return reclaim.Step{Kind: reclaim.StepUpdateVolume, Volume: volume, Why: "take it"}, err
}

func (t *tool) createByHand(ctx context.Context, to *corev1.PersistentVolumeClaim) (reclaim.Step, error) {
	if _, err := t.client.GetClaim(ctx, to.Namespace, to.Name); err == nil {
		return reclaim.Step{Kind: reclaim.StepWait}, nil
	}
	_, err := t.client.Create(ctx, to)
	return reclaim.Step{Kind: reclaim.StepCreateClaim, Claim: to}, err
}
