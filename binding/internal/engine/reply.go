package engine

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// outcome is what an error says of a write.
type outcome string

const (
	done     outcome = "done"
	conflict outcome = "conflict" // it did not happen: the object has changed or is gone; read it
	rejected outcome = "rejected" // it did not happen, and the same write would fail again
	unknown  outcome = "unknown"  // it may have happened
)

// outcomeOf classifies the error of a write. An error counts as unknown unless it proves that nothing was written (B6).
func outcomeOf(err error) outcome {
	var invalid *obj.InvalidError
	switch {
	case err == nil:
		return done
	case errors.As(err, &invalid): // it was not sent
		return rejected
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsGone(err):
		return conflict
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsTooManyRequests(err), apierrors.IsNotAcceptable(err),
		apierrors.IsUnsupportedMediaType(err), apierrors.IsRequestEntityTooLargeError(err), saysRefused(err):
		return rejected
	}
	return unknown
}

// refusals are the texts with which an API server tells, under a code that does not say so, that it has stored nothing: the object is too
// large for etcd, an admission webhook cannot be called, or one denies the request, with any code that it likes.
var refusals = regexp.MustCompile(`^etcdserver: request is too large$|^Internal error occurred: failed calling webhook |^admission webhook ".*" denied the request`)

// saysRefused reports whether the text of a reply says that nothing was stored.
func saysRefused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && refusals.MatchString(status.Status().Message)
}

// handleWrite takes the reply to a write. What was read live holds until a write, whatever its outcome. That a claim is not there before an announcement is no first
// proof of that after it: a restore, which nobody has noticed, may have brought it back.
func (s *State) handleWrite(t *task, got Reply) error {
	target := t.pending.Target()
	t.written = t.pending
	t.live = nil
	if t.pending.Announces() {
		t.contradicted = nil
	}
	if t.outdated { // it may be the reply of the server before it went back
		t.wake(s.distrust(target), t.key)
	}
	if t.pending.Kind == decision.CreateVolume {
		s.stored.add(target.Name, s.now)
	}
	switch outcome := outcomeOf(got.Err); {
	case outcome == done && t.pending.Kind == decision.DeleteVolume:
		if t.key.Kind == obj.KindClaim { // to have its storage made anew (P2)
			s.startedOver.add(t.pending.Volume.UID, struct{}{})
		}
		s.markInDoubt(target, t.key) // its finalizers may keep it
		return nil
	case t.pending.Kind == decision.CreateVolume && outcome != done: // or perhaps it was stored
		s.markInDoubt(target, t.key)
		if outcome == unknown { // or there is one, by another controller perhaps
			t.answers = mayHaveStood(t.answers, t.pending.About()) // however long
		}
		if !apierrors.IsAlreadyExists(got.Err) { // which is no failure (P2)
			s.recordAnswer(t, got, outcome == unknown)
		}
		return nil
	case outcome == done:
		return s.handleStored(t, got)
	case outcome == conflict:
		s.noteConflict(target, t.pending, got.Err)
		s.markInDoubt(target, t.key)
		return nil
	case outcome == rejected:
		s.markRejected(t)
		return got.Err
	}
	s.markInDoubt(target, t.key)
	// It may have taken effect, and nobody would tell of it any more.
	t.publish = append(t.publish, s.newEvents(t.key, t.pending.Events)...)
	return got.Err
}

// errNotStored ends a sync whose write the server accepts without storing it, as a mutating webhook can make it do. Else the
// write would be repeated without end.
var errNotStored = errors.New("the server accepted the write and did not store it")

// errUnmoved ends a sync whose writes get a conflict for an answer, though live reads show the object in the version that was sent, as a
// webhook or a proxy that has no route can make it. They would be repeated without end too.
var errUnmoved = errors.New("the object is in the version that was sent, and the write is refused again")

// refusal is a write that got a conflict for an answer, until its object is read in another version.
type refusal struct {
	write decision.Action
	err   error
	again bool // and so did one of the same version before
}

