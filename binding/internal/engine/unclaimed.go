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
func (s *State) takeUnclaimed(key obj.Key) (gone []decision.Answer) {
	var kept []decision.Answer
	uid := uidOf(s.Known(key))
	for _, answer := range s.unclaimed[key] {
		if answer.For == uid {
			kept = append(kept, answer)
		} else {
			gone = append(gone, answer)
		}
	}
	s.setUnclaimed(key, kept)
	return gone
}

// keepUnclaimed keeps what provisioners made, or may have made, for one that failed or is at work may have, until a volume stands for it,
// or the deleter has deleted it or refused to for good. Somebody else may remove the finalizer of its claim: another controller, which
// has deleted it before it was made once more; or a tenant, who may also write the name of another provisioner onto the claim, so that
// the deleter of that one is called. Then nobody else knows of the storage.
func (s *State) keepUnclaimed(t *task) {
	var kept []decision.Answer
	uid, before := uidOf(s.Known(t.key)), s.unclaimed[t.key]
	all := slices.Concat(before, t.answers)
	for i, made := range all {
		again := func(a decision.Answer) bool { return a.Of == made.Of && a.For == made.For && a.Hook == made.Hook }
		if made.Of != decision.RunProvisioner || s.settled(t, made) || slices.ContainsFunc(all[i+1:], again) {
			continue
		}
		if i < len(before) && made.For != uid { // its claim has gone since this sync began
			t.next = append(t.next, t.key)
		}
		kept = append(kept, made)
	}
	s.setUnclaimed(t.key, kept)
}

// settled reports whether nothing is left to do about what a provisioner made, or nothing can be.
func (s *State) settled(t *task, made decision.Answer) bool {
	told := made.Unsettled && made.For != uidOf(s.Known(t.key)) // a volume may have stood for it
	return told || !s.options.Hooks.Deleters.Has(made.Hook) || s.stoodFor(made) || slices.ContainsFunc(t.answers, func(a decision.Answer) bool {
		return a.Of == decision.RunDeleter && a.For == made.For && a.Hook == made.Hook && a.Final()
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

func (s *State) setUnclaimed(key obj.Key, made []decision.Answer) {
	delete(s.unclaimed, key)
	if len(made) > 0 {
		zeromap.Put(&s.unclaimed, key, made)
	}
}
