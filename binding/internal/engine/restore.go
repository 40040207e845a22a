package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// ErrWentBack is in the error of the sync that notices that the server went back in time.
var ErrWentBack = errors.New("the server went back in time: it may have been restored from a backup, and nothing is destroyed until every claim and volume has been read anew")

// restore is what is left to do since the server went back in time (W8): every claim and volume that was known is read live,
// and until the last one has been, nothing is destroyed. What others had announced may be gone, and they still at work: that is
// waited for. The zero value is a server that never went back.
type restore struct {
	unread map[obj.Key]struct{}            // the claims and volumes that were not read since
	held   map[obj.Key]struct{}            // the syncs that would destroy something, to be run again after the last read
	made   map[obj.Key][]decision.Answer   // what provisioners made in those syncs
	gone   tombstones[types.UID, struct{}] // the UIDs that were known to be gone before, and may be there again
	unsaid bool                            // no event has told of it yet

	calls  time.Time // by then each call of a hook is over that began before it was noticed
	former formers
}

// formers are the objects, as they were known before the server went back, that may have lost by it what decision.GiveBack gives back.
type formers struct {
	objects   map[obj.Key]obj.Object
	volumesOf map[types.UID]obj.Key // the volume among them whose claimRef has the UID of a claim
}

func (f *formers) keep(key obj.Key, former obj.Object) {
	f.drop(key)
	zeromap.Put(&f.objects, key, former)
	if volume := as[*corev1.PersistentVolume](former); uidInClaimRef(volume) != "" {
		zeromap.Put(&f.volumesOf, uidInClaimRef(volume), key)
	}
}

func (f *formers) drop(key obj.Key) {
	if uid := uidInClaimRef(as[*corev1.PersistentVolume](f.objects[key])); f.volumesOf[uid] == key {
		delete(f.volumesOf, uid)
	}
	delete(f.objects, key)
}

func (f *formers) clone() formers { return formers{maps.Clone(f.objects), maps.Clone(f.volumesOf)} }

// ObserveRestore notes that the server went back in time, and returns the keys of all claims and volumes, in order: the next
// sync of each begins with a live read (W8). What was read before proves nothing any more, nor that an object is gone.
func (s *State) ObserveRestore() []obj.Key {
	keys := s.ObserveRestoreAgain()
	s.restore.unsaid = len(keys) > 0
	return keys
}

// ObserveRestoreAgain does what ObserveRestore does where somebody has told of it already: no event does.
func (s *State) ObserveRestoreAgain() []obj.Key {
	for _, running := range s.tasks {
		running.live, running.contradicted, running.outdated = nil, nil, true
		running.provided = "" // what was made is found again
	}
	s.unsettleMade()
	keys := slices.AppendSeq(slices.Collect(maps.Keys(s.objects[obj.KindVolume])), maps.Keys(s.objects[obj.KindClaim]))
	slices.SortFunc(keys, obj.CompareKeys)
	s.restore.gone.take(&s.gone)
	s.gonePods = tombstones[types.UID, struct{}]{}
	s.restore.calls = s.now.Add(min(s.options.HookTimeout, reclaim.LongestCall) + hooks.Margin)
	for _, key := range keys {
		s.keepFormer(key)
	}
	s.noteUsed()
	return s.distrust(keys...)
}

// noteUsed notes the claims that had a volume before the server went back, or for which what was provisioned had been stored: they may be there again, and
// that not. The name of what was provisioned tells whom it was for, also once a person has given it to others, or to nobody. What R3 has deleted is no more.
// A volume of another name, which a controller has chosen, is none that a person has made of what was provisioned.
func (s *State) noteUsed() {
	note := func(claim types.UID, volume *corev1.PersistentVolume) {
		chosen := volume != nil && !s.reservedFor.has(claim) && phase.BoundByController(volume) && volume.Name != decision.ProvisionedName(claim)
		if claim != "" {
			zeromap.Put(&s.usedBefore, claim, s.usedBefore[claim] || !chosen)
		}
	}
	for claim := range all[*corev1.PersistentVolumeClaim](&s.store, obj.KindClaim) {
		owned := phase.Owned(claim)
		volume := s.volume(owned)
		if last := s.goneVolumes.of(owned); volume == nil && last != nil {
			volume = last.named(owned)
		}
		if owned != "" {
			note(claim.UID, volume)
		}
	}
	for volume := range all[*corev1.PersistentVolume](&s.store, obj.KindVolume) {
		if announcement, _ := reclaim.AnnouncementOf(volume); !announcement.Done {
			owners, _ := s.ownersOf(volume)
			for _, owner := range owners {
				note(owner, volume)
			}
			note(decision.ProvisionedFor(volume.Name), nil)
		}
	}
	for name, last := range s.goneVolumes.all() {
		last = cmp.Or(last, &lastVolume{})
		volume := last.named(name)
		if announcement, _ := reclaim.AnnouncementOf(volume); !announcement.Done {
			for _, owner := range last.owners {
				note(owner, volume)
			}
			note(decision.ProvisionedFor(name), nil)
		}
	}
}