// noteConflict notes that a write got a conflict for an answer.
func (s *State) noteConflict(target obj.Key, write decision.Action, err error) {
	before, refused := s.refused[target]
	zeromap.Put(&s.refused, target, refusal{write, err, refused && sentVersion(before.write) == sentVersion(write)})
}

// sentVersion returns the resourceVersion that a write is sent with.
func sentVersion(write decision.Action) string {
	if write.Volume != nil {
		return write.Volume.ResourceVersion
	}
	return write.Claim.ResourceVersion
}

// forgetRefused forgets the conflicts of objects that were read since.
func (s *State) forgetRefused(keys ...obj.Key) {
	for _, key := range keys {
		if _, doubted := s.inDoubt[key]; !doubted {
			delete(s.refused, key)
		}
	}
}

// settleConflict compares what was read with the write that got a conflict for an answer. Where a proxy sends a write again, it took effect the
// first time, and nobody else would tell of it. It returns an error where the object has not changed, and two have been refused.
func (s *State) settleConflict(t *task, read obj.Object) error {
	refused, found := s.refused[keyOf(read)]
	switch {
	case !found:
		return nil
	case sentVersion(refused.write) != read.GetResourceVersion():
		delete(s.refused, keyOf(read))
		if refused.write.IsShownBy(read) {
			t.publish = append(t.publish, refused.write.Events...)
		}
		return nil
	case !refused.again:
		return nil
	}
	t.pending = refused.write
	s.markRejected(t)
	return fmt.Errorf("%w: %w", errUnmoved, refused.err)
}

// failedUpdate returns the events that tell of a write which the server does not let happen, for as long as nothing is
// changed (N). That it has no time, or does not know us, no owner of the object can change.
func (s *State) failedUpdate(t *task, err error) []decision.Event {
	var invalid *obj.InvalidError
	switch {
	case errors.Is(err, errNotStored), errors.Is(err, errUnmoved):
	case outcomeOf(err) != rejected, errors.As(err, &invalid), !saysRefused(err) && (apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err)):
		return nil
	}
	return decision.FailedUpdate(t.pending, s.Known(t.key), err)
}

// handleStored takes the object that the server stored. A write that took effect has made a new version, or has removed
// the last finalizer of an object that was being deleted: that deletes it, and it keeps its version (A5).
func (s *State) handleStored(t *task, got Reply) error {
	stored := got.Object
	delete(s.refused, t.pending.Target())
	ended := stored.GetDeletionTimestamp() != nil && len(stored.GetFinalizers()) == 0
	switch {
	case ended:
		t.wake(s.ObserveDeleted(stored), t.key, t.volume)
	case stored.GetResourceVersion() == sentVersion(t.pending):
		return errNotStored
	default:
		t.wake(s.observe(got.Parsed().parsed), t.key, t.volume)
		if claim := as[*corev1.PersistentVolumeClaim](stored); claim != nil { // whatever an informer has shown of it since
			s.endBegun(claim)
		}
		if target := t.pending.Target(); uidOf(s.Known(target)) != stored.GetUID() && s.Known(target) != nil {
			s.markInDoubt(target, t.key) // an informer has shown another in its place: one of later, or of before a restore
		}
		if t.pending.Announces() && !t.pending.IsShownBy(stored) { // its finalizer alone is taken off again, and that without end
			return errNotStored
		}
	}
	if t.pending.Kind == decision.CreateVolume {
		s.recordAnswer(t, got, false)
	}
	t.forgetProvisioned(stored)
	if t.pending.Announces() {
		t.answers = append(t.answers, decision.Answer{Of: t.pending.Kind, For: stored.GetUID(), Token: t.pending.Token})
	}
	if len(t.pending.Events) > 0 { // a write without events says nothing about those of the last decision
		t.publish = append(t.publish, s.newEvents(t.key, t.pending.Events)...)
	}
	return nil
}

