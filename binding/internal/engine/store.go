package engine

import (
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// store has the newest known version of every object, and which of them refer to each other. What is stored is never
// modified, so that copies of a store share it.
type store struct {
	objects map[obj.Kind]map[obj.Key]obj.Object

	claimsByVolume      links // by spec.volumeName
	volumesByClaim      links // by the name in claimRef
	attachmentsByVolume links
	claimsByUID         map[types.UID]obj.Key
	podsByClaim         podLists // but for those in largePods
	largePods           podLists // by namespace: the pods that name many claims

	parsedClaims map[obj.Key]*match.Parsed // of the claims that have something large
	podClaims    map[obj.Key]*podClaims    // by pod: the claims that it names

	index    *index.Index        // the volumes once more, to choose from
	waiting  index.WaitingClaims // the claims that any volume may serve
	notified index.WaitingClaims // those of them that a volume was offered to and whose sync is still to come
	gone     tombstones[types.UID, struct{}]
	// gonePods has pods and attachments. They come and go by the thousand, and would evict the others.
	gonePods tombstones[types.UID, struct{}]
	// goneVolumes has volumes by name, as they were last. What a volume has stood for is no leftover, not even if the server went back (X2).
	// A volume that has the name of one may be made in its place, under the claim that was bound to that one (V1), or may be as
	// it was before that one, on a server that went back (W8).
	goneVolumes tombstones[string, *lastVolume]
	lostOwners  map[obj.Key]types.UID // the claims that own the volume that they name, though they are not Bound (M2)
	// formerClaims has, by the name of a volume, the claims that its claimRef had before somebody removed it, put a slip into its name, or wrote another claim into it,
	// the oldest first: those that are there and name the volume, and the last one, be it gone.
	formerClaims map[string][]*corev1.ObjectReference
	displaced    map[string]displacement       // by volume: the claim that had it before its claimRef was removed, or another UID written into it (W8)
	stored       tombstones[string, time.Time] // by volume: when the last create of this controller was answered (P2)
	// hadBefore has, by the name of a volume, the claim that had it when the server went back (W8). Its claimRef may be an earlier one.
	hadBefore map[string]*corev1.ObjectReference
	// usedBefore has the claims that had a volume, or for which what was provisioned had been stored, when the server went back (P2): all of them, for any may be
	// there again. The value is whether the volume may stand for what was provisioned for the claim.
	usedBefore  map[types.UID]bool
	reservedFor tombstones[types.UID, struct{}] // the claims that have had a volume which a person had reserved for them (P2)
	goesOn      map[string]ongoing              // by name of a volume, or of one that went under it: its call of a deleter or recycler that was not seen to end (R8)
	startedOver tombstones[types.UID, struct{}] // the volumes that a claim's sync has deleted, to have their storage made anew (P2)
	begun       map[string]beginning            // by volume: the claims that it is being bound to, which were not seen to be Bound since (B1)
}

// Known returns the object that is stored under a key; nil if there is none. A class has its name alone as its key.
func (s *store) Known(key obj.Key) obj.Object { return s.objects[key.Kind][key] }

func (s *store) volume(name string) *corev1.PersistentVolume {
	return as[*corev1.PersistentVolume](s.Known(obj.VolumeKey(name)))
}

func (s *store) claim(key obj.Key) *corev1.PersistentVolumeClaim {
	return as[*corev1.PersistentVolumeClaim](s.Known(key))
}

// Class returns the class of that name; nil if it is not known.
func (s *store) Class(name string) *storagev1.StorageClass {
	return as[*storagev1.StorageClass](s.Known(obj.Key{Kind: obj.KindClass, Name: name}))
}

func (s *store) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	return s.Class(storageclass.OfClaim(claim))
}

// searchTerms returns the terms of a search in the index, which knows the owners itself.
func (s *store) searchTerms(claim *corev1.PersistentVolumeClaim) match.Terms {
	return match.Terms{Class: s.classOf(claim), Parsed: s.Parsed(claim)}
}

// Parsed returns what was parsed of the claim; nil if it has nothing that can be large.
func (s *store) Parsed(claim *corev1.PersistentVolumeClaim) *match.Parsed {
	return s.parsedClaims[obj.KeyOf(claim)]
}

// as returns the object as one of its kind; nil for nil, and for an object of another kind.
func as[O obj.Object](object obj.Object) O {
	typed, _ := object.(O)
	return typed
}

// all returns the objects of a kind, in any order.
func all[O obj.Object](s *store, kind obj.Kind) iter.Seq[O] {
	return func(yield func(O) bool) {
		for _, object := range s.objects[kind] {
			if !yield(object.(O)) {
				return
			}
		}
	}
}

// keyOf returns the key of an object; zero for one of a kind that no decision depends on.
func keyOf(object obj.Object) obj.Key {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		return obj.VolumeKey(object.Name)
	case *corev1.PersistentVolumeClaim:
		return obj.KeyOf(object)
	case *storagev1.StorageClass:
		return obj.Key{Kind: obj.KindClass, Name: object.Name}
	case *corev1.Pod:
		return obj.KeyOfPod(object)
	case *storagev1.VolumeAttachment:
		return obj.KeyOfAttachment(object)
	}
	return obj.Key{}
}

