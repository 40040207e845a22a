package model_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/internal/judge"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// state is a state of the model's whole world. It is never changed, only copied; what a move leaves as it was is
// shared between a state and the next.
type state struct {
	server  tinyServer
	storage tinyStorage
	tokens  [maxNames]uint8 // the largest that the storage of each volume has seen
	leaders [2]*leader      // the second may be missing
	late    *request        // a write whose sender has given up, and which may still arrive
	asked   bool            // the provisioner has seen that the claim asked for it
	people  uint8           // what people may still do
	faults  uint8           // what may still go wrong
	pauses  uint8           // of a leader, so long that another may take over
	lies    uint8           // reads that may still be told NotFound
	travel  travel
	backup  *tinyServer // where it is BackedUp
	data    [maxNames]judge.Data
}

// leader is a controller of the model. Two of them are an old leader that has not noticed and a new one.
type leader struct {
	state   *engine.State
	name    string // with how often it has started
	starts  int
	first   [len(watched)][]change // of the list that it began with: not seen yet
	seen    [len(watched)]int      // of the server's log
	queue   nameSet
	running [maxNames]*request
	inDoubt nameSet // what it wrote without hearing of it, and has not read since

	delayed nameSet // what it will sync again after a delay, though nothing failed
	due     nameSet // of that, where something was written since

	resyncDue bool    // the server was restored, and its caches were not compared since
	mayNotice bool    // a list may still tell it of that
	noticed   uint8   // how often it has noticed it
	unread    nameSet // what it knew then and has not read since
}

// request is what a sync under way has decided to do, and the answer once there is one. It is never changed either.
type request struct {
	action  decision.Action
	target  int
	content uint32 // of what it writes or calls a hook with; zero if it reads
	version uint8
	token   uint8   // on what it writes or calls a hook with
	reads   nameSet // in this sync, since its last write
	failed  bool    // a hook of this sync did, or nobody knows: the sync is to be repeated
	answer  *answer
	outrun  bool  // the server was restored after the first of these reads
	noticed uint8 // how often its leader had noticed a restore when it was sent
}

// nameSet is a set of names, a bit for each.
type nameSet uint16

func nameAt(at int) nameSet { return 1 << at }

func (p nameSet) has(at int) bool { return p&nameAt(at) != 0 }

// each yields the names, in order.
func (p nameSet) each(yield func(int) bool) {
	for ; p != 0; p &= p - 1 {
		if !yield(bits.TrailingZeros16(uint16(p))) {
			return
		}
	}
}

// next returns the change of a kind that the leader is told of next; false if there is none.
func (l *leader) next(s *tinyServer, kind int) (change, bool) {
	if len(l.first[kind]) > 0 {
		return l.first[kind][0], true
	}
	if l.seen[kind] < len(s.log[kind]) {
		return s.log[kind][l.seen[kind]], true
	}
	return change{}, false
}

// pending returns all changes of a kind that the leader has not been told of.
func (l *leader) pending(s *tinyServer, kind int, yield func(change)) {
	for _, told := range l.first[kind] {
		yield(told)
	}
	for _, told := range s.log[kind][l.seen[kind]:] {
		yield(told)
	}
}

// busy returns how many syncs are under way.
func (l *leader) busy() (n int) {
	for _, running := range l.running {
		if running != nil {
			n++
		}
	}
	return n
}

// awaitsCalls reports whether a leader has something to do after the calls of others.
func (s *state) awaitsCalls() bool {
	return slices.ContainsFunc(s.leaders[:], func(l *leader) bool { return l != nil && l.state.AwaitsCalls() && l.delayed != 0 })
}

// call returns the call of a hook that the leader is paused in, or right before; nil if there is none.
func (l *leader) call() *request {
	for _, running := range l.running {
		if running != nil && running.answer == nil && running.action.RunsHook() {
			return running
		}
	}
	return nil
}

func (l *leader) calls() bool { return l.call() != nil }

// begin returns a leader that knows nothing yet, and is going to be told what the server has now.
func begin(s *tinyServer, rules decision.Options, who, starts int) *leader {
	rules.Identity = fmt.Sprintf("%s-%d", leaderNames[who], starts)
	l := &leader{state: engine.New(Unprotected(rules), 10), name: rules.Identity, starts: starts}
	l.state.SetTime(s.now())
	for kind := range watched {
		l.seen[kind] = len(s.log[kind])
		for at, stored := range s.objects {
			if stored != nil && s.revisions.keys[at].Kind == watched[kind] {
				l.first[kind] = append(l.first[kind], change{revision: stored})
			}
		}
	}
	return l
}

func (l *leader) clone() *leader {
	copied := *l
	copied.state = l.state.Clone()
	return &copied
}

// revision is one version of an object, as the model's server stores it and hands it to everybody. There is one for
// each content and version, so that two worlds that came about differently share it.
type revision struct {
	object  obj.Object
	copy    obj.Object // never handed out, to compare with (X6)
	at      int        // its name, as an index into revisions.keys
	content uint32     // all of it but the resourceVersion
	token   uint8      // of its announcement; zero if it has none
	version uint8      // its resourceVersion: the number of the write, counted for this name alone
}

