package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// task is a sync that has begun and not finished.
type task struct {
	key obj.Key

	volume  obj.Key         // the volume that a claim's sync has locked; zero if none
	pending decision.Action // what is being done
	written decision.Action // the last write
	before  obj.Object      // of a read: what was known when it was sent; nil if nothing

	outdated bool // the server went back in time since the action was begun (W8)

	contradicted map[obj.Key]contradiction // what the last live read of each object contradicted

	version string            // the resourceVersion of the key's object that live was read for
	live    map[obj.Key]Reply // the replies to live reads since the last write

	answers  []decision.Answer // since the sync began, and what is left of earlier ones
	provided types.UID         // the claim that a provisioner was called for, since the server went back

	publish []decision.Event
	next    []obj.Key
	steps   int
}

// stepLimit bounds what one sync does. A bind takes four steps, and what is left of claims that are gone twenty (leftoversPerSync); only endless
// conflicts take so many.
const stepLimit = 64

// advance decides what a sync does next, and returns that or the end of the sync.
func (s *State) advance(t *task) Step {
	if t.steps++; t.steps > stepLimit {
		return s.giveUp(t)
	}
	s.dropStaleReads(t)
	if read, needed := s.readInDoubt(t); needed {
		return s.issue(t, read)
	}
	if s.blocked(t, obj.NamedVolume(s.claim(t.key))) { // another sync binds the claim and its volume just now; for a volume's sync the key is zero
		return s.stop(t)
	}
	action, err := s.decide(t)
	if read, needed := s.readReserved(t, action); needed {
		return s.issue(t, read)
	}
	if write, lost := s.giveBack(t, action); lost {
		action, err = write, nil
	} else {
		action = s.keepUsed(t, s.retainBegun(t, action))
	}
	if waiting, awaited := s.awaitFormer(t, action); awaited {
		return s.finish(t, waiting, nil)
	}
	switch {
	case err == nil && action.Kind == decision.Read:
		return s.issue(t, action)
	case err != nil || !action.Writes() && !action.RunsHook():
		return s.finish(t, action, err)
	case action.Kind == decision.CreateVolume && action.About() != t.provided:
		s.provideAgain(t, action.About())
		return s.advance(t)
	case s.hold(t, action):
		return s.stop(t)
	}
	if waiting, postponed := s.postpone(action); postponed {
		return s.finish(t, waiting, nil)
	}
	if rest := s.storedFor(t.key); rest > 0 && action.Target() == t.key {
		return s.finish(t, decision.AwaitLate(rest), nil)
	}
	if !s.lockVolume(t, s.volumeFor(action)) {
		return s.stop(t)
	}
	if read, needed := s.readInDoubt(t); needed { // of the volume, which is locked only now
		return s.issue(t, read)
	}
	if read, needed := s.readLast(t, action); needed {
		return s.issue(t, read)
	}
	if s.isAnothersTurn(t, action) {
		t.next = append(t.next, t.key)
		return s.stop(t)
	}
	if (action.RunsHook() || action.Announces()) && !s.hooks.acquire(t.key, s.namespaceOf(t.key)) { // announced, a call has to follow soon
		return s.stop(t)
	}
	return s.issue(t, action)
}

// storedFor returns for how long nothing is written to a volume yet that this controller has stored itself, and that may have been late (P2): its claim is gone,
// and its informers may still have to show that an earlier one of that name was there.
func (s *State) storedFor(key obj.Key) (rest time.Duration) {
	volume := s.volume(key.Name)
	if key.Kind != obj.KindVolume || volume == nil || !s.stored.has(key.Name) {
		return 0
	}
	if !decision.MayBeLate(volume, s.options) || s.claim(obj.ReferencedClaim(volume)) != nil {
		return 0
	}
	return s.stored.of(key.Name).Add(hooks.Margin).Sub(s.now)
}

// isAnothersTurn reports whether a provisioner is to run for a claim after this sync has called one for its predecessor of that name, while others
// wait for a slot. Who deletes and makes claims again and again would keep it (Rh).
func (s *State) isAnothersTurn(t *task, action decision.Action) bool {
	return action.Kind == decision.RunProvisioner && len(s.hooks.turns) > 0 && t.provided != "" && t.provided != action.About()
}

// errNoEnd ends a sync that exceeds stepLimit.
var errNoEnd = fmt.Errorf("no end after %d steps: what is written is undone, or changed meanwhile", stepLimit)

// giveUp ends a sync that exceeds stepLimit, most likely because a webhook or another client undoes each of its writes. It marks the claim as
// rejected, so that no volume is offered to it before the delay is over.
func (s *State) giveUp(t *task) Step {
	if claim := s.claim(t.key); claim != nil {
		zeromap.Put(&s.rejected, t.key, rejection{claimVersion: claim.ResourceVersion})
	}
	return s.finishHeld(t, decision.FailedUpdate(t.written, s.Known(t.key), errNoEnd), fmt.Errorf("%s: %w; the last: %s", t.key, errNoEnd, t.pending))
}

