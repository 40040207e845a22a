package engine

import (
	"slices"

	"github.com/pvbind/pvbind/binding/decision"
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