// wake adds keys to those that are synced after this task, but for the given ones. After a write the task goes on with its own
// key and the volume that it binds; after a read only with its own key, for another client may have changed the volume.
func (t *task) wake(keys []obj.Key, but ...obj.Key) {
	for _, key := range keys {
		if !slices.Contains(but, key) {
			t.next = append(t.next, key)
		}
	}
}

// markInDoubt notes that the outcome of a sync's write of the object is not known.
func (s *State) markInDoubt(object, by obj.Key) {
	s.leftInDoubt.move(object, s.inDoubt[object], by)
	zeromap.Put(&s.inDoubt, object, by)
}

// clearDoubt notes that the outcome of the object's last write is known, and returns the keys to sync for it. If the sync of a
// claim made that write to a volume, the volume is reserved no more, unless that sync still has it locked.
func (s *State) clearDoubt(key obj.Key) []obj.Key {
	by := s.inDoubt[key]
	delete(s.inDoubt, key)
	s.leftInDoubt.remove(key, by)
	s.endHad(key)
	woken := s.reread(key)
	if key.Kind != obj.KindVolume || by.Kind != obj.KindClaim || s.locks[key] == by {
		return woken
	}
	s.index.Release(key.Name, by)
	return append(woken, s.wokenByOwner(key)...)
}

// markRejected notes what the server rejected for a claim, so that the volume is offered to another (W1).
func (s *State) markRejected(t *task) {
	volume, claim := s.volume(t.volume.Name), s.claim(t.key)
	if volume == nil || claim == nil {
		return
	}
	s.recordAttempt(volume, claim)
	zeromap.Put(&s.rejected, t.key, rejection{claim.ResourceVersion, volume.Name, volume.ResourceVersion})
}

// recordAnswer keeps what a hook answered, or what came of creating a volume. Where a provisioner ran, that the storage
// was deleted before is no longer true, nor does the announcement of that count any more.
func (s *State) recordAnswer(t *task, got Reply, unsettled bool) {
	volume, _ := got.Object.(*corev1.PersistentVolume)
	if t.pending.Kind == decision.RunProvisioner { // which finds it, or is told that another has been there
		failed, _ := errors.AsType[*hooks.Error](got.Err)
		stale := failed != nil && failed.Meaning == hooks.StaleToken
		unsettled = unsettled || stale || s.MayStandFor(t.key, t.pending.About()) != ""
	}
	answer := decision.Answer{Of: t.pending.Kind, Hook: t.pending.Hook, For: t.pending.About(), Token: t.pending.Token, Volume: volume, Err: got.Err, Unsettled: unsettled}
	switch answer.Of {
	case decision.CreateVolume:
		for _, made := range decision.AnswersAbout(t.answers, decision.RunProvisioner, answer.For) {
			answer.Standing = made.Standing
		}
	case decision.RunProvisioner:
		standing, _ := reclaim.AnnouncementOf(t.pending.Request.Claim)
		answer.Version, answer.Token, answer.Standing = t.pending.Request.Claim.ResourceVersion, t.pending.Request.Token, standing.Token
		t.answers = slices.DeleteFunc(t.answers, func(a decision.Answer) bool {
			return (a.Of == decision.RunDeleter || a.Of == decision.UpdateClaim) && a.For == answer.For
		})
	}
	t.answers = append(t.answers, answer)
	s.keepCall(t.pending, answer)
}

// forgetProvisioned forgets that storage was made for a claim, where the server has the volume: that stands for the
// storage from now on. If it goes before this sync ends, what became of the storage was as its policy says (X2).
func (t *task) forgetProvisioned(stored obj.Object) {
	if volume, ok := stored.(*corev1.PersistentVolume); ok {
		t.answers = slices.DeleteFunc(t.answers, func(a decision.Answer) bool {
			return a.Of == decision.RunProvisioner && volume.Name == decision.ProvisionedName(a.For)
		})
	}
}