// keepFormer keeps an object as it is known, before an older version takes its place, where that may lack what GiveBack gives back.
// What was kept before counts, if it is not given back yet.
func (s *State) keepFormer(key obj.Key) {
	known := s.Known(key)
	kept := s.restore.former.objects[key]
	if known == nil || kept != nil && (sameVersion(known, kept) || decision.Lost(known, kept) || isReassigned(known, kept)) {
		return // the owners of the same version may be others by now
	}
	if volume := as[*corev1.PersistentVolume](known); volume != nil {
		if last := s.lastOf(volume); last != nil {
			former := last.named(volume.Name)
			if record, transfers := volume.Annotations[reclaim.TransferAnnotation]; transfers { // or else Retain seems to be for good
				metav1.SetMetaDataAnnotation(&former.ObjectMeta, reclaim.TransferAnnotation, record)
			}
			had := s.hadBefore[volume.Name] // by an earlier restore
			if before := as[*corev1.PersistentVolume](kept); before != nil && before.Spec.ClaimRef != nil {
				had = before.Spec.ClaimRef // a late watch may show it once more, over what was read since: no person has written that
			}
			if had != nil {
				former.Spec.ClaimRef = had
			}
			s.restore.former.keep(key, former)
		}
	} else if _, announced := s.announced[key]; announced || s.claim(key).Spec.VolumeName == decision.ProvisionedName(known.GetUID()) {
		s.restore.former.keep(key, s.asFormerOwner(s.claim(key)))
	}
}

// asFormerOwner returns a claim as GiveBack is to know it: Bound to a volume that it had, be that lost by what a person has written into its claimRef.
func (s *State) asFormerOwner(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	volume := s.volume(claim.Spec.VolumeName)
	if volume == nil {
		return s.asOwner(claim)
	}
	if former := s.formerOwner(volume); former == nil || former.UID != claim.UID {
		return s.asOwner(claim)
	}
	return asBound(claim)
}

// isReassigned reports whether a volume was another claim's before, which its own sync is to tell.
func isReassigned(known, former obj.Object) bool {
	_, reassigned := decision.GivenSince(known, former)
	return reassigned
}

// recallFormer keeps what is known of a volume of that name that is gone, where it went by a restore, or an older one takes its place. So it is after a
// restore for a retained volume whose storage a provisioner finds again: a person may have deleted the volume, which keeps the data.
func (s *State) recallFormer(volume *corev1.PersistentVolume) {
	key, last := obj.VolumeKey(volume.Name), s.goneVolumes.of(volume.Name)
	if last == nil {
		return
	}
	uid := uidInClaimRef(volume)
	foundAgain := !s.restore.calls.IsZero() && last.policy == corev1.PersistentVolumeReclaimRetain && uid != "" && uid == decision.ProvisionedFor(volume.Name)
	if last.uid != volume.UID && !last.wentBack && last.version != "" && !obj.OlderThan(volume, last.version) && !foundAgain {
		return
	}
	if s.restore.former.objects[key] == nil { // or else that is what is known, before the one that is there superseded it
		s.restore.former.keep(key, last.named(volume.Name))
	}
	s.goneVolumes.add(volume.Name, nil)
}

// buryFormer notes what was to be given back to a volume that is gone: it is for whatever comes under its name, if the server went back.
// Where that was not noticed, a late cache may have shown a volume of before.
func (s *State) buryFormer(key obj.Key) {
	if former := as[*corev1.PersistentVolume](s.restore.former.objects[key]); former != nil {
		if last := s.lastOf(former); last != nil {
			last.wentBack = !s.restore.calls.IsZero()
			s.goneVolumes.add(key.Name, last)
		}
	}
	s.restore.former.drop(key)
}

