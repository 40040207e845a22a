package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// What follows is for the model checker and other tests: copies of a State, and looks into it.

// Clone returns a copy of the state. Objects are shared, for nothing modifies them.
func (s *State) Clone() *State {
	copied := *s
	copied.store = s.store.clone()
	copied.tasks = make(map[obj.Key]*task, len(s.tasks))
	for key, running := range s.tasks {
		copied.tasks[key] = running.clone()
	}
	copied.locks = maps.Clone(s.locks)
	copied.waiters = s.waiters.clone()
	copied.inDoubt = maps.Clone(s.inDoubt)
	copied.leftInDoubt = s.leftInDoubt.clone()
	copied.offers = s.offers.clone()
	copied.hooks, copied.workers = s.hooks.clone(), s.workers.clone()
	copied.lastEvents = maps.Clone(s.lastEvents) // the slices in it are replaced, never changed
	copied.rejected = maps.Clone(s.rejected)
	copied.failures = maps.Clone(s.failures)
	copied.announced = maps.Clone(s.announced)
	copied.unclaimed = maps.Clone(s.unclaimed) // as those of lastEvents
	copied.deleted = maps.Clone(s.deleted)
	copied.refused = maps.Clone(s.refused)
	copied.restore = s.restore.clone()
	return &copied
}

// Disputed reports whether the last reply to a read of the object contradicts what a sync knows of it, which is to read it again.
func (s *State) Disputed(key obj.Key) bool {
	for _, running := range s.tasks {
		if last := running.contradicted[key]; last.uid != "" && !last.agrees {
			return true
		}
	}
	return false
}

func (s store) clone() store {
	old := s
	s.objects = make(map[obj.Kind]map[obj.Key]obj.Object, len(old.objects))
	for kind, objects := range old.objects {
		s.objects[kind] = maps.Clone(objects)
	}
	s.claimsByVolume, s.volumesByClaim, s.attachmentsByVolume = old.claimsByVolume.clone(), old.volumesByClaim.clone(), old.attachmentsByVolume.clone()
	s.claimsByUID, s.podsByClaim = maps.Clone(old.claimsByUID), old.podsByClaim.clone()
	s.largePods, s.parsedClaims, s.podClaims = old.largePods.clone(), maps.Clone(old.parsedClaims), maps.Clone(old.podClaims) // what they point to is never changed
	s.waiting, s.notified = old.waiting.Clone(), old.notified.Clone()
	s.gone, s.gonePods, s.goneVolumes, s.stored, s.startedOver, s.reservedFor = old.gone.clone(), old.gonePods.clone(), old.goneVolumes.clone(), old.stored.clone(), old.startedOver.clone(), old.reservedFor.clone()
	s.usedBefore, s.goesOn, s.displaced = maps.Clone(old.usedBefore), maps.Clone(old.goesOn), maps.Clone(old.displaced)
	s.lostOwners, s.formerClaims, s.begun, s.hadBefore = maps.Clone(old.lostOwners), maps.Clone(old.formerClaims), maps.Clone(old.begun), maps.Clone(old.hadBefore)
	s.index = &index.Index{}
	s.index.Load(slices.Collect(all[*corev1.PersistentVolume](&s, obj.KindVolume))...)
	for volume := range all[*corev1.PersistentVolume](&s, obj.KindVolume) {
		if claim, reserved := old.index.Reservation(volume.Name); reserved {
			s.index.Reserve(volume.Name, volume.ResourceVersion, claim)
		}
	}
	for claim := range all[*corev1.PersistentVolumeClaim](&s, obj.KindClaim) {
		s.index.SetClaim(s.asOwner(claim))
	}
	return s
}

func (l links) clone() links {
	copied := maps.Clone(l)
	for to, from := range copied {
		copied[to] = maps.Clone(from)
	}
	return copied
}

func (l podLists) clone() podLists {
	copied := maps.Clone(l)
	for of, pods := range copied {
		copied[of] = slices.Clone(pods)
	}
	return copied
}

