package engine

import (
	"context"
	"errors"
	"maps"
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
	failed   bool                     // it has failed, and may have an effect yet
}

// beginCall keeps that a deleter or recycler is called from now on.
func (s *store) beginCall(action decision.Action) {
	if !callsForVolume(action) {
		return
	}
	last, _ := reclaim.AnnouncementOf(action.Volume)
	name := action.Volume.Name
	zeromap.Put(&s.goesOn, name, ongoing{called: action.Volume, last: last, answered: s.goesOn[name].answered})
}

// keepCall keeps that a call goes on, or may, also where the volume is gone by then, or made again. Only a success ends that: what a later call answers else says
// nothing of the one before. One that fails may have an effect later: its announcement stays, and is written again where it was taken meanwhile, which may be seen after the failure.
func (s *store) keepCall(action decision.Action, answer decision.Answer) {
	if !callsForVolume(action) {
		return
	}
	call, begun := s.goesOn[action.Volume.Name]
	if !begun {
		return
	}
	failed, _ := errors.AsType[*hooks.Error](answer.Err)
	if failed != nil && (failed.Meaning == hooks.InProgress || failed.Meaning == hooks.NotReturned) || errors.Is(answer.Err, context.DeadlineExceeded) {
		call.answered = true
	}
	call.failed = answer.Err != nil && !call.answered
	if s.goesOn[action.Volume.Name] = call; answer.Err == nil {
		delete(s.goesOn, action.Volume.Name)
	}
}

// callsForVolume reports whether an action calls a deleter or recycler for a volume, and not for storage that was not stored as one (P2).
func callsForVolume(action decision.Action) bool {
	return (action.Kind == decision.RunDeleter || action.Kind == decision.RunRecycler) && action.Volume.UID != ""
}

// noteTaken notes that a volume for which a call goes on has no announcement any more, or an earlier one: a person who knows nothing of the call has replaced the volume by a
// manifest of before. Who knows removes the annotation alone, as they are told (R8). The end of a later call, of a controller beside this one, looks like such a manifest, too.
func (s *store) noteTaken(old, volume *corev1.PersistentVolume) {
	call, goesOn := s.goesOn[volume.Name]
	if !goesOn || old == nil {
		return
	}
	_, hadOne := reclaim.AnnouncementOf(old)
	switch last, announced := reclaim.AnnouncementOf(volume); {
	case announced && last.Token > 0 && last.Token < call.last.Token:
		call.taken = true
	case announced && call.failed && last.Token > call.last.Token: // the next call, which may be another controller's, frees the volume
		delete(s.goesOn, volume.Name)
		return
	case announced:
		if call.taken = false; last.Token > 0 {
			call.last = last
		}
	case hadOne && isReplaced(call.called, volume): // or else it is taken already, and not announced again yet
		call.taken = true
	}
	s.goesOn[volume.Name] = call
}

// goesOnWithout reports whether a call goes on under a volume that is gone, and that nobody who knows of it has let go.
func (s *store) goesOnWithout(volume *corev1.PersistentVolume) bool {
	call, goesOn := s.goesOn[volume.Name]
	announcement, announced := reclaim.AnnouncementOf(volume)
	return goesOn && !announcement.Done && (announced || call.taken)
}

// forgetCalls forgets the calls for volumes that are gone, and of which nothing is known any more. It looks at each call, and is for what is rare: a volume that went under one.
func (s *store) forgetCalls() {
	maps.DeleteFunc(s.goesOn, func(name string, _ ongoing) bool { return s.volume(name) == nil && !s.goneVolumes.has(name) })
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
	if call, goesOn := s.goesOn[volume.Name]; goesOn && announced && text == "" {
		return call.last.String()
	}
	return text
}

// announcedCall returns a volume as it was when the announcement was taken off it of a call that goes on; nil if none was.
func (s *store) announcedCall(key obj.Key) obj.Object {
	volume := s.volume(key.Name)
	if key.Kind != obj.KindVolume || volume == nil || !s.goesOn[volume.Name].taken {
		return nil
	}
	announced := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name, UID: volume.UID}}
	reclaim.Announce(announced, s.goesOn[volume.Name].last)
	return announced
}