// giveBack returns what comes before an action: the sync's own object, or the volume that is about to be written to, or that a claim is about to be bound to, gets back what the
// server has lost of it. A volume is its own until its sync has done that: no claim finds it, and none waits for it.
func (s *State) giveBack(t *task, action decision.Action) (next decision.Action, lost bool) {
	keys := []obj.Key{t.key}
	target := action.Target()
	if action.Rule == "B3" || action.Rule == "B4" {
		target = obj.NamedVolume(action.Claim)
	}
	if target.Kind == obj.KindVolume && target != t.key && action.Writes() {
		keys = append(keys, target)
	}
	for _, key := range keys {
		former, known := s.restore.former.objects[key], s.Known(key)
		if call := s.announcedCall(key); call != nil && decision.Lost(known, call) {
			former = call // this comes first: no claim may be Bound before it is announced again
		}
		if _, doubted := s.inDoubt[key]; known == nil || doubted {
			continue
		}
		if s.index.Release(key.Name, key); former == nil {
			continue
		}
		next, lost = decision.GiveBack(known, former, &taskView{s, t})
		if lost && key == t.key && key.Kind == obj.KindVolume {
			s.index.Reserve(key.Name, known.GetResourceVersion(), key)
		}
		if lost {
			return next, true
		}
		if !decision.Lost(known, former) { // else an owner is to have it by C11 or C7, which one reply has shown
			s.restore.former.drop(key)
			if event, changed := decision.GivenSince(known, former); changed { // also where it was retained already, and nothing has told it
				t.publish = append(t.publish, s.newEvents(t.key, []decision.Event{event})...)
			}
			s.noteHad(as[*corev1.PersistentVolume](former))
		}
	}
	return decision.Action{}, false
}

// noteHad notes which claim had a volume when the server went back, be it by its name alone.
func (s *State) noteHad(former *corev1.PersistentVolume) {
	if former != nil && former.Spec.ClaimRef != nil {
		zeromap.Put(&s.hadBefore, former.Name, former.Spec.ClaimRef)
		s.endHad(s.Claimant(s.volume(former.Name)))
	}
}

// endHad forgets which claim had a volume when the server went back, once one is Bound to that: it has it again, or another has it as the backup says, or a
// person. As long as it is in doubt it may be Bound as it was before.
func (s *State) endHad(claim obj.Key) {
	if _, doubted := s.inDoubt[claim]; doubted || s.claim(claim) == nil {
		return
	}
	volume := s.volume(phase.Owned(s.claim(claim)))
	if volume != nil && uidInClaimRef(volume) == s.claim(claim).UID {
		delete(s.hadBefore, volume.Name)
	}
}

// awaitFormer returns the Wait of a claim that would be bound to another volume, or have one provisioned, before its own is given back to it: then it could
// not have that any more.
func (s *State) awaitFormer(t *task, action decision.Action) (waiting decision.Action, awaited bool) {
	claim := s.claim(t.key)
	takes := action.Writes() && (action.Rule == "B1" || action.Rule == "P3") || action.Kind == decision.RunProvisioner || action.Kind == decision.CreateVolume
	if claim == nil || !takes {
		return decision.Action{}, false
	}
	key, awaited := s.restore.former.volumesOf[claim.UID]
	if !awaited || key == action.Target() {
		return decision.Action{}, false
	}
	return decision.AwaitFormer(claim, key.Name), true
}

// keepUsed returns the action or, in place of one that frees or reclaims a volume whose claim has another one, that which reserves it for the name of the claim
// that had it when the server went back, be it this one or a later one: the data of that is on it (V4).
func (s *State) keepUsed(t *task, action decision.Action) decision.Action {
	volume, had := s.volume(t.key.Name), s.hadBefore[t.key.Name]
	if t.key.Kind != obj.KindVolume || volume == nil || had == nil || !reclaims(action, volume) {
		return action
	}
	claim := s.claim(s.claimsByUID[uidInClaimRef(volume)]) // by whatever name
	if claim == nil || claim.Spec.VolumeName == "" || claim.Spec.VolumeName == volume.Name {
		return action
	}
	return decision.ReserveUsed(claim, volume, obj.ClaimKey(had.Namespace, had.Name))
}