func (t tombstones[ID, Of]) clone() tombstones[ID, Of] {
	return tombstones[ID, Of]{young: maps.Clone(t.young), old: maps.Clone(t.old)}
}

func (t *task) clone() *task {
	copied := *t
	copied.contradicted = maps.Clone(t.contradicted)
	copied.live = maps.Clone(t.live)
	copied.answers = slices.Clone(t.answers)
	copied.publish = slices.Clone(t.publish)
	copied.next = slices.Clone(t.next)
	return &copied
}

func (o offers) clone() offers {
	o.made, o.pendingFor, o.pendingOn, o.order = maps.Clone(o.made), o.pendingFor.clone(), maps.Clone(o.pendingOn), slices.Clone(o.order)
	for volume, made := range o.made {
		o.made[volume] = offer{made.version, maps.Clone(made.claims)}
	}
	return o
}

func (r restore) clone() restore {
	r.unread, r.held, r.made, r.gone = maps.Clone(r.unread), maps.Clone(r.held), maps.Clone(r.made), r.gone.clone()
	r.former = r.former.clone()
	return r
}

func (s slots) clone() slots {
	s.running, s.promised, s.held = maps.Clone(s.running), maps.Clone(s.promised), maps.Clone(s.held)
	s.waiting, s.turns = s.waiting.clone(), slices.Clone(s.turns)
	return s
}

func (q namespaceQueues) clone() namespaceQueues {
	q.keys, q.queued = maps.Clone(q.keys), maps.Clone(q.queued)
	for namespace, keys := range q.keys {
		q.keys[namespace] = slices.Clone(keys)
	}
	return q
}

// Notebook takes down what a State remembers, so that two states that will do the same read the same. Versions
// are written apart from the objects, for only their order counts.
type Notebook interface {
	Number(n int)
	Key(key obj.Key)
	KeySet(set map[obj.Key]struct{})
	Object(object obj.Object)
	Version(of obj.Key, version string)
	Token(token int64)
	Text(text string)
}

// Describe writes down all that the state remembers of these keys and by them, which have to be all that there
// are. Of the time it tells which announcements have been seen for long enough. Left out is what decides nothing but the length of a delay (failures), or an end that the model would
// see as a circle (the steps of a sync); which action a sync waits for the caller has. Of the objects that are gone it
// writes only whether it has the given UIDs among them: those that anybody may still mention.
func (s *State) Describe(n Notebook, keys []obj.Key, mentioned []types.UID) {
	s.describeObjects(n, keys)
	for _, key := range keys {
		n.Key(s.locks[key])
		n.Key(s.inDoubt[key])
		n.Key(s.offers.pendingOn[key])
		for _, l := range []links{s.claimsByVolume, s.volumesByClaim, s.attachmentsByVolume, s.waiters, s.leftInDoubt, s.offers.pendingFor} {
			n.KeySet(l[key])
		}
		s.describeOffer(n, key)
		describeEvents(n, s.lastEvents[key].events)
		if _, announced := s.announced[key]; describeFlag(n, announced) {
			describeFlag(n, s.Outwaited(key))
		}
		if rejected, ok := s.rejected[key]; describeFlag(n, ok) {
			n.Version(key, rejected.claimVersion)
			n.Key(obj.VolumeKey(rejected.volume))
			n.Version(obj.VolumeKey(rejected.volume), rejected.volumeVersion)
		}
		if refused, ok := s.refused[key]; describeFlag(n, ok) {
			n.Text(string(refused.write.Kind))
			n.Version(key, sentVersion(refused.write))
			describeEvents(n, refused.write.Events)
			describeFlag(n, refused.again)
		}
		if running, ok := s.tasks[key]; describeFlag(n, ok) {
			running.describe(n)
			n.Number(s.age(running))
		}
	}
	describeKeys(n, s.offers.order)
	s.hooks.describe(n)
	s.workers.describe(n)
	s.describeRestore(n, keys)
	for _, uid := range mentioned {
		describeFlag(n, s.Buried(uid))
		describeFlag(n, s.restore.gone.has(uid))
	}
}

