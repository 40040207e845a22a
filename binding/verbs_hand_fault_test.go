package binding_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// TestR7VerbsThroughEveryFault keeps a volume, deletes its claim, opens or reserves the volume and creates the claim
// that is to have it: through the same faults as a move, and with the same that must hold.
func TestR7VerbsThroughEveryFault(t *testing.T) {
	t.Parallel()
	to := bindingtest.Claim("archive", "data", "5Gi", askingClass(new("")))
	open := func(volume *corev1.PersistentVolume, known reclaim.Known) (reclaim.Change, error) {
		return reclaim.Open(volume, known)
	}
	reserve := func(volume *corev1.PersistentVolume, known reclaim.Known) (reclaim.Change, error) {
		return reclaim.Reserve(volume, to, known)
	}
	late := []obj.Kind{obj.KindVolume, obj.KindClaim}
	throughEveryFault(t, []removal{
		{name: "R7 Retain and Open", policy: "Delete", by: ours, to: to, byHand: open, alone: true, eager: true},
		{name: "R7 Retain and Open, late news", policy: "Delete", to: to, byHand: open, alone: true, lag: late},
		{name: "R7 Retain and Reserve", policy: "Delete", by: ours, to: to, byHand: reserve, eager: true},
		{name: "R7 Retain and Reserve, Recycle", policy: "Recycle", to: to, byHand: reserve},
		{name: "R7 Retain and Reserve, late news", policy: "Delete", by: "ebs.csi.aws.com", to: to, byHand: reserve, lag: late, eager: true},
	})
}

// turnByHand does what comes next of Retain, the deletion of the claim, the story's verb, and the creation of the new
// claim. What comes next it reads off the volume, as a person would.
func (t *tool) turnByHand(ctx context.Context, story removal) (reclaim.Step, error) {
	volume, err := t.client.GetVolume(ctx, t.move.Volume)
	if err != nil {
		return reclaim.Step{Why: "read the volume"}, err
	}
	old := reclaim.Read{Kind: reclaim.ReadClaim, Namespace: oldKey.Namespace, Name: oldKey.Name}
	t.known = reclaim.Known{}
	if err := t.read(ctx, old); err != nil {
		return reclaim.Step{Why: "read the claim"}, err
	}
	lives := len(t.known.Claims) > 0 && phase.LinkOf(volume, t.known.Claims[0]) == phase.Held
	switch ref := volume.Spec.ClaimRef; {
	case volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain:
		_, err = t.client.UpdateVolume(ctx, reclaim.Retain(volume).Volume)
		return reclaim.Step{Kind: reclaim.StepUpdateVolume, Volume: volume, Why: "retain"}, err
	case lives && t.known.Claims[0].DeletionTimestamp == nil:
		preconditions := metav1.Preconditions{UID: new(t.known.Claims[0].UID)}
		err = t.client.Delete(ctx, oldKey, metav1.DeleteOptions{Preconditions: &preconditions})
		return reclaim.Step{Kind: reclaim.StepDeleteClaim, Claim: t.known.Claims[0]}, err
	case lives:
		return reclaim.Step{Kind: reclaim.StepWait}, nil
	case ref != nil && ref.Namespace == oldKey.Namespace:
		return t.takeByHand(ctx, volume, story.byHand)
	case ref == nil || ref.UID == "":
		return t.createByHand(ctx, story.to)
	}
	return reclaim.Step{Kind: reclaim.StepDone}, nil
}

// takeByHand reads what the verb asks for, and does it.
func (t *tool) takeByHand(ctx context.Context, volume *corev1.PersistentVolume, verb takeVerb) (reclaim.Step, error) {
	change, err := verb(volume, t.known)
	if refused := (*reclaim.Refusal)(nil); errors.As(err, &refused) {
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
