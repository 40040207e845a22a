package binding

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// proceed takes what came of the action that the last step asked for, and goes on.
func (s *state) proceed(key obj.Key, got reply) call {
	t := s.tasks[key]
	var err error
	switch {
	case t.pending.Kind == Read:
		err = s.haveRead(t, got)
	case t.pending.RunsHook():
		s.slots.give(t.key)
		t.answer(got)
		if t.pending.Kind == RunProvisioner { // somebody else may have stored the volume meanwhile
			delete(t.live, t.pending.Target())
		}
	default:
		err = s.haveWritten(t, got)
	}
	if err != nil {
		return s.finish(t, Action{}, fmt.Errorf("%s: %w", t.pending, err))
	}
	return s.advance(t)
}

// doubt notes that nobody knows what became of the object in the write of a sync.
func (s *state) doubt(object, by obj.Key) {
	s.doubts.move(s.unsettled[object], by, object)
	zeromap.Put(&s.unsettled, object, by)
}

// settle notes that the object's last write is not in doubt any more, and returns whom that wakes. The volume that
// was reserved for it is free, unless its claim is at work on it.
func (s *state) settle(key obj.Key) []obj.Key {
	by := s.unsettled[key]
	delete(s.unsettled, key)
	s.doubts.move(by, obj.Key{}, key)
	if key.Kind != obj.KindVolume || by.Kind != obj.KindClaim || s.holders[key] == by {
		return nil
	}
	s.index.Release(key.Name, by)
	return s.wokenByOwner(key)
}

// answer keeps what a hook answered, or why a volume was not created. Where a provisioner ran, that the storage
// was deleted before is no longer true.
func (t *task) answer(got reply) {
	volume, _ := got.object.(*corev1.PersistentVolume)
	answer := Answer{Of: t.pending.Kind, Hook: t.pending.Hook, For: t.pending.about(), Volume: volume, Err: got.err}
	if answer.Of == RunProvisioner {
		t.answers = slices.DeleteFunc(t.answers, func(a Answer) bool { return a.Of == RunDeleter && a.For == answer.For })
	}
	t.answers = append(t.answers, answer)
}

// handOver forgets that storage was made for a claim, where the server has the volume: that stands for the storage from now
// on. If it goes before this sync is at its end, what became of the storage was as its policy says (X2).
func (t *task) handOver(stored obj.Object) {
	if volume, ok := stored.(*corev1.PersistentVolume); ok {
		t.answers = slices.DeleteFunc(t.answers, func(a Answer) bool {
			return a.Of == RunProvisioner && volume.Name == provisionedName(a.For)
		})
	}
}

// known is the object as it is stored; nil if it is not.
func (s *state) known(key obj.Key) obj.Object {
	switch key.Kind {
	case obj.KindVolume:
		if volume := s.volumes[key.Name]; volume != nil {
			return volume
		}
	case obj.KindClaim:
		if claim := s.claims[key]; claim != nil {
			return claim
		}
	}
	return nil
}

// uidOf is the UID of the object; "" for nil.
func uidOf(object obj.Object) types.UID {
	if object == nil {
		return ""
	}
	return object.GetUID()
}

// wake notes the keys that a change calls for, but for what the task itself sees to: its own key, and after a write of
// its own the volume that it binds. What somebody else did to that volume is the volume's business too.
func (t *task) wake(keys []obj.Key, but ...obj.Key) {
	for _, key := range keys {
		if !slices.Contains(but, key) {
			t.next = append(t.next, key)
		}
	}
}