// contradiction is the reply to a live read that contradicts what is known: an object does not exist, or it exists
// though it was deleted, or it is older than it was, or another one in the same version. A server that was restored replies so, and so does a proxy or a
// cache that stands in for the server. It is believed once the next read has the same reply, and so is the one after it that agrees with what is known: either may
// be the old one.
type contradiction struct {
	uid     types.UID // of the object that is missing, or that is there
	agrees  bool      // it contradicts nothing, but the reply before it did
	missing bool
	dated   bool   // as of a resourceVersion: a cache's old reply and another's without one are not the same
	early   bool   // as of one that is too early to say so: one such reply after a true one is not the same either
	version string // of the object that is there
}

// isRepeatedBy reports whether the next reply says the same. One that shows an earlier version does not: a server that was restored only goes on from there.
func (c contradiction) isRepeatedBy(next contradiction) bool {
	back := obj.IsBefore(next.version, c.version)
	c.version = next.version
	return c == next && !back
}

// handleRead takes the reply to a live read.
func (s *State) handleRead(t *task, got Reply) error {
	key := t.pending.Key
	if t.outdated {
		return nil // it may be the reply of the server before it went back; the next decision reads it again
	}
	if got.Object != nil {
		t.forgetProvisioned(got.Object)
	}
	found, contradicts := s.contradictionIn(got, t)
	switch {
	case contradicts && (!t.contradicted[key].isRepeatedBy(found) && !t.isConfirmed(got) || s.Known(key) != t.before):
		zeromap.Put(&t.contradicted, key, found)
		delete(t.live, key)
		return nil // the next decision reads it again
	case contradicts && !found.missing:
		var noticed error
		if !s.isFormer(found.uid, got.Object, t) { // which is what a restore that is known brings back
			noticed = s.notice(t, got.Object.GetResourceVersion(), got.Object) // first: it keeps what is known of its volume, too
		}
		t.wake(s.replace(key, got.Parsed().parsed), t.key)
		if noticed != nil {
			t.wake(s.clearDoubt(key), t.key)
			return noticed
		}
	case contradicts:
		if err := s.checkAbsence(t, obj.AbsentAsOf(got.Err)); err != nil {
			return err
		}
		if known := s.Known(key); known != nil && known.GetUID() == found.uid { // one that was observed since is another
			t.wake(s.ObserveDeleted(known), t.key)
		}
		zeromap.Put(&t.contradicted, key, contradiction{missing: true, dated: found.dated, early: found.early})
	case got.Err != nil:
		return s.unreadError(key, got.Err)
	case got.Object != nil && t.isDisputed(key, found):
		found.agrees = true
		zeromap.Put(&t.contradicted, key, found)
		delete(t.live, key)
		return nil // likewise
	case got.Object != nil:
		delete(t.contradicted, key)
		t.wake(s.observeLive(key, got.Parsed().parsed), t.key)
		if known := s.Known(key); known != nil && known.GetUID() != got.Object.GetUID() {
			delete(t.live, key)
			return nil // an informer has shown another meanwhile, of later or of before a restore: the next decision reads it again
		}
		if err := s.settleConflict(t, got.Object); err != nil {
			t.wake(s.clearDoubt(key), t.key, t.volume)
			return err
		}
	}
	s.tell(t, got.Object)
	t.wake(s.clearDoubt(key), t.key)
	if key.Kind == obj.KindVolume && s.awaitsReclaim(key) && s.Known(key) != t.before && obj.ReferencedClaim(s.volume(key.Name)) == t.key { // who released it may have seen that the claim is gone
		delete(t.live, t.key)
	}
	if s.dropStaleReads(t) && key != t.key {
		return nil // it is read anew if it matters still
	}
	zeromap.Put(&t.live, key, got)
	return nil
}

// isDisputed reports whether the reply before contradicted what was known of an object, which this one does not.
func (t *task) isDisputed(key obj.Key, agreeing contradiction) bool {
	before := t.contradicted[key]
	agreeing.agrees = true
	return before.uid != "" && !before.isRepeatedBy(agreeing)
}