// revisions keeps all versions of all objects that a model has come across, and their names.
//
// The names are few and known beforehand. UIDs are made of the name and the number of its creations, and
// resourceVersions count the writes of one name, so that neither tells in which order different objects were
// written: nothing compares those.
type revisions struct {
	keys      []obj.Key
	index     map[obj.Key]int
	contents  map[string]uint32    // by what the API would send
	stored    map[uint64]*revision // by content and version
	byPointer map[obj.Object]*revision
	scratch   []byte
}

func newRevisions(keys []obj.Key) *revisions {
	t := &revisions{keys: keys, index: map[obj.Key]int{}, contents: map[string]uint32{}, stored: map[uint64]*revision{}, byPointer: map[obj.Object]*revision{}}
	for i, key := range keys {
		t.index[key] = i
	}
	return t
}

// indexOf returns where the key stands among the names; it must be one of them.
func (t *revisions) indexOf(key obj.Key) int {
	at, ok := t.index[key]
	if !ok {
		panic("the model has no name " + key.String())
	}
	return at
}

// keep returns the revision that the object is from now on.
func (t *revisions) keep(at int, object obj.Object, version uint8) *revision {
	content := t.contentOf(object)
	token := tokenOn(object)
	id := uint64(content)<<16 | uint64(token)<<8 | uint64(version)
	if known := t.stored[id]; known != nil {
		return known
	}
	object = object.DeepCopyObject().(obj.Object)
	object.SetResourceVersion("")
	if version > 0 { // else it is not stored
		object.SetResourceVersion(strconv.Itoa(int(version)))
	}
	made := &revision{object: object, copy: object.DeepCopyObject().(obj.Object), at: at, content: content, token: token, version: version}
	t.stored[id], t.byPointer[object] = made, made
	return made
}

// of returns the revision that the object is. One that the model did not make is as good as one with its content.
func (t *revisions) of(object obj.Object) *revision {
	if known := t.byPointer[object]; known != nil {
		return known
	}
	key := keyOfAny(object)
	version, _ := strconv.Atoi(object.GetResourceVersion())
	return &revision{object: object, at: t.indexOf(key), content: t.contentOf(object), token: tokenOn(object), version: uint8(version)}
}

// tokenOn returns the token of the announcement on the object; zero if it has none.
func tokenOn(object obj.Object) uint8 {
	announcement, _ := reclaim.AnnouncementOf(object)
	return tokenOf(announcement.Token)
}

// tokenOf returns a token of the model, whose clock counts writes.
func tokenOf(token int64) uint8 {
	if token > 255 {
		panic("too large a token")
	}
	return uint8(token)
}

// withoutToken returns the annotations without the token in an announcement.
func withoutToken(annotations map[string]string) map[string]string {
	text, announced := annotations[reclaim.AnnouncementAnnotation]
	if !announced {
		return annotations
	}
	bare := maps.Clone(annotations)
	var announcement reclaim.Announcement
	if json.Unmarshal([]byte(text), &announcement) == nil {
		announcement.Token = 0
		bare[reclaim.AnnouncementAnnotation] = announcement.String()
	}
	return bare
}

// contentOf numbers what an object says, but for its resourceVersion, the one in its claimRef, which nothing
// reads, and the token of its announcement.
func (t *revisions) contentOf(object obj.Object) uint32 {
	var size int
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		bare := *o
		bare.ResourceVersion, bare.Annotations = "", withoutToken(o.Annotations)
		if o.Spec.ClaimRef != nil {
			ref := *o.Spec.ClaimRef
			ref.ResourceVersion = ""
			bare.Spec.ClaimRef = &ref
		}
		size = t.marshal('v', &bare)
	case *corev1.PersistentVolumeClaim:
		bare := *o
		bare.ResourceVersion, bare.Annotations = "", withoutToken(o.Annotations)
		size = t.marshal('c', &bare)
	case *storagev1.StorageClass:
		bare := *o
		bare.ResourceVersion = ""
		size = t.marshal('s', &bare)
	case *corev1.Pod:
		bare := *o
		bare.ResourceVersion = ""
		size = t.marshal('p', &bare)
	case *storagev1.VolumeAttachment:
		bare := *o
		bare.ResourceVersion = ""
		size = t.marshal('a', &bare)
	}
	text := t.scratch[:size]
	if known, ok := t.contents[string(text)]; ok {
		return known
	}
	number := uint32(len(t.contents) + 1) // zero is no object
	t.contents[string(text)] = number
	return number
}

type marshaler interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// marshal puts into the scratch what the API would send, after a letter for the kind.
func (t *revisions) marshal(kind byte, object marshaler) int {
	size := object.Size() + 1
	t.scratch = slices.Grow(t.scratch[:0], size)[:size]
	t.scratch[0] = kind
	if _, err := object.MarshalToSizedBuffer(t.scratch[1:]); err != nil {
		panic(err)
	}
	return size
}

// modified returns the objects that somebody has written into though they are shared (X6).
func (t *revisions) modified() (found []*revision) {
	for _, thing := range t.stored {
		if !reflect.DeepEqual(thing.object, thing.copy) {
			found = append(found, thing)
		}
	}
	return found
}

// versions is a set of versions of one name.
type versions [4]uint64

func (v *versions) add(version uint8) { v[version>>6] |= 1 << (version & 63) }

// rank returns how many versions in the set are older.
func (v *versions) rank(version uint8) byte {
	older := bits.OnesCount64(v[version>>6] & (1<<(version&63) - 1))
	for _, word := range v[:version>>6] {
		older += bits.OnesCount64(word)
	}
	return byte(older)
}
