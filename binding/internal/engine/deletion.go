package engine

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// keepDeletion keeps that a deleter has deleted the storage of a sync's volume, until that is noted on the volume or the volume
// is gone (R8). The sync may end before that write, by an error or because the server went back in time, and meanwhile somebody may
// change the volume so that nobody would call the deleter again, and remove the announcement. Every sync sees it, for a claim's may
// come before the volume's next one.
func (s *State) keepDeletion(t *task) {
	volume := s.volume(t.key.Name)
	if t.key.Kind != obj.KindVolume || volume == nil {
		return
	}
	if announcement, _ := reclaim.AnnouncementOf(volume); announcement.Done {
		delete(s.deleted, volume.UID)
		return
	}
	for _, answer := range slices.Backward(decision.AnswersAbout(t.answers, decision.RunDeleter, volume.UID)) {
		if answer.Err == nil {
			zeromap.Put(&s.deleted, volume.UID, answer)
			return
		}
	}
}

// ongoing is a call of a deleter or recycler that was not seen to end.
type ongoing struct {
	called   *corev1.PersistentVolume // as it was then
	last     reclaim.Announcement     // the last one on the volume that can be read
	taken    bool                     // who knows nothing of the call has taken it off
	answered bool                     // a call goes on, as its hook has answered, or may, for there was no answer in time; or else it has only begun
}

// beginCall keeps that a deleter or recycler is called from now on.
func (s *store) beginCall(action decision.Action) {
	if action.Kind != decision.RunDeleter && action.Kind != decision.RunRecycler || action.Volume.UID == "" { // of storage that was not stored as a volume (P2)
		return
	}
	last, _ := reclaim.AnnouncementOf(action.Volume)
	zeromap.Put(&s.goesOn, action.Volume.UID, ongoing{called: action.Volume, last: last, answered: s.goesOn[action.Volume.UID].answered})
}

// keepCall keeps that a call goes on, or may. Only a success ends that: what a later call answers else says nothing of the one before.
func (s *store) keepCall(action decision.Action, answer decision.Answer) {
	uid := action.About()
	call, begun := s.goesOn[uid]
	if !begun {
		return
	}
	failed, _ := errors.AsType[*hooks.Error](answer.Err)
	if failed != nil && (failed.Meaning == hooks.InProgress || failed.Meaning == hooks.NotReturned) || errors.Is(answer.Err, context.DeadlineExceeded) {
		call.answered = true
	}
	if s.goesOn[uid] = call; answer.Err == nil || !call.answered {
		delete(s.goesOn, uid)
	}
}

// noteTaken notes that an announcement is gone from a volume for which a call goes on, because a person has replaced that by a manifest of before, who knows
// nothing of the call. Who knows removes the annotation alone, as they are told (R8).
func (s *store) noteTaken(old, volume *corev1.PersistentVolume) {
	call, goesOn := s.goesOn[volume.UID]
	if !goesOn || old == nil {
		return
	}
	_, hadOne := reclaim.AnnouncementOf(old)
	switch last, announced := reclaim.AnnouncementOf(volume); {
	case announced:
		if call.taken = false; last.Token > 0 {
			call.last = last
		}
	case hadOne && isReplaced(call.called, volume): // or else it is taken already, and not announced again yet
		call.taken = true
	}
	s.goesOn[volume.UID] = call
}

// isReplaced reports whether a version of a volume lacks what keeps it while a call is announced, as a manifest of before does. What is being deleted takes no such
// finalizer (A5), and kube-controller-manager's keeps it: that is gone, or claimRef or policy are other ones than at the call.
func isReplaced(called, volume *corev1.PersistentVolume) bool {
	if slices.Contains(called.Finalizers, reclaim.AnnouncementFinalizer) {
		return !slices.Contains(volume.Finalizers, reclaim.AnnouncementFinalizer)
	}
	return !slices.Contains(volume.Finalizers, reclaim.InTreeFinalizer) || !equality.Semantic.DeepEqual(called.Spec.ClaimRef, volume.Spec.ClaimRef) || called.Spec.PersistentVolumeReclaimPolicy != volume.Spec.PersistentVolumeReclaimPolicy
}

// lastAnnouncement returns the annotation by which a volume is announced; "" if it is not. Of one that a person has emptied it is that of the call which goes on, as far as
// one is known.
func (s *store) lastAnnouncement(volume *corev1.PersistentVolume) string {
	_, announced := reclaim.AnnouncementOf(volume)
	text := volume.Annotations[reclaim.AnnouncementAnnotation]
	if call, goesOn := s.goesOn[volume.UID]; goesOn && announced && text == "" {
		return call.last.String()
	}
	return text
}

// announcedCall returns a volume as it was when the announcement was taken off it of a call that goes on; nil if none was.
func (s *store) announcedCall(key obj.Key) obj.Object {
	volume := s.volume(key.Name)
	if key.Kind != obj.KindVolume || volume == nil || !s.goesOn[volume.UID].taken {
		return nil
	}
	announced := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name, UID: volume.UID}}
	reclaim.Announce(announced, s.goesOn[volume.UID].last)
	return announced
}
