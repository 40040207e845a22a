package model_test

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/obj"
)

// fingerprint is the hash of a state. Of the 128 bits, two of ten million different states share all with a chance
// of less than one in 10^24.
type fingerprint [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// print returns the fingerprint of a state. Two states have the same if they differ in names only that nobody can
// tell apart:
//
//   - resourceVersions count by their order among those of the same name, for that and equality is all that the
//     server and the controllers ever ask of them, and the next one is newer than all;
//   - the two leaders count without their order, for they run the same code on the same rules, unless an announcement has their names;
//   - tokens count by their order, for the next one is larger than all;
//   - the resourceVersion in a claimRef and all times do not count, for nothing reads them;
//   - of the changes of a kind, those that everybody has been told of do not count.
//
// The names of volumes and claims do count: decisions break ties by name (M13, W1), so that two worlds that differ
// by swapped names need not have the same future.
func (m *model) print(now *state) fingerprint {
	n := &m.notes
	n.start(m.revisions)
	n.named = now.announced()
	n.server(&now.server, now.travel)
	if now.backup != nil {
		n.server(now.backup, now.travel)
	}
	n.bytes(now.people, now.faults, now.pauses, now.lies, byte(btoi(now.asked)))
	n.Text(string(now.travel))
	for at := range m.keys {
		n.bytes(byte(btoi(now.data[at].Freed)))
		n.Text(string(now.data[at].Of))
		n.Text(now.data[at].For.Namespace)
		n.Text(now.data[at].For.Name)
	}
	n.names(now.storage.kept)
	n.names(now.storage.written)
	n.names(now.storage.begun)
	n.names(now.storage.left)
	n.names(now.storage.told)
	n.names(now.storage.excused)
	n.names(now.storage.given)
	for at := range m.keys {
		n.Token(int64(now.tokens[at]))
	}
	n.request(now.late)
	var bounds [3]int
	for who, l := range now.leaders {
		bounds[who] = len(n.text)
		if l != nil {
			n.leader(now, l)
		}
	}
	bounds[2] = len(n.text)
	n.rank()
	first, second := n.text[bounds[0]:bounds[1]], n.text[bounds[1]:bounds[2]]
	if bytes.Compare(first, second) > 0 {
		n.swapped = append(append(append(n.swapped[:0], n.text[:bounds[0]]...), second...), first...)
		return fingerprintOf(n.swapped)
	}
	return fingerprintOf(n.text)
}

// announced reports whether there is an announcement anywhere in the state, which names a leader.
func (s *state) announced() bool {
	for _, stored := range s.server.objects {
		if stored != nil && stored.token > 0 {
			return true
		}
	}
	if s.late.announces() {
		return true
	}
	for _, l := range s.leaders {
		if l != nil && l.announced(&s.server) {
			return true
		}
	}
	return false
}

func (l *leader) announced(s *tinyServer) (found bool) {
	for kind := range watched {
		l.pending(s, kind, func(told change) { found = found || told.token > 0 })
	}
	for _, running := range l.running {
		found = found || running.announces()
	}
	return found || l.state.SeesAnnouncements()
}

func (e *request) announces() bool {
	return e != nil && (e.token > 0 || e.action.Token > 0 || e.answer != nil && e.answer.got != nil && e.answer.got.token > 0)
}

func fingerprintOf(text []byte) fingerprint {
	return fingerprint{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// notes encodes a state as bytes. Versions are put in as they are, and ranked when all are known.
type notes struct {
	revisions *revisions
	named     bool // leaders count by their names
	text      []byte
	swapped   []byte
	ranks     []ranked
	versions  [maxNames + 1]versions // and, last, of tokens
	mentioned []types.UID
	states    []fingerprint // of what each leader remembers, with the versions as they are
}

// ranked is a version in the text.
type ranked struct {
	offset int
	at     int
}

var _ engine.Notebook = &notes{}

func (n *notes) start(things *revisions) {
	n.revisions, n.text, n.ranks, n.states = things, n.text[:0], n.ranks[:0], n.states[:0]
	clear(n.versions[:])
}

func (n *notes) names(p nameSet) { n.bytes(byte(p), byte(p>>8)) }

func (n *notes) bytes(b ...byte) { n.text = append(n.text, b...) }

func (n *notes) version(at int, version uint8) {
	n.versions[at].add(version)
	n.ranks = append(n.ranks, ranked{len(n.text), at})
	n.text = append(n.text, version)
}

func (n *notes) rank() {
	for _, r := range n.ranks {
		n.text[r.offset] = n.versions[r.at].rank(n.text[r.offset])
	}
}

func (n *notes) revision(t *revision) {
	if t == nil {
		n.bytes(0, 0, 0)
		return
	}
	n.bytes(byte(t.content), byte(t.content>>8), byte(t.content>>16))
	n.version(t.at, t.version)
	n.Token(int64(t.token))
}

// server writes a server down. The next version of a name is newer than all, unless the server went back.
func (n *notes) server(s *tinyServer, travel travel) {
	for at := range n.revisions.keys {
		n.revision(s.objects[at])
		n.bytes(s.created[at])
		if travel == backedUp || travel == wentBack {
			n.version(at, s.written[at])
		}
	}
}

func (n *notes) leader(now *state, l *leader) {
	s := &now.server
	n.mentioned = n.mentioned[:0]
	if now.backup != nil { // they may come back
		for _, stored := range now.backup.objects {
			if stored != nil {
				n.mentioned = append(n.mentioned, stored.object.GetUID())
			}
		}
	}
	for kind := range watched {
		l.pending(s, kind, func(told change) {
			n.bytes(1, byte(btoi(told.deleted)))
			n.revision(told.revision)
			n.mentioned = append(n.mentioned, told.object.GetUID())
		})
		n.bytes(0)
	}
	n.names(l.queue)
	n.names(l.inDoubt)
	n.names(l.unread)
	n.names(l.delayed)
	n.names(l.due)
	n.bytes(byte(btoi(l.resyncDue)), byte(btoi(l.mayNotice)), l.noticed)
	if n.named { // it may have announced something
		n.Text(l.name)
	}
	from := len(n.text) // the state has in it what each sync waits for
	for at := range n.revisions.keys {
		n.request(l.running[at])
	}
	for at := range n.revisions.keys {
		if s.objects[at] != nil {
			n.mentioned = append(n.mentioned, s.objects[at].object.GetUID())
		}
	}
	l.state.Describe(n, n.revisions.keys, n.mentioned)
	for _, uid := range n.mentioned {
		n.Text(string(uid))
	}
	n.bytes(s.created[:]...) // the UIDs that are not known to be gone, for they are to come
	n.states = append(n.states, fingerprintOf(n.text[from:]))
}

func (n *notes) request(e *request) {
	if e == nil {
		n.bytes(0)
		return
	}
	n.bytes(1, byte(e.target), byte(e.content), byte(e.content>>8), byte(e.content>>16), byte(btoi(e.failed)), byte(btoi(e.outrun)), e.noticed)
	n.names(e.reads)
	n.Text(string(e.action.Kind))
	n.Text(e.action.Hook)
	n.Text(e.action.Rule)
	n.Token(tokenSent(e.action))
	if e.content != 0 {
		n.version(e.target, e.version)
		n.Token(int64(e.token))
	}
	for _, event := range e.action.Events {
		n.Key(event.On)
		n.Text(string(event.Reason))
		n.Text(event.Message)
	}
	n.bytes(0xfe, byte(btoi(e.answer != nil)))
	if e.answer == nil {
		return
	}
	n.Text(string(e.answer.fail))
	n.bytes(byte(btoi(e.answer.lied)))
	n.revision(e.answer.got)
	n.bytes(byte(len(e.answer.listed)))
	for _, listed := range e.answer.listed {
		n.revision(listed)
	}
	if e.answer.got != nil {
		n.mentioned = append(n.mentioned, e.answer.got.object.GetUID())
	}
}

// What follows implements engine.Notebook.

func (n *notes) Number(number int) { n.bytes(byte(number)) }

func (n *notes) Key(key obj.Key) {
	if key == (obj.Key{}) {
		n.bytes(0xff)
		return
	}
	n.bytes(byte(n.revisions.indexOf(key)))
}

func (n *notes) KeySet(set map[obj.Key]struct{}) {
	var all nameSet
	for key := range set {
		all |= nameAt(n.revisions.indexOf(key))
	}
	n.names(all)
}

func (n *notes) Object(object obj.Object) {
	if object == nil {
		n.revision(nil)
		return
	}
	n.revision(n.revisions.of(object))
}

func (n *notes) Version(of obj.Key, version string) {
	number := 0
	for _, digit := range []byte(version) {
		number = number*10 + int(digit-'0')
	}
	n.version(n.revisions.indexOf(of), uint8(number))
}

// Token writes a token down, so that its order among all others counts alone: the next one is larger than all.
func (n *notes) Token(token int64) {
	if n.bytes(byte(btoi(token > 0))); token > 0 {
		n.version(maxNames, tokenOf(token))
	}
}

func (n *notes) Text(text string) {
	n.text = binary.LittleEndian.AppendUint64(n.text, maphash.String(seeds[0], text))
}
