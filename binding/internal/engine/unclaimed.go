package engine

import (
	"slices"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// takeUnclaimed returns what was made for claims of that name that are gone (P2), for a sync that begins. What was made for one
// that exists does not count: another controller may have deleted it, and the finalizer of the claim stands for it.
func (s *State) takeUnclaimed(key obj.Key) []decision.Answer {
	gone, kept := s.splitUnclaimed(key)
	s.setUnclaimed(key, kept)
	return gone
}

// keepUnclaimed keeps what the provisioner made in a sync that ends by an error, or to wait for what another controller has
// announced on the claim. That one may remove the finalizer, and then nobody else knows of the storage. What was kept before is
// dropped at any other end, unless its claim is gone since: then the sync runs again.
func (s *State) keepUnclaimed(t *task, action decision.Action, err error) {
	gone, kept := s.splitUnclaimed(t.key)
	deleted := func(made decision.Answer) bool {
		return slices.ContainsFunc(t.answers, func(a decision.Answer) bool { return a.Of == decision.RunDeleter && a.For == made.For && a.Err == nil })
	}
	gone = slices.DeleteFunc(gone, deleted)
	if err != nil || action.Kind == decision.Wait && action.Rule == "R8" {
		made := slices.DeleteFunc(slices.Clone(t.answers), func(a decision.Answer) bool {
			return a.Of != decision.RunProvisioner || deleted(a) || slices.ContainsFunc(kept, func(b decision.Answer) bool { return a.For == b.For })
		})
		kept = append(kept, made...)
	} else {
		kept = nil
	}
	if len(gone) > 0 {
		t.next = append(t.next, t.key)
	}
	s.setUnclaimed(t.key, append(gone, kept...))
}

// splitUnclaimed returns what was made for claims of that name that are gone, and for the one that exists.
func (s *State) splitUnclaimed(key obj.Key) (gone, kept []decision.Answer) {
	uid := uidOf(s.Known(key))
	for _, answer := range s.unclaimed[key] {
		if answer.For == uid {
			kept = append(kept, answer)
		} else {
			gone = append(gone, answer)
		}
	}
	return gone, kept
}

func (s *State) setUnclaimed(key obj.Key, made []decision.Answer) {
	delete(s.unclaimed, key)
	if len(made) > 0 {
		zeromap.Put(&s.unclaimed, key, made)
	}
}