// finishHeld ends a sync with an error, and has nothing wake it before its delay is over.
func (s *State) finishHeld(t *task, told []decision.Event, err error) Step {
	ended := s.finish(t, decision.Action{Events: told}, err)
	s.failures[t.key] = failure{s.failures[t.key].times, s.now.Add(ended.After)}
	return ended
}

// dropStaleReads discards the live reads that were made for another version of the task's object, and reports whether the
// version has changed. The object may refer to another claim by now, about which those reads prove nothing (V3).
func (s *State) dropStaleReads(t *task) bool {
	version := s.versionOf(t.key)
	if version == t.version {
		return false
	}
	t.version, t.live = version, nil
	return true
}

// versionOf returns the version of an object that is known; "" for one that is not.
func (s *State) versionOf(key obj.Key) string {
	if known := s.Known(key); known != nil {
		return known.GetResourceVersion()
	}
	return ""
}

// readInDoubt returns a live read of an object in doubt, which comes before every decision: one whose last write, by this or an earlier
// sync of the same key, was lost or has an unknown outcome.
func (s *State) readInDoubt(t *task) (decision.Action, bool) {
	for _, key := range append([]obj.Key{t.key, t.volume}, s.leftInDoubt.of(t.key)...) {
		if _, doubted := s.inDoubt[key]; doubted {
			return s.readAnew(key), true
		}
	}
	return decision.Action{}, false
}

// readLast returns a live read of the task's own object, unless that was the last thing done before an action that destroys its
// storage (R8). Other reads come after it where it was in doubt, or was shown in a later version and they had to be made anew.
func (s *State) readLast(t *task, action decision.Action) (decision.Action, bool) {
	own := s.Known(t.key)
	destroys := action.Kind == decision.RunDeleter || action.Kind == decision.RunRecycler
	if last := t.pending; !destroys || own == nil || action.About() != own.GetUID() || last.Kind == decision.Read && last.Key == t.key {
		return decision.Action{}, false
	}
	return decision.ReadLive(t.key, "R8", "nothing else is read between this and the call"), true
}

// decide returns the next action for the newest known version of the task's object.
func (s *State) decide(t *task) (decision.Action, error) {
	view := &taskView{s, t}
	if t.key.Kind == obj.KindVolume {
		if volume := s.volume(t.key.Name); volume != nil {
			return decision.DraftForVolume(volume, view, s.options)
		}
		return decision.Action{}, nil
	}
	for _, made := range t.answers {
		if made.Of == decision.RunProvisioner && !made.Unsettled && made.For != uidOf(s.Known(t.key)) && s.MayStandFor(t.key, made.For) != "" {
			t.answers = mayHaveStood(t.answers, made.For)
		}
	}
	leftover, left := decision.NextForLeftover(t.key, uidOf(s.Known(t.key)), slices.DeleteFunc(slices.Clone(t.answers), s.stoodFor), view, s.options)
	claim := s.claim(t.key)
	if claim == nil || left && leftover.Kind != decision.Wait {
		return leftover, nil
	}
	action, err := decision.DraftForClaim(claim, view, s.options)
	return action.Beside(leftover), err
}

// issue returns an action as the next step.
func (s *State) issue(t *task, action decision.Action) Step {
	t.pending, t.before, t.outdated = action, nil, false
	if action.Kind == decision.Read {
		t.before = s.Known(action.Key)
	}
	if action.Kind == decision.RunProvisioner {
		t.provided = action.About()
	}
	s.noteBegun(t, action)
	s.beginCall(action)
	publish := t.publish
	t.publish = nil
	return Step{Action: action, Publish: publish}
}

// blocked reports whether another sync has the object locked. If so, this one runs again once it is unlocked.
func (s *State) blocked(t *task, object obj.Key) bool {
	by, locked := s.locks[object]
	if !locked || by == t.key {
		return false
	}
	s.waiters.add(t.key, object)
	return true
}

// volumeFor returns the volume that a claim's sync locks for the action: the one that it writes, or that the claim it
// writes is bound to; zero if none.
func (s *State) volumeFor(action decision.Action) obj.Key {
	if target := action.Target(); target.Kind == obj.KindVolume {
		return target
	}
	volume := s.volume(action.Claim.Spec.VolumeName)
	if volume == nil || phase.ClaimRefStateOf(volume, action.Claim) != phase.ClaimRefBound {
		return obj.Key{}
	}
	return obj.VolumeKey(volume.Name)
}