// put stores an object, unless it is known to be gone or a version at least as new is stored. It returns what it
// replaced, the claims that a pod names as relinkPod does, and whether it stored anything.
func (s *store) put(key obj.Key, parsed Parsed) (old obj.Object, named []obj.Key, stored bool) {
	object := parsed.object
	old = s.Known(key)
	if s.tombstonesOf(key.Kind).has(object.GetUID()) || old != nil && !obj.Newer(object, old) {
		return nil, nil, false
	}
	return old, s.set(key, old, parsed), true
}

// set stores a version of an object in place of the old one, nil if there is none, and returns the claims that a pod names as
// relinkPod does.
func (s *store) set(key obj.Key, old obj.Object, parsed Parsed) (named []obj.Key) {
	object := parsed.object
	if s.objects[key.Kind] == nil {
		zeromap.Put(&s.objects, key.Kind, map[obj.Key]obj.Object{})
	}
	if old != nil && old.GetUID() != object.GetUID() && (key.Kind == obj.KindVolume || key.Kind == obj.KindClaim) {
		s.remove(key, old) // as if its end had been shown: what is known of it does not depend on the one in its place
		old = nil
	}
	s.objects[key.Kind][key] = object
	s.relink(key, old, object)
	switch object := object.(type) {
	case *corev1.Pod:
		named = s.relinkPod(key, parsed.pod)
	case *corev1.PersistentVolume:
		was := as[*corev1.PersistentVolume](old)
		s.noteTaken(was, object)
		s.noteDisplaced(was, object)
		s.noteFormerClaim(was, object)
		if was == nil || uidInClaimRef(was) != uidInClaimRef(object) { // or else a person has seen it
			s.noteOwner(object)
		}
		s.supersede(was, object)
		s.noteGiven(was, object)
		s.noteReserved(object, s.claim(obj.ReferencedClaim(object)))
		s.index.Set(object)
	case *corev1.PersistentVolumeClaim:
		delete(s.parsedClaims, key)
		if parsed.claim != nil {
			zeromap.Put(&s.parsedClaims, key, parsed.claim)
		}
		s.setOwner(as[*corev1.PersistentVolumeClaim](old), object)
		was := as[*corev1.PersistentVolumeClaim](old)
		if volume := s.volume(phase.Owned(object)); volume != nil && (was == nil || phase.Owned(was) != volume.Name) {
			s.noteOwner(volume)
		}
		s.endBegun(object)
		s.enlist(object)
	case *storagev1.StorageClass:
		s.enlistAll(object.Name)
	}
	return named
}

// drop removes an object and remembers that its UID is gone. It returns what it removed; nil if nothing of that UID was
// stored. It keeps an object of the same name with another UID: without a class that was created again, its claims would bind at
// once (M11). Of a pod it
// returns the claims too.
func (s *store) drop(key obj.Key, uid types.UID) (old obj.Object, named []obj.Key) {
	told := s.tombstonesOf(key.Kind).has(uid)
	s.tombstonesOf(key.Kind).add(uid, struct{}{})
	old = s.Known(key)
	if old == nil || old.GetUID() != uid {
		if key.Kind == obj.KindVolume && !told {
			s.goneVolumes.add(key.Name, s.goneVolumes.of(key.Name))
		}
		return nil, nil
	}
	named = s.remove(key, old)
	if key.Kind == obj.KindVolume {
		delete(s.hadBefore, key.Name)
	}
	return old, named
}

// remove removes an object that is gone, and returns the claims that a pod named as relinkPod does.
func (s *store) remove(key obj.Key, gone obj.Object) (named []obj.Key) {
	delete(s.objects[key.Kind], key)
	s.relink(key, gone, nil)
	switch key.Kind {
	case obj.KindVolume:
		s.bury(as[*corev1.PersistentVolume](gone))
		delete(s.begun, key.Name)
		delete(s.formerClaims, key.Name)
		delete(s.displaced, key.Name)
		s.index.Delete(key.Name)
	case obj.KindClaim:
		s.endBegun(as[*corev1.PersistentVolumeClaim](gone))
		s.noteGoneClaim(as[*corev1.PersistentVolumeClaim](gone))
		s.index.DeleteClaim(key)
		s.waiting.Delete(key)
		s.notified.Delete(key)
		delete(s.parsedClaims, key)
	case obj.KindPod:
		return s.relinkPod(key, nil)
	case obj.KindClass:
		s.enlistAll(key.Name)
	}
	return nil
}

// relink brings the links up to date for a new version of an object; nil is none.
func (s *store) relink(key obj.Key, old, object obj.Object) {
	switch key.Kind {
	case obj.KindVolume:
		move(&s.volumesByClaim, obj.ReferencedClaim, key, old, object)
	case obj.KindClaim:
		move(&s.claimsByVolume, obj.NamedVolume, key, old, object)
		s.relinkUID(key, uidOf(old), uidOf(object))
	case obj.KindAttachment:
		move(&s.attachmentsByVolume, obj.AttachedVolume, key, old, object)
	}
}