// postpone returns the Wait in place of an action that comes too soon after the server went back. It may have taken with it what
// another controller has announced, and that one may be paused, or not have noticed. So nothing is announced until its call is
// over, and no hook called; what a provisioner has found or made before is found again after that. No claim gets a volume that is not
// retained: it may have become free by it, while it is reclaimed for another one. Nor is a volume taken from a claim: it may have been
// an old reply that looked like a restore, and what it shows outlive it for a while.
func (s *State) postpone(action decision.Action) (waiting decision.Action, postponed bool) {
	takes := action.Kind == decision.UpdateVolume && unbinds(as[*corev1.PersistentVolume](s.Known(action.Target())), action.Volume)
	gives := action.Rule == "B1" && action.Writes() && action.Volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain && !s.owns(action.Volume)
	if !action.Announces() && !action.RunsHook() && !takes && !gives {
		return decision.Action{}, false
	}
	rest := s.restore.calls.Sub(s.now)
	return decision.AwaitCalls(rest), rest > 0
}

// owns reports whether the claim in a claimRef that is to be written is an owner of the volume (M2): that gives it to nobody, and must not wait (C11).
func (s *State) owns(volume *corev1.PersistentVolume) bool {
	claim := s.claim(obj.ReferencedClaim(volume))
	return claim != nil && claim.UID == volume.Spec.ClaimRef.UID && phase.Owned(s.asOwner(claim)) == volume.Name
}

// distrust has these objects read anew, and nothing destroyed before that is done.
func (s *State) distrust(keys ...obj.Key) []obj.Key {
	for _, key := range keys {
		zeromap.Put(&s.restore.unread, key, struct{}{})
		s.doubt(key)
	}
	return keys
}

// doubt has an object read before anything is decided on it. Where its last write is in doubt already it is read anyhow, and
// stays with the sync that made the write (B6).
func (s *State) doubt(key obj.Key) {
	if _, doubted := s.inDoubt[key]; !doubted {
		s.markInDoubt(key, key)
	}
}

// readAnew returns the read of an object in doubt.
func (s *State) readAnew(key obj.Key) decision.Action {
	if _, unread := s.restore.unread[key]; unread {
		return decision.ReadLive(key, "W8", "the server went back in time")
	}
	return decision.ReadLive(key, "B6", "its last write was lost, or its outcome is unknown")
}

// maybeBack reports whether a claim or volume was known to be gone before the server went back, or another has been known in its place since,
// though the server was not known to have gone back; or a claim has lost the volume that it named. That a cache shows it proves no more than that it was
// gone: its next sync reads it, and that shows it or not.
func (s *State) maybeBack(key obj.Key, object obj.Object) bool {
	uid := object.GetUID()
	if known := s.Known(key); lostName(known, object) && obj.Newer(object, known) {
		s.doubt(key)
		return true
	}
	if key.Kind != obj.KindVolume && key.Kind != obj.KindClaim || !s.restore.gone.has(uid) || s.gone.has(uid) {
		return false
	}
	if known := s.Known(key); known != nil && known.GetUID() != object.GetUID() && !obj.Newer(object, known) {
		return false // a late report
	}
	if s.now.Before(s.restore.calls) { // nobody knows whose volume it hides a slip of, until it is read
		s.distrust(key)
	}
	s.doubt(key)
	return true
}

// lostName reports whether an object is a claim that names no volume, or another one, than it did as it was known. The API server clears and changes
// no volumeName (A3): it went back in time, though its revisions go on.
func lostName(known, object obj.Object) bool {
	before, claim := as[*corev1.PersistentVolumeClaim](known), as[*corev1.PersistentVolumeClaim](object)
	return before != nil && claim != nil && before.UID == claim.UID && before.Spec.VolumeName != "" && before.Spec.VolumeName != claim.Spec.VolumeName
}

// observeLive stores what a live read shows and returns whom that wakes. It replaces what is known in the same version: after
// a restore the server gives other writes the versions that it gave before.
func (s *State) observeLive(key obj.Key, parsed Parsed) []obj.Key {
	s.restore.gone.remove(parsed.object.GetUID())
	if known := s.Known(key); known != nil && sameVersion(known, parsed.object) {
		s.set(key, known, parsed)
		s.noteAnnouncement(key, parsed.object)
		return nil
	}
	return s.observe(parsed)
}