func (s *State) describeObjects(n Notebook, keys []obj.Key) {
	found := 0
	for _, key := range keys {
		object := s.Known(key)
		if object != nil {
			found++
		}
		n.Object(object)
		switch key.Kind {
		case obj.KindVolume:
			describeFlag(n, s.goneVolumes.has(key.Name))
			if last := s.goneVolumes.of(key.Name); describeFlag(n, last != nil) {
				n.Object(last.named(key.Name))
				n.Number(len(last.owners))
				for _, owner := range last.owners {
					n.Text(string(owner))
				}
				describeFlag(n, last.wentBack)
				describeFlag(n, last.chosen)
				if describeFlag(n, last.version != "") {
					n.Version(key, last.version)
				}
			}
			if call, goesOn := s.goesOn[key.Name]; describeFlag(n, goesOn) {
				n.Object(call.called)
				n.Text(call.last.By)
				n.Token(call.last.Token)
				describeFlag(n, call.taken)
				describeFlag(n, call.answered)
				describeFlag(n, call.failed)
			}
			n.Number(len(s.formerClaims[key.Name]))
			for _, former := range s.formerClaims[key.Name] {
				n.Key(obj.ReferencedClaim(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: former}}))
				n.Text(string(former.UID))
			}
			if displaced, any := s.displaced[key.Name]; describeFlag(n, any) {
				n.Text(string(displaced.by))
				n.Text(string(displaced.former.UID))
			}
			if had := s.hadBefore[key.Name]; describeFlag(n, had != nil) {
				n.Key(obj.ClaimKey(had.Namespace, had.Name))
				n.Text(string(had.UID))
			}
			if begun, any := s.begun[key.Name]; describeFlag(n, any) {
				n.Version(key, begun.version)
				for _, claim := range begun.claims {
					n.Text(string(claim))
				}
			}
			describeFlag(n, s.startedOver.has(uidOf(s.Known(key))))
			describeFlag(n, s.stored.has(key.Name) && s.stored.of(key.Name).Add(hooks.Margin).After(s.now))
			describeKeys(n, s.index.Owners(key.Name))
			if claim, reserved := s.index.Reservation(key.Name); describeFlag(n, reserved) {
				n.Key(claim)
			}
		case obj.KindClaim:
			n.Text(string(s.lostOwners[key]))
			stood, used := s.usedBefore[uidOf(s.Known(key))]
			describeFlag(n, used)
			describeFlag(n, stood)
			describeFlag(n, s.reservedFor.has(uidOf(s.Known(key))))
			n.Object(orNil(s.waiting.Get(key)))
			n.Object(orNil(s.notified.Get(key)))
		}
	}
	for _, objects := range s.objects {
		found -= len(objects)
	}
	if found != 0 {
		panic("the state has objects that are not among the keys to describe")
	}
}

func (s *State) describeOffer(n Notebook, volume obj.Key) {
	made, ok := s.offers.made[volume]
	if !describeFlag(n, ok) {
		return
	}
	n.Version(volume, made.version)
	n.Number(len(made.claims))
	for _, claim := range slices.SortedFunc(maps.Keys(made.claims), obj.CompareKeys) {
		n.Key(claim)
		n.Text(string(made.claims[claim]))
	}
}

func (s *State) describeRestore(n Notebook, keys []obj.Key) {
	n.KeySet(s.restore.unread)
	n.KeySet(s.restore.held)
	describeFlag(n, s.restore.unsaid)
	describeFlag(n, s.restore.calls.After(s.now))
	for _, key := range keys {
		describeAnswers(n, key, s.restore.made[key])
		describeAnswers(n, key, s.unclaimed[key])
		n.Object(s.restore.former.objects[key])
		kept, deleted := s.deleted[uidOf(s.Known(key))]
		if describeFlag(n, deleted) {
			describeAnswers(n, key, []decision.Answer{kept})
		}
	}
}

