package binding_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// tool is what a person uses the verbs with: a client of its own, and what the server said since its last write.
type tool struct {
	client    *bindingtest.Client
	known     reclaim.Known
	move      reclaim.Move
	accepting []reclaim.Risk
}

// turn does the next step of the move.
func (t *tool) turn(ctx context.Context) (reclaim.Step, error) {
	step, err := reclaim.NextMove(t.move, t.known, t.accepting...)
	switch step.Kind {
	case reclaim.StepRead:
		return step, t.read(ctx, step.Read)
	case reclaim.StepUpdateVolume:
		_, err = t.client.UpdateVolume(ctx, step.Volume)
	case reclaim.StepDeleteClaim:
		err = t.client.Delete(ctx, obj.KeyOf(step.Claim), metav1.DeleteOptions{Preconditions: &step.Preconditions})
	case reclaim.StepCreateClaim:
		_, err = t.client.Create(ctx, step.Claim)
	}
	t.known = reclaim.Known{}
	return step, err
}

// read asks the server and keeps the answer, also that there is nothing.
func (t *tool) read(ctx context.Context, what reclaim.Read) error {
	var object obj.Object
	var err error
	switch what.Kind {
	case reclaim.ReadPods:
		pods, err := t.client.ListPods(ctx, what.Namespace)
		if err == nil {
			t.keepPods(what.Namespace, pods)
		}
		return err
	case reclaim.ReadClaims:
		claims, err := t.client.List(ctx, obj.KindClaim, "")
		if err == nil {
			t.keepClaims(claims)
		}
		return err
	case reclaim.ReadVolume:
		object, err = t.client.Get(ctx, obj.VolumeKey(what.Name))
	case reclaim.ReadClaim:
		object, err = t.client.Get(ctx, obj.ClaimKey(what.Namespace, what.Name))
	}
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		t.known.Volumes = append(t.known.Volumes, object)
	case *corev1.PersistentVolumeClaim:
		t.known.Claims = append(t.known.Claims, object)
	default:
		if apierrors.IsNotFound(err) {
			t.known.Missing = append(t.known.Missing, what)
			return nil
		}
	}
	return err
}

// keepClaims keeps a list of all claims in place of those read before.
func (t *tool) keepClaims(claims []obj.Object) {
	t.known.Claims, t.known.AllClaims = nil, true
	for _, claim := range claims {
		t.known.Claims = append(t.known.Claims, claim.(*corev1.PersistentVolumeClaim))
	}
}

func (t *tool) keepPods(namespace string, pods []*corev1.Pod) {
	if t.known.Pods == nil {
		t.known.Pods = map[string][]*corev1.Pod{}
	}
	t.known.Pods[namespace] = pods
}

// restart forgets all but the volume's name, and where it goes if nothing on the volume says so.
func (t *tool) restart(server *bindingtest.Server, to *corev1.PersistentVolumeClaim) {
	t.client.Restart()
	t.known, t.move.To = reclaim.Known{}, nil
	volume := server.Volume(t.move.Volume)
	if volume == nil || volume.Annotations[reclaim.MoveAnnotation] == "" {
		t.move.To = to
	}
}

// errRefused is for a move that goes nowhere.
func errRefused(step reclaim.Step, err error) error { return fmt.Errorf("%s: %w", step, err) }
