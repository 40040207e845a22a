package binding

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// haveWritten takes the outcome of a write. Proofs and answers hold until a write.
func (s *state) haveWritten(t *task, got reply) error {
	target := t.pending.Target()
	t.unprove()
	switch outcome := outcomeOf(got.err); {
	case outcome == done && t.pending.Kind == DeleteVolume:
		s.doubt(target, t.key) // its finalizers may keep it
		return nil
	case t.pending.Kind == CreateVolume && outcome != done:
		return s.notCreated(t, got)
	case outcome == done:
		if !changed(t.pending, got.object) {
			return errUnchanged
		}
		t.wake(s.stored(got.object), t.key, t.volume)
		t.handOver(got.object)
		if len(t.pending.Events) > 0 { // a write without events says nothing about those of the last decision
			t.publish = append(t.publish, s.news(t.key, t.pending.Events)...)
		}
		return nil
	case outcome == lost:
		s.doubt(target, t.key)
		return nil
	case outcome == refused:
		s.refuse(t)
		return got.err
	}
	s.doubt(target, t.key)
	return got.err
}

// notCreated takes that a volume was not created, or perhaps it was: the server is asked, and the next decision
// told. That it exists already is no failure (P2).
func (s *state) notCreated(t *task, got reply) error {
	s.doubt(t.pending.Target(), t.key)
	if !apierrors.IsAlreadyExists(got.err) {
		t.answer(got)
	}
	return nil
}

// errUnchanged keeps a write from being repeated without end that the server accepts and throws away, as an
// admission webhook can make it do.
var errUnchanged = errors.New("the server accepted the write and changed nothing")

// changed reports whether a write took effect: by a new version, or by the end of an object that was being
// deleted, which keeps its version.
func changed(action Action, object obj.Object) bool {
	sent := obj.Object(action.Claim)
	if action.Volume != nil {
		sent = action.Volume
	}
	return object.GetResourceVersion() != sent.GetResourceVersion() || ended(object)
}

func ended(object obj.Object) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0
}

// refuse notes what the server refused to a claim, so that the volume goes to another (W1).
func (s *state) refuse(t *task) {
	volume, claim := s.volumes[t.volume.Name], s.claims[t.key]
	if volume == nil || claim == nil {
		return
	}
	s.hadTurn(volume, claim)
	zeromap.Put(&s.refused, t.key, refusal{claim.ResourceVersion, volume.Name, volume.ResourceVersion})
}

// stored takes the server's reply to a write. The write that removes the last finalizer of an object that
// is being deleted deletes it (A5).
func (s *state) stored(object obj.Object) []obj.Key {
	if ended(object) {
		return s.observeDeleted(object)
	}
	return s.observe(object)
}