// age is whether what was read, or is about to be, was read for the object as it is known now.
func (s *State) age(t *task) int {
	if len(t.live) == 0 && t.pending.Kind != decision.Read {
		return 0
	}
	return 1 + flag(t.version == s.versionOf(t.key)) + 2*flag(t.version == "")
}

func (t *task) describe(n Notebook) {
	n.Key(t.volume)
	if describeFlag(n, t.before != nil) {
		n.Text(string(t.before.GetUID()))
		n.Version(t.pending.Key, t.before.GetResourceVersion())
	}
	n.Number(len(t.contradicted))
	for _, key := range slices.SortedFunc(maps.Keys(t.contradicted), obj.CompareKeys) {
		n.Key(key)
		n.Text(string(t.contradicted[key].uid))
		describeFlag(n, t.contradicted[key].agrees)
		describeFlag(n, t.contradicted[key].missing)
		describeFlag(n, t.contradicted[key].dated)
		describeFlag(n, t.contradicted[key].early)
		if version := t.contradicted[key].version; describeFlag(n, version != "") {
			n.Version(key, version)
		}
	}
	n.Number(len(t.live))
	for _, key := range slices.SortedFunc(maps.Keys(t.live), obj.CompareKeys) {
		n.Key(key)
		describeObjects(n, t.live[key].Claims)
		describeObjects(n, t.live[key].Pods)
		describeObjects(n, t.live[key].Attachments)
	}
	describeAnswers(n, t.key, t.answers)
	n.Text(string(t.provided))
	describeFlag(n, t.outdated)
	describeEvents(n, t.publish)
	next := make(map[obj.Key]struct{}, len(t.next))
	for _, key := range t.next {
		next[key] = struct{}{}
	}
	n.KeySet(next)
}

func describeAnswers(n Notebook, key obj.Key, answers []decision.Answer) {
	n.Number(len(answers))
	for _, answer := range answers {
		n.Text(string(answer.Of))
		n.Text(answer.Hook)
		n.Text(string(answer.For))
		n.Token(answer.Token)
		if answer.Of == decision.RunProvisioner {
			n.Version(key, answer.Version)
		}
		n.Token(answer.Standing)
		n.Object(orNil(answer.Volume))
		describeFlag(n, answer.Unsettled)
		if describeFlag(n, answer.Err != nil) {
			n.Text(answer.Err.Error())
		}
	}
}

func describeEvents(n Notebook, events []decision.Event) {
	n.Number(len(events))
	for _, event := range events {
		n.Key(event.On)
		n.Text(string(event.UID))
		n.Text(string(event.Reason))
		n.Text(event.Message)
		n.Text(event.Hook)
		n.Text(event.Identity().Message)
	}
}

func describeKeys(n Notebook, keys []obj.Key) {
	n.Number(len(keys))
	for _, key := range keys {
		n.Key(key)
	}
}

func (s slots) describe(n Notebook) {
	describeNamespaces(n, s.running)
	describeNamespaces(n, s.promised)
	s.waiting.describe(n, s.turns)
}

func describeNamespaces(n Notebook, namespaces map[obj.Key]string) {
	n.Number(len(namespaces))
	for _, key := range slices.SortedFunc(maps.Keys(namespaces), obj.CompareKeys) {
		n.Key(key)
		n.Text(namespaces[key])
	}
}

func (q namespaceQueues) describe(n Notebook, namespaces []string) {
	n.Number(len(namespaces))
	for _, namespace := range namespaces {
		n.Text(namespace)
		describeKeys(n, q.keys[namespace])
	}
}

func describeObjects[O obj.Object](n Notebook, objects []O) {
	n.Number(len(objects))
	for _, object := range objects {
		n.Object(object)
	}
}