// contradictionIn reports whether a reply contradicts what was known when its read was sent. Where that is not what is known by now, for
// another sync has written or read it, or an informer shown it, the next read tells which of the two is newer.
func (s *State) contradictionIn(got Reply, t *task) (found contradiction, contradicts bool) {
	switch {
	case obj.IsAbsent(got.Err, t.pending.Key):
		asOf := obj.AbsentAsOf(got.Err)
		return contradiction{uid: uidOf(t.before), missing: true, dated: asOf != "", early: t.precedesObject(asOf) || t.precedesOwn(asOf)}, true
	case got.Object == nil:
		return contradiction{}, false
	}
	found.uid, found.version = got.Object.GetUID(), got.Object.GetResourceVersion()
	return found, s.isFormer(found.uid, got.Object, t) || s.gone.has(found.uid) || isOlder(got.Object, t.before) || isAnother(got.Object, t.before) || lostName(t.before, got.Object)
}

// isFormer reports whether what is read was known to be gone before the server went back, and nothing else contradicts it. It may be there again; and it may be
// an old reply, which does not look old any more.
func (s *State) isFormer(uid types.UID, read obj.Object, t *task) bool {
	return s.restore.gone.has(uid) && !s.gone.has(uid) && !isOlder(read, t.before)
}

// isAnother reports whether an object has the version that another one of its name was known to have: one of the two is of before a restore.
func isAnother(read, known obj.Object) bool {
	return known != nil && read.GetUID() != known.GetUID() && read.GetResourceVersion() == known.GetResourceVersion()
}

func isOlder(read, known obj.Object) bool { return known != nil && obj.Older(read, known) }

// isConfirmed reports whether a reply says that the object does not exist, and as of no earlier version than was known of anything in
// this sync when its read was sent.
func (t *task) isConfirmed(got Reply) bool {
	asOf := obj.AbsentAsOf(got.Err)
	return asOf != "" && !t.precedesObject(asOf) && !t.precedesOwn(asOf)
}

// precedesObject reports whether a resourceVersion is before that of the object as it was known when its read was sent.
func (t *task) precedesObject(version string) bool {
	return t.before != nil && obj.IsBefore(version, t.before.GetResourceVersion())
}

// precedesOwn reports whether a resourceVersion is before that of the object that the sync is about, if it is not that which is read: the
// sync has read nothing of others before it knew of that.
func (t *task) precedesOwn(version string) bool {
	return t.pending.Key != t.key && obj.IsBefore(version, t.version)
}

// checkAbsence returns an error where the object that is read does not exist as of a version that is too old to say so. Shown twice, that
// is as an older version of it: the server went back, which is noticed. Where that is known, and the sync's own object has been read
// since, whoever shows it is behind.
func (s *State) checkAbsence(t *task, asOf string) error {
	own := t.precedesOwn(asOf)
	if !own && !t.precedesObject(asOf) {
		return nil
	}
	if err := s.notice(t, asOf, nil); err != nil || !own {
		return err
	}
	return fmt.Errorf("%s: not found as of resourceVersion %s, and %s has a later one: what answers is out of date", t.pending.Key, asOf, t.key)
}