// lockVolume locks a volume for a claim's sync, in place of the one it had, and reserves it. It reports whether it could.
func (s *State) lockVolume(t *task, volume obj.Key) bool {
	if t.key.Kind == obj.KindVolume || volume == t.volume {
		return true
	}
	s.unlockVolume(t)
	if volume == (obj.Key{}) {
		return true
	}
	if s.blocked(t, volume) {
		return false
	}
	if known := s.volume(volume.Name); known != nil && !s.index.Reserve(volume.Name, known.ResourceVersion, t.key) {
		return false // it is another claim's; what becomes of it wakes this one
	}
	s.locks[volume] = t.key
	t.volume = volume
	s.withdraw(volume, t.key)
	return true
}

// unlockVolume unlocks the volume of a claim's sync. One that did not become the claim's is free for others (W1).
func (s *State) unlockVolume(t *task) {
	if t.volume == (obj.Key{}) {
		return
	}
	delete(s.locks, t.volume)
	volume := s.volume(t.volume.Name)
	doubter, doubted := s.inDoubt[t.volume]
	if doubter != t.key { // a write of another sync reserves nothing for this claim
		s.index.Release(t.volume.Name, t.key)
	}
	claim := s.claim(t.key) // one that is being deleted may not go on with the four writes (C12): its volume's phase is V2's
	if doubted || volume != nil && (claim == nil || claim.DeletionTimestamp != nil || phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound) {
		t.next = append(t.next, t.volume)
	}
	t.next = append(t.next, s.waiters.drain(t.volume)...)
	t.volume = obj.Key{}
}

// finish ends a sync with its last decision, or with an error. The volumes that waited for the sync of its claim go next.
func (s *State) finish(t *task, action decision.Action, err error) Step {
	switch {
	case action.Kind == decision.Requeue && (s.offerTo(t, action.Key) || len(action.Events) == 0):
	case err == nil || len(action.Events) > 0:
		t.publish = append(t.publish, s.newEvents(t.key, action.Events)...)
	}
	t.next = append(t.next, s.offers.endWait(t.key)...)
	s.unnotify(t.key)
	s.keepUnclaimed(t, action.Events)
	ended := s.end(t)
	ended.After, ended.Err = s.delay(t.key, action, err), err
	return ended
}

// stop ends a sync that another one blocks, or that finds no slot for its hook: its offers stay, and it runs again.
func (s *State) stop(t *task) Step {
	s.putBackUnclaimed(t)
	return s.end(t)
}

// end unlocks the objects of a sync, and returns its last Step. Next has the syncs that it has held up.
func (s *State) end(t *task) Step {
	s.forgetRefused(t.key, t.volume)
	s.unlockVolume(t)
	s.keepDeletion(t)
	delete(s.tasks, t.key)
	delete(s.locks, t.key)
	t.next = append(t.next, s.waiters.drain(t.key)...)
	t.next = append(t.next, s.release(t.key)...)
	return Step{Publish: t.publish, Done: true, Next: Unique(t.next)}
}

const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 2 * time.Minute
)

// delay returns the back-off before the next sync of the key: firstDelay after a failure, doubled with each further one in a
// row, at most lastDelay. It returns 0 where only a change of an object helps (W6). An action may say to be decided again sooner.
func (s *State) delay(key obj.Key, action decision.Action, err error) time.Duration {
	var invalid *obj.InvalidError
	longest, failed := lastDelay, err != nil && !errors.As(err, &invalid)
	switch {
	case !failed && action.Retry == decision.RetryNever:
		delete(s.failures, key)
		delete(s.rejected, key)
		return 0
	case !failed && action.Retry == decision.RetryAfter:
		return max(action.After, firstDelay/10)
	case action.After > 0:
		longest = min(longest, max(action.After, firstDelay/10))
	}
	times := s.failures[key].times
	zeromap.Put(&s.failures, key, failure{times: times + 1})
	return min(longest, firstDelay<<min(times, 16))
}

// repeatAfter is when an event is published again that still holds: the API server forgets it after an hour (its --event-ttl).
const repeatAfter = 50 * time.Minute

// told are the events of a decision, and when the first of them was published.
type told struct {
	events []decision.Event
	at     time.Time
}

// newEvents returns the events of a decision that were not part of the decision before it, or that is long ago (N). Part of a decision is,
// too, what an earlier one has told of what has no turn in it (P2).
func (s *State) newEvents(key obj.Key, events []decision.Event) []decision.Event {
	before := s.lastEvents[key]
	if s.now.Sub(before.at) >= repeatAfter {
		before = told{at: s.now}
	}
	var fresh []decision.Event
	all := s.stillTold(key, before.events)
	for _, event := range events {
		all = append(all, event.Identity())
		if !slices.Contains(before.events, event.Identity()) {
			fresh = append(fresh, event)
		}
	}
	if len(fresh) == len(all) {
		before.at = s.now
	}
	delete(s.lastEvents, key)
	if len(all) > 0 {
		zeromap.Put(&s.lastEvents, key, told{all, before.at})
	}
	return fresh
}
