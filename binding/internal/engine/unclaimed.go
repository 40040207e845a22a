package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// leftoversPerSync bounds of how many claims that are gone one sync deletes what was made for them. Each takes up to five steps, and most of
// those that a sync has (stepLimit) are for the claim that has the name by now.
const leftoversPerSync = 4

// takeUnclaimed returns what was made for claims of that name that are gone (P2), for a sync that begins: the first ones, whose turn it is.
// What was made for one that exists does not count: another controller may have deleted it, and the finalizer of the claim stands for it.
func (s *State) takeUnclaimed(key obj.Key) (gone []decision.Answer) {
	var kept []decision.Answer
	uid := uidOf(s.Known(key))
	for _, answer := range s.unclaimed[key] {
		if answer.For == uid || len(gone) == leftoversPerSync {
			kept = append(kept, answer)
		} else {
			gone = append(gone, answer)
		}
	}
	s.setUnclaimed(key, kept)
	return gone
}

// keepUnclaimed keeps what a sync that ends leaves unclaimed. What was left in its turn goes behind the others, and has the sync run again when it
// is time (Rh, W6). Where less is left than one sync has, the others follow at once.
//
// Of what a volume may have stood for nothing is left once one of the events tells that; a sync that fails has none that does.
func (s *State) keepUnclaimed(t *task, events []decision.Event) {
	turn, others := s.unsettled(t)
	uid := uidOf(s.Known(t.key))
	exists := func(made decision.Answer) bool { return made.For == uid }
	turn = slices.DeleteFunc(turn, func(made decision.Answer) bool {
		tells := func(event decision.Event) bool {
			return event.UID == made.For && event.Reason == decision.EventProvisioningCleanup
		}
		return made.Unsettled && !exists(made) && slices.ContainsFunc(events, tells)
	})
	left, waiting := slices.DeleteFunc(slices.Clone(turn), exists), slices.DeleteFunc(slices.Clone(others), exists)
	if len(waiting) > 0 && len(left) < leftoversPerSync {
		t.next = append(t.next, t.key)
	}
	s.setUnclaimed(t.key, slices.Concat(others, turn))
}

// putBackUnclaimed does so for a sync that is stopped, and runs again: it is the turn of the same then.
func (s *State) putBackUnclaimed(t *task) {
	turn, others := s.unsettled(t)
	s.setUnclaimed(t.key, slices.Concat(turn, others))
}

// provideAgain takes from a sync what was made for a claim, which is about to be stored, and was made before the server went back, or before the claim
// was gone, which it brought back: another controller may have deleted that, and nothing shows it any more. The provisioner finds it, or makes it anew (W8).
func (s *State) provideAgain(t *task, claim types.UID) {
	made := decision.AnswersAbout(t.answers, decision.RunProvisioner, claim)
	s.setUnclaimed(t.key, slices.Concat(s.unclaimed[t.key], made))
	t.answers = slices.DeleteFunc(slices.Clone(t.answers), func(a decision.Answer) bool { return a.Of == decision.RunProvisioner && a.For == claim })
}

// unsettled returns what provisioners made, or may have made, for one that failed or is at work may have, until a volume stands for it,
// or the deleter has deleted it or refused to for good: what the sync was given or had made, and the others. Somebody else may remove the
// finalizer of its claim: another controller, which has deleted it before it was made once more; or a tenant, who may also write the name of
// another provisioner onto the claim, so that the deleter of that one is called. Then nobody else knows of the storage.
func (s *State) unsettled(t *task) (turn, others []decision.Answer) {
	before := len(s.unclaimed[t.key])
	all := slices.Concat(s.unclaimed[t.key], t.answers)
	for i, made := range all {
		again := func(a decision.Answer) bool { return a.Of == made.Of && a.For == made.For && a.Hook == made.Hook }
		later := max(i+1, before)
		next := slices.IndexFunc(all[later:], again)
		switch {
		case made.Of != decision.RunProvisioner || s.settled(t, made):
		case next >= 0:
			all[later+next].Unsettled = all[later+next].Unsettled || made.Unsettled // a volume may have stood for it all the same
		case i < before:
			others = append(others, made)
		default:
			turn = append(turn, made)
		}
	}
	return turn, others
}

