package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

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

// keepUnclaimed keeps what the provisioner made for a claim that is gone, until the deleter has deleted it or refused to for good,
// or a volume stands for it. What was made for a claim that exists is kept where the sync ends by an error, before its time, or
// to wait for what another controller has announced on the claim. That one may remove the finalizer, and then nobody else knows
// of the storage. At any other end it is dropped, unless its claim is gone since: then the sync runs again.
func (s *State) keepUnclaimed(t *task, action decision.Action, err error) {
	gone, kept := s.splitUnclaimed(t.key)
	gone = slices.DeleteFunc(gone, func(made decision.Answer) bool { return s.settled(t, made) })
	if len(gone) > 0 {
		t.next = append(t.next, t.key)
	}
	unfinished := err != nil || action.Kind == decision.Wait && action.Rule == "R8"
	if !unfinished {
		kept = nil
	}
	uid := uidOf(s.Known(t.key))
	for _, made := range t.answers {
		known := slices.ContainsFunc(slices.Concat(gone, kept), func(a decision.Answer) bool { return a.For == made.For })
		if made.Of == decision.RunProvisioner && (unfinished || made.For != uid) && !known && !s.settled(t, made) {
			kept = append(kept, made)
		}
	}
	s.setUnclaimed(t.key, append(gone, kept...))
}

// settled reports whether nothing is left to do about what a provisioner made, or nothing can be.
func (s *State) settled(t *task, made decision.Answer) bool {
	return !s.options.Hooks.Deleters.Has(made.Hook) || s.stoodFor(made) || slices.ContainsFunc(t.answers, func(a decision.Answer) bool {
		return a.Of == decision.RunDeleter && a.For == made.For && a.Final()
	})
}

// forgetUnclaimed forgets what was made for the claim of a volume, where that is seen to stand for it.
func (s *State) forgetUnclaimed(volume *corev1.PersistentVolume) {
	if claim := obj.ReferencedClaim(volume); len(s.unclaimed[claim]) > 0 {
		s.setUnclaimed(claim, slices.DeleteFunc(slices.Clone(s.unclaimed[claim]), s.stoodFor))
	}
}

// stoodFor reports whether a volume was seen to stand for what a provisioner made, before its answer too. What becomes of the
// storage when that goes is as its policy says (X2): it is never a leftover.
func (s *State) stoodFor(made decision.Answer) bool {
	name := decision.ProvisionedName(made.For)
	return made.Of == decision.RunProvisioner && (s.volume(name) != nil || s.goneVolumes.has(name))
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