// notice takes an older version, or an object that was gone, or that there was none as of an older version, that a sync has read
// twice. Where the object is being read anew that is no news. Else the server went back just now: all that is known is read anew,
// and the sync ends with the error.
func (s *State) notice(t *task, version string, found obj.Object) error {
	if _, expected := s.restore.unread[t.pending.Key]; expected {
		return nil
	}
	t.wake(s.ObserveRestore(), t.key)
	s.tell(t, found)
	return fmt.Errorf("metadata.resourceVersion: the server has %s, though a later one was known or the object was deleted: %w", version, ErrWentBack)
}

// tell publishes the event on an object that the server has, once each time that the server went back.
func (s *State) tell(t *task, on obj.Object) {
	if s.restore.unsaid && on != nil {
		s.restore.unsaid = false
		t.publish = append(t.publish, decision.ServerWentBack(on))
	}
}

// reread notes that an object has been read, and returns the syncs that waited for the last one.
func (s *State) reread(key obj.Key) (woken []obj.Key) {
	delete(s.restore.unread, key)
	if len(s.restore.unread) > 0 {
		return nil
	}
	woken = slices.SortedFunc(maps.Keys(s.restore.held), obj.CompareKeys)
	s.restore.held = nil
	return woken
}

// unreadError returns the error of a live read that gave no reply.
func (s *State) unreadError(key obj.Key, err error) error {
	if _, unread := s.restore.unread[key]; !unread {
		return err
	}
	return fmt.Errorf("%w; until it is read nothing is destroyed, for the server went back in time", err)
}

// hold reports whether the action has to wait until all is read anew. If so, the sync ends, and runs again after that, with
// what it has made for its claim: else nobody would delete that any more (P2).
func (s *State) hold(t *task, action decision.Action) bool {
	if len(s.restore.unread) == 0 || !destroys(action, s.Known(action.Target())) {
		return false
	}
	zeromap.Put(&s.restore.held, t.key, struct{}{})
	if made := slices.DeleteFunc(slices.Clone(t.answers), func(a decision.Answer) bool { return a.Of != decision.RunProvisioner && a.Of != decision.CreateVolume }); len(made) > 0 {
		zeromap.Put(&s.restore.made, t.key, made)
	}
	return true
}

// resume returns what the sync of that key had made when it was held.
func (s *State) resume(key obj.Key) []decision.Answer {
	made := s.restore.made[key]
	delete(s.restore.made, key)
	return made
}

// destroys reports whether storage or data may be lost by an action: by itself, or because it lets somebody else go on. That
// is so of a deleter, of a recycler and of the end of a volume; of a volume that is Released, for which an external
// provisioner waits, or taken from a claim; and of a finalizer that is removed from what is being deleted. Which finalizers a
// draft leaves is not known yet (X9), so that whatever is written to such an object waits, its status aside.
func destroys(action decision.Action, known obj.Object) bool {
	updates := action.Kind == decision.UpdateVolume || action.Kind == decision.UpdateClaim
	return updates && isDeleted(known) || reclaims(action, known)
}

// reclaims reports whether an action says that the claim of a volume has it no more, or goes on from that.
func reclaims(action decision.Action, known obj.Object) bool {
	if action.Announces() { // what it announces would wait
		return true
	}
	switch action.Kind {
	case decision.RunDeleter, decision.RunRecycler, decision.DeleteVolume:
		return true
	case decision.UpdateVolumeStatus:
		return action.Volume.Status.Phase == corev1.VolumeReleased
	case decision.UpdateVolume:
		return unbinds(as[*corev1.PersistentVolume](known), action.Volume)
	}
	return false
}

// unbinds reports whether a write takes a volume from the claim that it is bound to.
func unbinds(before, after *corev1.PersistentVolume) bool {
	if before == nil || before.Spec.ClaimRef == nil || before.Spec.ClaimRef.UID == "" {
		return false
	}
	return after.Spec.ClaimRef == nil || after.Spec.ClaimRef.UID != before.Spec.ClaimRef.UID
}

// isDeleted reports whether an object is being deleted.
func isDeleted(known obj.Object) bool { return known != nil && known.GetDeletionTimestamp() != nil }