// describeFlag writes down whether what follows is there, and returns it.
func describeFlag(n Notebook, set bool) bool {
	n.Number(flag(set))
	return set
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// orNil returns nil for a nil pointer.
func orNil[O interface {
	comparable
	obj.Object
}](object O) obj.Object {
	var none O
	if object == none {
		return nil
	}
	return object
}

// announcementsLast returns for how long the announcement of a controller with the same hooks counts.
func (s *State) announcementsLast() time.Duration { return s.options.HookTimeout + hooks.Margin }

// Outwait lets the state have seen the announcement on the object for as long as it counts.
func (s *State) Outwait(key obj.Key) {
	if seen, announced := s.announced[key]; announced {
		s.announced[key] = sighting{text: seen.text, since: s.now.Add(-s.announcementsLast())}
	}
}

// Awaits reports whether the object carries the announcement of another, which the state has not seen for long enough.
func (s *State) Awaits(key obj.Key) bool {
	known := s.Known(key)
	if known == nil {
		return false
	}
	announcement, announced := reclaim.AnnouncementOf(known)
	return announced && announcement.By != s.options.Identity && !s.Outwaited(key)
}

// AwaitsCalls reports whether calls of others may go on that began before the server went back in time (W8), or a volume was stored of late, for a
// claim that is gone (P2).
func (s *State) AwaitsCalls() bool {
	if s.restore.calls.After(s.now) {
		return true
	}
	for key := range s.objects[obj.KindVolume] {
		if s.storedFor(key) > 0 {
			return true
		}
	}
	return false
}

// OutwaitCalls lets so much time pass that neither is so.
func (s *State) OutwaitCalls() {
	s.restore.calls, s.stored = time.Time{}, tombstones[string, time.Time]{}
}

// OutwaitDelay lets the delay of a key be over that nothing else ends (W6).
func (s *State) OutwaitDelay(key obj.Key) {
	if failed, any := s.failures[key]; any {
		failed.held = time.Time{}
		s.failures[key] = failed
	}
}

// SeesAnnouncements reports whether any object that is known carries an announcement, or a sync has made one.
func (s *State) SeesAnnouncements() bool {
	for _, running := range s.tasks {
		if slices.ContainsFunc(running.answers, func(a decision.Answer) bool { return a.Token != 0 && a.Of != decision.RunProvisioner }) {
			return true
		}
	}
	return len(s.announced) > 0
}

// Outwaited reports whether the state has seen the announcement on the object for as long as it counts.
func (s *State) Outwaited(key obj.Key) bool {
	seen, announced := s.announced[key]
	return announced && s.now.Sub(seen.since) >= s.announcementsLast()
}

// Buried reports whether the state has the UID among those of objects that are gone.
func (s *State) Buried(uid types.UID) bool { return s.gone.has(uid) || s.gonePods.has(uid) }

// InDoubt returns the sync whose last write of the object has an unknown outcome; zero if none.
func (s *State) InDoubt(object obj.Key) (by obj.Key) { return s.inDoubt[object] }

// Unread returns the claims and volumes that are still to be read anew since the server went back in time.
func (s *State) Unread() map[obj.Key]struct{} { return s.restore.unread }

// Offers counts the claims that the volume was offered to.
func (s *State) Offers(volume string) int { return len(s.offers.made[obj.VolumeKey(volume)].claims) }

// Reserved returns the claim of each volume that the index has reserved.
func (s *State) Reserved() map[string]obj.Key {
	found := map[string]obj.Key{}
	for volume := range all[*corev1.PersistentVolume](&s.store, obj.KindVolume) {
		if claim, reserved := s.index.Reservation(volume.Name); reserved {
			found[volume.Name] = claim
		}
	}
	return found
}

// Claims returns the claims that are known, in any order.
func (s *State) Claims() []*corev1.PersistentVolumeClaim {
	return slices.Collect(all[*corev1.PersistentVolumeClaim](&s.store, obj.KindClaim))
}

// Objects returns all objects that are known, in any order: the very ones that were observed.
func (s *State) Objects() []obj.Object {
	var known []obj.Object
	for _, objects := range s.objects {
		known = slices.AppendSeq(known, maps.Values(objects))
	}
	return known
}