// replace stores what the server has in place of what was known, newer though that was.
func (s *State) replace(key obj.Key, parsed Parsed) (woken []obj.Key) {
	had, uid := s.formerClaims[key.Name], uidInClaimRef(as[*corev1.PersistentVolume](parsed.object))
	unchanged := uid != "" && uid == uidInClaimRef(as[*corev1.PersistentVolume](s.Known(key)))
	if known := s.Known(key); known != nil {
		s.keepFormer(key)
		former, owner := s.restore.former.objects[key], s.lostOwners[key]
		claim, begun := s.begun[key.Name]
		last, used := s.hadBefore[key.Name]
		answer, deleted := s.deleted[parsed.object.GetUID()]
		call, goesOn := s.goesOn[key.Name]
		woken = s.ObserveDeleted(known)
		if deleted { // its storage does not come back
			zeromap.Put(&s.deleted, parsed.object.GetUID(), answer)
		}
		if goesOn && key.Kind == obj.KindVolume {
			zeromap.Put(&s.goesOn, key.Name, call)
		}
		if begun && key.Kind == obj.KindVolume && known.GetUID() == parsed.object.GetUID() {
			zeromap.Put(&s.begun, key.Name, claim)
		}
		if used && key.Kind == obj.KindVolume {
			zeromap.Put(&s.hadBefore, key.Name, last)
		}
		was, back := as[*corev1.PersistentVolumeClaim](known), as[*corev1.PersistentVolumeClaim](parsed.object)
		if was != nil && phase.Owned(was) != "" && s.isNoOthers(back) {
			owner = was.UID
		}
		if owner != "" && owner == back.UID && obj.NamedVolume(was) == obj.NamedVolume(back) { // or its tenant may write whatever they like
			zeromap.Put(&s.lostOwners, key, owner)
		}
		if former != nil && (key.Kind == obj.KindVolume || known.GetUID() == parsed.object.GetUID()) { // what was made for a claim is no other's
			s.restore.former.keep(key, former)
		}
	}
	s.gone.remove(parsed.object.GetUID())
	s.restore.gone.remove(parsed.object.GetUID())
	woken = append(woken, s.observe(parsed)...)
	if had != nil && unchanged { // the claim whose name is not in claimRef may be back, too, and its pods have the volume mounted
		zeromap.Put(&s.formerClaims, key.Name, had)
	}
	return woken
}

// Recheck compares what a cache has of an object with what is known, and returns whom that wakes (W7).
//
// A claim or volume that is not the same is put in doubt, and read by the next sync: the cache is as wrong as what is known, if
// the server went back and it has not listed anew. Of another object the cache's version is stored.
func (s *State) Recheck(object obj.Object) []obj.Key {
	woken, rest := s.RecheckParsed(Parse(object))
	return s.WokenByClaims(woken, rest)
}

// RecheckParsed is Recheck for an object that was parsed, with a rest as that of ObserveParsed.
func (s *State) RecheckParsed(parsed Parsed) (woken, rest []obj.Key) {
	object := parsed.object
	key := keyOf(object)
	if key.Kind == obj.KindVolume || key.Kind == obj.KindClaim {
		if !s.Knows(object) {
			s.doubt(key)
		}
		return []obj.Key{key}, nil
	}
	woken, rest = s.ObserveParsed(parsed)
	if known := s.Known(key); known != nil && !sameVersion(known, object) {
		woken, rest = s.ForgetDeleted(known)
	}
	s.tombstonesOf(key.Kind).remove(object.GetUID())
	again, more := s.ObserveParsed(parsed)
	return Unique(append(woken, again...)), append(slices.Clip(rest), more...)
}

// Knows reports whether an object is known in the version that it has.
func (s *State) Knows(object obj.Object) bool {
	known := s.Known(keyOf(object))
	return known != nil && sameVersion(known, object)
}

// RecheckMissing puts claims and volumes in doubt that are known and in no cache, and returns their keys, in order: a reply has shown
// them, and no informer will report their end (W7).
func (s *State) RecheckMissing(missing []obj.Object) []obj.Key {
	var keys []obj.Key
	for _, object := range missing {
		key := keyOf(object)
		if known := s.Known(key); (key.Kind == obj.KindVolume || key.Kind == obj.KindClaim) && known != nil && known.GetUID() == object.GetUID() {
			s.doubt(key)
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, obj.CompareKeys)
	return keys
}

func sameVersion(a, b obj.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// uidOf returns the UID of the object; "" for nil.
func uidOf(object obj.Object) types.UID {
	if object == nil {
		return ""
	}
	return object.GetUID()
}
