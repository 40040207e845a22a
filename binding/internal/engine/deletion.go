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
// change the volume so that nobody would call the deleter again, and remove the announcement.
func (s *State) keepDeletion(t *task) {
	delete(s.deleted, t.key)
	volume := s.volume(t.key.Name)
	if t.key.Kind != obj.KindVolume || volume == nil {
		return
	}
	if announcement, _ := reclaim.AnnouncementOf(volume); announcement.Done {
		return
	}
	for _, answer := range slices.Backward(decision.AnswersAbout(t.answers, decision.RunDeleter, volume.UID)) {
		if answer.Err == nil {
			zeromap.Put(&s.deleted, t.key, answer)
			return
		}
	}
}

// deletionOf returns what was kept about a volume, for a sync that begins.
func (s *State) deletionOf(key obj.Key) []decision.Answer {
	if deleted, kept := s.deleted[key]; kept {
		return []decision.Answer{deleted}
	}
	return nil
}
