package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// write makes one write. A crash after it leaves a volume that is pre-bound to the claim, or a claim that has its node; the next
// plan for the pod goes on from there.
func (r *run) write(ctx context.Context, action decision.Action) error {
	if ctx.Err() != nil {
		return failed(fmt.Errorf("%s: %w", action.Why, context.Cause(ctx)))
	}
	era := r.era()
	stored, err := r.update(ctx, action)
	if action.Kind == decision.UpdateClaim && !apierrors.IsConflict(err) { // it may have been stored all the same
		r.selected[obj.KeyOf(action.Claim)] = true
	}
	if err != nil {
		return r.afterFailure(ctx, action, err)
	}
	r.store(stored, era)
	if !r.shows(stored, written(action)) {
		return failed(fmt.Errorf("%s: %w", action.Why, ErrNotStored))
	}
	return nil
}

// ErrNotStored is the Err of a plan one of whose writes the server has taken, and stored something else: a mutating webhook can do
// that. It would be so again.
var ErrNotStored = errors.New("the server accepted the write and did not store it, perhaps because of an admission webhook")

// shows reports whether what was stored is new, and has what the write was made for.
func (r *run) shows(stored, sent obj.Object) bool {
	if stored.GetResourceVersion() == sent.GetResourceVersion() {
		return false
	}
	switch stored := stored.(type) {
	case *corev1.PersistentVolume:
		was := sent.(*corev1.PersistentVolume).Spec.ClaimRef
		return stored.Spec.ClaimRef != nil && stored.Spec.ClaimRef.UID == was.UID
	case *corev1.PersistentVolumeClaim:
		return stored.Annotations[storageclass.SelectedNodeAnnotation] == r.plan.Node.Name
	}
	return false
}

// rereadTimeout bounds what is done after a failed write, even if the context has ended.
const rereadTimeout = 5 * time.Second

// afterFailure reads what was to be written, so that what is assumed ends only when the outcome is known. Nil means that
// somebody has written it since, and perhaps this was us: NextForPlan sees whether it is as planned.
func (r *run) afterFailure(ctx context.Context, action decision.Action, cause error) error {
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), rereadTimeout)
	defer cancel()
	sent, era := written(action), r.era()
	found, err := r.read(reading, action)
	known := err == nil
	switch {
	case known && found.GetUID() == sent.GetUID() && obj.Older(sent, found) && r.store(found, era):
		return nil
	case known && found.GetUID() != sent.GetUID(), obj.IsAbsent(err, keyOf(sent)):
		r.awaitEnd(ctx, reading, sent)
		return &Error{Outcome: PlanAnew, Err: fmt.Errorf("%s: %w", action.Why, cause)}
	case apierrors.IsConflict(cause):
		return &Error{Outcome: PlanAnew, Err: fmt.Errorf("%s: %w", action.Why, cause)}
	}
	return failed(fmt.Errorf("%s: %w", action.Why, cause))
}

// awaitEnd blocks until the object that was deleted is not known any more, for a while: before that, another plan would be made
// with it again. One read that does not find it is no proof, so nothing is forgotten because of that.
func (r *run) awaitEnd(ctx, reading context.Context, object obj.Object) {
	for r.knows(object) {
		select {
		case <-r.changed:
		case <-reading.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// written returns the object of a write.
func written(action decision.Action) obj.Object {
	if action.Kind == decision.UpdateVolume {
		return action.Volume
	}
	return action.Claim
}

// update makes the request of a write. A reply that is another object is an error, and the outcome is unknown.
func (r *run) update(ctx context.Context, action decision.Action) (obj.Object, error) {
	if action.Kind == decision.UpdateVolume {
		volume, err := r.Client.UpdateVolume(ctx, action.Volume)
		return checked(action, volume, err)
	}
	claim, err := r.Client.UpdateClaim(ctx, action.Claim)
	return checked(action, claim, err)
}

// checked returns the object of a reply, or the error.
func checked[T obj.Object](action decision.Action, reply T, err error) (obj.Object, error) {
	if err != nil {
		return nil, err
	}
	return reply, obj.CheckReply(keyOf(written(action)), reply)
}

// read reads what was to be written.
func (r *run) read(ctx context.Context, action decision.Action) (obj.Object, error) {
	if action.Kind == decision.UpdateVolume {
		volume, err := r.Client.GetVolume(ctx, action.Volume.Name)
		return checked(action, volume, err)
	}
	claim, err := r.Client.GetClaim(ctx, action.Claim.Namespace, action.Claim.Name)
	return checked(action, claim, err)
}
