package engine

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// ongoingCall is a call of a deleter or recycler that goes on, as the hook has answered, or may, for there was no answer in time.
type ongoingCall struct {
	announcement reclaim.Announcement
	claim        types.UID // in claimRef
	policy       corev1.PersistentVolumeReclaimPolicy
	taken        bool // off its volume, together with that claimRef or policy
}

// isFor reports whether a volume is as it was when the call was announced.
func (c ongoingCall) isFor(volume *corev1.PersistentVolume) bool {
	announcement, _ := reclaim.AnnouncementOf(volume)
	return announcement == c.announcement && uidInClaimRef(volume) == c.claim && volume.Spec.PersistentVolumeReclaimPolicy == c.policy
}

// keepCall keeps the announcement of a call that goes on.
func (s *store) keepCall(action decision.Action, answer decision.Answer) {
	if answer.Of != decision.RunDeleter && answer.Of != decision.RunRecycler {
		return
	}
	failed, _ := errors.AsType[*hooks.Error](answer.Err)
	switch {
	case failed != nil && (failed.Meaning == hooks.TooLate || failed.Meaning == hooks.NotReturned): // it was not called
	case failed != nil && failed.Meaning == hooks.InProgress, errors.Is(answer.Err, context.DeadlineExceeded):
		announcement, _ := reclaim.AnnouncementOf(action.Volume)
		zeromap.Put(&s.goesOn, action.Volume.UID, ongoingCall{announcement: announcement, claim: uidInClaimRef(action.Volume), policy: action.Volume.Spec.PersistentVolumeReclaimPolicy})
	default:
		delete(s.goesOn, action.Volume.UID)
	}
}

// noteTaken notes that the announcement of a call that goes on is gone from a volume, and in the same version what it was announced for. So it is where a
// person replaces the volume by a manifest of before, and knows nothing of the call: who knows removes the announcement alone, or was told after an edit (R8).
func (s *store) noteTaken(old, volume *corev1.PersistentVolume) {
	call, goesOn := s.goesOn[volume.UID]
	if !goesOn || old == nil {
		return
	}
	without := call
	without.announcement = reclaim.Announcement{}
	_, stands := reclaim.AnnouncementOf(volume)
	call.taken = !stands && (call.taken || call.isFor(old) && !without.isFor(volume))
	s.goesOn[volume.UID] = call
}

// announcedCall returns a volume as it was when the call was announced on it whose announcement was taken off it; nil if there is none.
func (s *store) announcedCall(key obj.Key) obj.Object {
	volume := s.volume(key.Name)
	if key.Kind != obj.KindVolume || volume == nil || !s.goesOn[volume.UID].taken {
		return nil
	}
	announced := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name, UID: volume.UID}}
	reclaim.Announce(announced, s.goesOn[volume.UID].announcement)
	return announced
}