// move lets an object refer to what its new version names.
func move[O obj.Object](links *links, named func(O) obj.Key, key obj.Key, old, object obj.Object) {
	links.move(key, named(as[O](old)), named(as[O](object)))
}

// relinkUID lets a claim be found by the UID of its new version; "" is none.
func (s *store) relinkUID(claim obj.Key, old, uid types.UID) {
	if s.claimsByUID[old] == claim {
		delete(s.claimsByUID, old)
	}
	if uid != "" {
		zeromap.Put(&s.claimsByUID, uid, claim)
	}
}

// Claimant returns the claim that has the UID in the volume's claimRef and names the volume, or none. It does not look at the others that name it: anybody may,
// in as many claims as they like (X9).
func (s *store) Claimant(volume *corev1.PersistentVolume) obj.Key {
	key := s.claimsByUID[uidInClaimRef(volume)]
	if claim := s.claim(key); claim != nil && phase.Claims(claim, volume) {
		return key
	}
	return obj.Key{}
}

// enlist adds the claim to the waiting claims, or removes it if it no longer waits. A notified claim stays among the notified
// ones until its sync ends.
func (s *store) enlist(claim *corev1.PersistentVolumeClaim) {
	list := &s.waiting
	if s.notified.Get(obj.KeyOf(claim)) != nil {
		list = &s.notified
	}
	list.Set(claim, s.searchTerms(claim))
}

// enlistAll lists the claims of a class anew, which wait or do not as the class now says (M11).
func (s *store) enlistAll(class string) {
	for claim := range all[*corev1.PersistentVolumeClaim](s, obj.KindClaim) {
		if storageclass.OfClaim(claim) == class {
			s.enlist(claim)
		}
	}
}

// links is a reverse index: for each key, the keys that refer to it. The zero value is ready to use.
type links map[obj.Key]map[obj.Key]struct{}

// add records that an object refers to another. It does nothing if that is the zero Key.
func (l *links) add(from, to obj.Key) {
	if to == (obj.Key{}) {
		return
	}
	if (*l)[to] == nil {
		zeromap.Put(l, to, map[obj.Key]struct{}{})
	}
	(*l)[to][from] = struct{}{}
}

func (l links) remove(from, to obj.Key) {
	if delete(l[to], from); len(l[to]) == 0 {
		delete(l, to)
	}
}

// move lets an object refer to another than before.
func (l *links) move(from, old, to obj.Key) {
	if old != to {
		l.remove(from, old)
		l.add(from, to)
	}
}

// of returns the objects that refer to an object, in order.
func (l links) of(to obj.Key) []obj.Key {
	return slices.SortedFunc(maps.Keys(l[to]), obj.CompareKeys)
}

// drain removes the keys that refer to an object, and returns them in order.
func (l links) drain(to obj.Key) []obj.Key {
	from := l.of(to)
	delete(l, to)
	return from
}

// Unique returns the keys without those that come a second time.
func Unique(keys []obj.Key) []obj.Key {
	var once []obj.Key
	seen := make(map[obj.Key]struct{}, len(keys))
	for _, key := range keys {
		if _, twice := seen[key]; !twice {
			seen[key] = struct{}{}
			once = append(once, key)
		}
	}
	return once
}

// tombstones are the UIDs, or the names, of objects that are known to be gone, with what there is to know of each, so that a late
// reply or a slow cache does not bring one back. They are kept for the last few thousand deletions, in two generations: a
// reply that is delayed beyond that many deletions is not expected.
type tombstones[ID ~string, Of any] struct {
	young, old map[ID]Of
}

const generation = 4096

func (s *store) tombstonesOf(kind obj.Kind) *tombstones[types.UID, struct{}] {
	if kind == obj.KindPod || kind == obj.KindAttachment {
		return &s.gonePods
	}
	return &s.gone
}

func (t *tombstones[ID, Of]) add(id ID, of Of) {
	if id == "" {
		return // it would stand for every object that has none
	}
	if len(t.young) >= generation {
		t.old, t.young = t.young, nil
	}
	zeromap.Put(&t.young, id, of)
}

// take adds all that others are, in order, and leaves none there.
func (t *tombstones[ID, Of]) take(others *tombstones[ID, Of]) {
	for _, ids := range []map[ID]Of{others.old, others.young} {
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			t.add(id, ids[id])
		}
	}
	*others = tombstones[ID, Of]{}
}

// all returns all of them, in any order.
func (t *tombstones[ID, Of]) all() iter.Seq2[ID, Of] {
	return func(yield func(ID, Of) bool) {
		for _, those := range []map[ID]Of{t.young, t.old} {
			for id, of := range those {
				if !yield(id, of) {
					return
				}
			}
		}
	}
}

// of returns what is known of one that is gone.
func (t *tombstones[ID, Of]) of(id ID) Of {
	if of, young := t.young[id]; young {
		return of
	}
	return t.old[id]
}

func (t *tombstones[ID, Of]) has(id ID) bool {
	_, young := t.young[id]
	_, old := t.old[id]
	return young || old
}

func (t *tombstones[ID, Of]) remove(id ID) {
	delete(t.young, id)
	delete(t.old, id)
}
