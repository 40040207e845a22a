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

// keepCall keeps that the call of a deleter or recycler goes on, as the hook has answered, or may, for there was no answer in time.
func (s *store) keepCall(action decision.Action, answer decision.Answer) {
	if answer.Of != decision.RunDeleter && answer.Of != decision.RunRecycler || action.Volume.UID == "" { // of storage that was not stored as a volume (P2)
		return
	}
	failed, _ := errors.AsType[*hooks.Error](answer.Err)
	switch {
	case failed != nil && failed.Meaning == hooks.TooLate: // it was not called, and an earlier one may go on
	case failed != nil && (failed.Meaning == hooks.InProgress || failed.Meaning == hooks.NotReturned), errors.Is(answer.Err, context.DeadlineExceeded):
		zeromap.Put(&s.goesOn, action.Volume.UID, reclaim.Announcement{})
	default:
		delete(s.goesOn, action.Volume.UID)
	}
	if volume := s.volume(action.Volume.Name); volume != nil && volume.UID == action.Volume.UID {
		s.noteTaken(action.Volume, volume) // meanwhile
	}
}

// noteTaken notes that an announcement is gone from a volume for which a call goes on, because a person has replaced that by a manifest of before, who knows
// nothing of the call. Who knows removes the annotation alone, as they are told (R8).
func (s *store) noteTaken(old, volume *corev1.PersistentVolume) {
	if _, goesOn := s.goesOn[volume.UID]; !goesOn || old == nil {
		return
	}
	last, hadOne := reclaim.AnnouncementOf(old)
	switch _, announced := reclaim.AnnouncementOf(volume); {
	case announced:
		s.goesOn[volume.UID] = reclaim.Announcement{}
	case hadOne && isReplaced(old, volume): // or else it is taken already, and not announced again yet
		s.goesOn[volume.UID] = last
	}
}

// isReplaced reports whether a version of a volume lacks what keeps it while a call is announced, as a manifest of before does. What is being deleted takes no such
// finalizer (A5): of that claimRef or policy are other ones.
func isReplaced(old, volume *corev1.PersistentVolume) bool {
	if slices.Contains(old.Finalizers, reclaim.AnnouncementFinalizer) {
		return !slices.Contains(volume.Finalizers, reclaim.AnnouncementFinalizer)
	}
	return !equality.Semantic.DeepEqual(old.Spec.ClaimRef, volume.Spec.ClaimRef) || old.Spec.PersistentVolumeReclaimPolicy != volume.Spec.PersistentVolumeReclaimPolicy
}

// announcedCall returns a volume as it was when the announcement was taken off it of a call that goes on; nil if none was.
func (s *store) announcedCall(key obj.Key) obj.Object {
	volume := s.volume(key.Name)
	if key.Kind != obj.KindVolume || volume == nil || s.goesOn[volume.UID] == (reclaim.Announcement{}) {
		return nil
	}
	announced := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name, UID: volume.UID}}
	reclaim.Announce(announced, s.goesOn[volume.UID])
	return announced
}