// stillTold returns those of the events that tell of what is left of claims which are gone, and has no turn in this sync: that is as it was (N).
func (s *State) stillTold(key obj.Key, events []decision.Event) []decision.Event {
	uid, waiting := uidOf(s.Known(key)), sets.New[decision.Event]()
	for _, made := range s.unclaimed[key] {
		if made.For != uid {
			waiting.Insert(decision.Event{UID: made.For, Hook: made.Hook})
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(event decision.Event) bool {
		return !waiting.Has(decision.Event{UID: event.UID, Hook: event.Hook})
	})
}

// settled reports whether nothing is left to do about what a provisioner made, or nothing can be.
func (s *State) settled(t *task, made decision.Answer) bool {
	return !s.options.Hooks.Deleters.Has(made.Hook) || s.stoodFor(made) || slices.ContainsFunc(t.answers, func(a decision.Answer) bool {
		return a.Of == decision.RunDeleter && a.For == made.For && a.Hook == made.Hook && a.Final()
	})
}

// forgetUnclaimed forgets what was made for the claim of a volume, where that is seen to stand for it.
func (s *State) forgetUnclaimed(volume *corev1.PersistentVolume) {
	if claim := obj.ReferencedClaim(volume); len(s.unclaimed[claim]) > 0 {
		s.setUnclaimed(claim, slices.DeleteFunc(slices.Clone(s.unclaimed[claim]), s.stoodFor))
	}
}

// MayStandFor returns the name of a volume that may stand, or have stood, for what was made for a claim (P2); "" if none is known.
func (s *store) MayStandFor(key obj.Key, uid types.UID) string {
	if s.usedBefore[uid] {
		return decision.ProvisionedName(uid)
	}
	for _, volume := range s.volumesByClaim.of(key) {
		if decision.StandsInstead(s.volume(volume.Name), key, uid) {
			return volume.Name
		}
	}
	return ""
}

// noteStood notes that a volume stood for what was made for a claim, which is Bound to it by its status: no informer may have shown the volume yet, and
// both may be gone before one does, by a restore. Or one of another name may stand for it.
func (s *State) noteStood(claim *corev1.PersistentVolumeClaim) {
	key, name, owned := obj.KeyOf(claim), decision.ProvisionedName(claim.UID), phase.Owned(claim)
	s.noteReserved(s.volume(owned), claim)
	if owned == "" || len(s.unclaimed[key]) == 0 && s.tasks[key] == nil {
		return
	}
	if owned != name {
		if s.MayStandFor(key, claim.UID) != "" {
			s.setUnclaimed(key, mayHaveStood(s.unclaimed[key], claim.UID))
			if running := s.tasks[key]; running != nil {
				running.answers = mayHaveStood(running.answers, claim.UID)
			}
		}
		return
	}
	if s.volume(name) == nil && !s.goneVolumes.has(name) {
		s.goneVolumes.add(name, nil)
	}
	s.setUnclaimed(key, slices.DeleteFunc(slices.Clone(s.unclaimed[key]), s.stoodFor))
}

// noteReserved notes that a person has reserved a volume for the claim that is Bound to it.
func (s *store) noteReserved(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) {
	if volume != nil && claim != nil && phase.Owned(claim) == volume.Name && decision.StandsInstead(volume, obj.KeyOf(claim), claim.UID) {
		s.reservedFor.add(claim.UID, struct{}{})
	}
}

// unsettleMade notes of all that provisioners have made that a volume may have stood for it before the server went back: another controller may have stored
// it, and bound it to its claim. That neither is there proves nothing.
func (s *State) unsettleMade() {
	for key, made := range s.unclaimed {
		s.unclaimed[key] = mayHaveStood(made, "")
	}
	for key, made := range s.restore.made {
		s.restore.made[key] = mayHaveStood(made, "")
	}
	for _, running := range s.tasks {
		running.answers = mayHaveStood(running.answers, "")
	}
}

// mayHaveStood returns answers that say of what was made for a claim, or for any if that is "", that a volume may have stood for it.
func mayHaveStood(answers []decision.Answer, claim types.UID) []decision.Answer {
	answers = slices.Clone(answers)
	for i, answer := range answers {
		if answer.Of == decision.RunProvisioner && (claim == "" || claim == answer.For) {
			answers[i].Unsettled = true
		}
	}
	return answers
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
