package binding

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// task is a sync that has begun.
type task struct {
	key     obj.Key
	volume  obj.Key    // the volume that a claim's sync holds; zero if none
	pending Action     // what is being done
	asked   obj.Object // of a read: what was known when it was sent; nil if nothing

	contradicted map[obj.Key]contradiction // by the last reply to a read

	version string                   // of the object of the key, for which the rest was read
	live    map[obj.Key]struct{}     // read since the last write
	pods    map[string][]*corev1.Pod // the pods of a namespace, listed since the last write
	// attachments are those of all volumes, if live says that they are listed.
	attachments []*storagev1.VolumeAttachment

	answers []Answer // since the sync began

	publish []Event
	next    []obj.Key
	steps   int
}

// stepLimit bounds what one sync does. A bind takes four steps; only endless conflicts take so many.
const stepLimit = 64

// advance decides until there is something to do, or nothing more.
func (s *state) advance(t *task) call {
	if t.steps++; t.steps > stepLimit {
		return s.giveUp(t)
	}
	s.renew(t)
	if key, ok := s.unread(t); ok {
		return s.ask(t, readLive(key, "B6", "its last write was lost, or its outcome is unknown"))
	}
	if s.partnerBusy(t) {
		return s.standBack(t)
	}
	action, err := s.decide(t)
	switch {
	case err == nil && action.Kind == Read:
		return s.ask(t, action)
	case err != nil || !action.Writes() && !action.RunsHook():
		return s.finish(t, action, err)
	case !s.hold(t, s.pairOf(action)):
		return s.standBack(t)
	}
	if key, ok := s.unread(t); ok {
		return s.ask(t, readLive(key, "B6", "its last write was lost, or its outcome is unknown"))
	}
	if action.RunsHook() && !s.slots.take(t.key) {
		return s.standBack(t)
	}
	return s.ask(t, action)
}

// giveUp ends a sync that comes to no end. What it writes is undone each time, perhaps with a new version of the volume,
// which would be handed over to the claim again at once: so none is before the delay is over, whatever its version.
func (s *state) giveUp(t *task) call {
	if claim := s.claims[t.key]; claim != nil {
		zeromap.Put(&s.refused, t.key, refusal{claimVersion: claim.ResourceVersion})
	}
	return s.finish(t, Action{}, fmt.Errorf("%s: no end after %d steps, the last: %s", t.key, stepLimit, t.pending))
}

// renew drops what was read for another version of the task's object, and reports whether there is a new one: it may be
// another claim's by now, of which that says nothing (V3).
func (s *state) renew(t *task) bool {
	version := ""
	if known := s.known(t.key); known != nil {
		version = known.GetResourceVersion()
	}
	if version == t.version {
		return false
	}
	t.version = version
	t.unprove()
	return true
}

// unprove forgets what was read live.
func (t *task) unprove() { t.live, t.pods, t.attachments = nil, nil, nil }

// decide asks for the next action on the newest known version of the task's object.
func (s *state) decide(t *task) (Action, error) {
	view := &taskView{s, t}
	if t.key.Kind == obj.KindVolume {
		if volume := s.volumes[t.key.Name]; volume != nil {
			return NextForVolume(volume, view, s.rules)
		}
		return Action{}, nil
	}
	if action, left := outlived(t.key, uidOf(s.known(t.key)), t.answers, view, s.rules); left {
		return action, nil
	}
	if claim := s.claims[t.key]; claim != nil {
		return NextForClaim(claim, view, s.rules)
	}
	return Action{}, nil
}

// ask hands an action out to be done.
func (s *state) ask(t *task, action Action) call {
	t.pending, t.asked = action, nil
	if action.Kind == Read {
		t.asked = s.known(action.Key)
	}
	publish := t.publish
	t.publish = nil
	return call{action: action, publish: publish}
}

// unread is an object to read before anything else is decided: its last write, by this or an earlier sync of the
// same key, was lost or has an unknown outcome.
func (s *state) unread(t *task) (obj.Key, bool) {
	for _, key := range []obj.Key{t.key, t.volume} {
		if _, ok := s.unsettled[key]; ok {
			return key, true
		}
	}
	if own := s.doubts.of(t.key); len(own) > 0 {
		return own[0], true
	}
	return obj.Key{}, false
}

// pairOf is the volume that a claim's sync must hold for the action: the one that it writes, or that the
// claim it writes is bound to; zero if none.
func (s *state) pairOf(action Action) obj.Key {
	if target := action.Target(); target.Kind == obj.KindVolume {
		return target
	}
	volume := s.volumes[action.Claim.Spec.VolumeName]
	if volume == nil || phase.LinkOf(volume, action.Claim) != phase.Held {
		return obj.Key{}
	}
	return obj.VolumeKey(volume.Name)
}

// hold takes the volume of a pair for a claim's sync, in place of the one it had. If another sync has it,
// that one will let this one know.
func (s *state) hold(t *task, volume obj.Key) bool {
	if t.key.Kind == obj.KindVolume || volume == t.volume {
		return true
	}
	s.letGo(t)
	if volume == (obj.Key{}) {
		return true
	}
	if _, held := s.holders[volume]; held {
		s.waiters.move(obj.Key{}, volume, t.key)
		return false
	}
	if known := s.volumes[volume.Name]; known != nil && !s.index.Reserve(volume.Name, known.ResourceVersion, t.key) {
		return false // it is another claim's; what becomes of it wakes this one
	}
	s.holders[volume] = t.key
	t.volume = volume
	s.withdraw(volume, t.key)
	return true
}

// partnerBusy reports whether another sync has the volume that the task's claim names. What is decided about the
// pair before that one is done would be about its middle; it lets this one know.
func (s *state) partnerBusy(t *task) bool {
	volume := obj.NamedVolume(s.claims[t.key])
	by, held := s.holders[volume]
	if volume == (obj.Key{}) || !held || by == t.key {
		return false
	}
	s.waiters.move(obj.Key{}, volume, t.key)
	return true
}

// letGo gives the volume of a pair back. One that did not become the claim's is free for others (W1).
func (s *state) letGo(t *task) {
	if t.volume == (obj.Key{}) {
		return
	}
	delete(s.holders, t.volume)
	volume := s.volumes[t.volume.Name]
	doubter, unknown := s.unsettled[t.volume]
	if doubter != t.key { // a write of another sync sets nothing aside for this claim
		s.index.Release(t.volume.Name, t.key)
	}
	if claim := s.claims[t.key]; unknown || volume != nil && (claim == nil || phase.LinkOf(volume, claim) != phase.Held) {
		t.next = append(t.next, t.volume)
	}
	t.next = append(t.next, s.waiters.take(t.volume)...)
	t.volume = obj.Key{}
}

func (t *task) clone() *task {
	copied := *t
	copied.contradicted = maps.Clone(t.contradicted)
	copied.live = maps.Clone(t.live)
	copied.pods = maps.Clone(t.pods)
	copied.answers = slices.Clone(t.answers)
	copied.publish = slices.Clone(t.publish)
	copied.next = slices.Clone(t.next)
	return &copied
}
