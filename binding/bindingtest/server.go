package bindingtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

var (
	_ binding.Client   = (*Server)(nil)
	_ binding.Recorder = (*Server)(nil)

	_ binding.AttachmentLister = (*Server)(nil)
)

// Server is an API server in memory for volumes, claims, classes, pods, nodes, CSINodes and attachments (rules A1 to A6).
// Make one with NewServer. It may be used from many goroutines at once.
//
// Everything about it is deterministic: the clock starts at a fixed time and advances one second with
// each write, UIDs and generated names are numbered by the write that made them, and resourceVersions
// are the number of the write. The same calls in the same order give the same objects.
//
// What goes in and what comes out are copies, without TypeMeta, as from a typed client.
type Server struct {
	verbs

	mu      sync.Mutex
	objects stores
	version uint64 // of the last write
	now     time.Time
	changes map[obj.Kind][]Change
	dropped map[obj.Kind]int // the number of changes that were forgotten
	serial  int              // number of changes so far, of all kinds
	calls   []*Call
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// NewServer returns a server with these objects in it. Objects with a UID are loaded as they stand (see Load); after them the others
// are created, in their order. It panics if the server refuses one.
func NewServer(objects ...obj.Object) *Server {
	s := newServer()
	if err := s.fill(objects); err != nil {
		panic(fmt.Sprintf("bindingtest.NewServer: %v", err))
	}
	return s
}

func newServer() *Server {
	s := &Server{
		objects: stores{},
		now:     time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC),
		changes: map[obj.Kind][]Change{},
		dropped: map[obj.Kind]int{},
	}
	s.verbs.perform = s.perform
	return s
}

func (s *Server) fill(objects []obj.Object) error {
	var running, fresh []obj.Object
	for _, object := range objects {
		if object.GetUID() != "" {
			running = append(running, object)
		} else {
			fresh = append(fresh, object)
		}
	}
	if err := s.Load(running...); err != nil {
		return err
	}
	for _, object := range fresh {
		if _, err := s.Create(context.Background(), object); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) itself() *Server { return s }

// Clone returns a copy of the server that goes its own way from here on. It costs little: the two share what
// neither will modify.
func (s *Server) Clone() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newServer()
	c.objects, c.version, c.now, c.serial = s.objects.clone(), s.version, s.now, s.serial
	for kind, changes := range s.changes {
		c.changes[kind], c.dropped[kind] = slices.Clip(changes), s.dropped[kind]
	}
	c.calls = slices.Clip(s.calls)
	return c
}

// Forget drops the calls and the changes so far, so that a server that runs for long needs memory for its objects alone. Every
// watch must have read its changes. CallsSince counts from here.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
	for kind, changes := range s.changes {
		s.dropped[kind] += len(changes)
		delete(s.changes, kind)
	}
}

// Now returns the time on the server's clock, that of the last write.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// advance lets time pass.
func (s *Server) advance(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(by)
}

// Volume returns the volume; nil if there is none. It is not in the log of calls.
func (s *Server) Volume(name string) *corev1.PersistentVolume {
	volume, _ := s.look(obj.VolumeKey(name)).(*corev1.PersistentVolume)
	return volume
}

// Claim returns the claim; nil if there is none. It is not in the log of calls.
func (s *Server) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	claim, _ := s.look(obj.ClaimKey(namespace, name)).(*corev1.PersistentVolumeClaim)
	return claim
}

func (s *Server) node(name string) *corev1.Node {
	node, _ := s.look(obj.Key{Kind: obj.KindNode, Name: name}).(*corev1.Node)
	return node
}

func (s *Server) csiNode(name string) *storagev1.CSINode {
	node, _ := s.look(obj.Key{Kind: obj.KindCSINode, Name: name}).(*storagev1.CSINode)
	return node
}

func (s *Server) look(key obj.Key) obj.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return copyOf(s.objects.get(key).object)
}

// tick begins a write: the clock and the version advance.
func (s *Server) tick() {
	s.version++
	s.now = s.now.Add(time.Second)
}

// next returns the time of the write that is being prepared.
func (s *Server) next() *metav1.Time { return &metav1.Time{Time: s.now.Add(time.Second)} }

// store puts the object in place on the current version and tells the watchers.
func (s *Server) store(key obj.Key, object obj.Object, change ChangeType) {
	object.SetResourceVersion(strconv.FormatUint(s.version, 10))
	s.put(key, object, change)
}

func (s *Server) put(key obj.Key, object obj.Object, change ChangeType) {
	s.tell(key.Kind, object, change)
	s.objects.put(key, stored{object, s.serial})
}

// remove drops the object. Watchers get its last state, on the version of the deletion.
func (s *Server) remove(key obj.Key) {
	last := copyOf(s.objects.get(key).object)
	last.SetResourceVersion(strconv.FormatUint(s.version, 10))
	delete(s.objects[key.Kind], key)
	s.tell(key.Kind, last, Deleted)
}

func (s *Server) tell(kind obj.Kind, object obj.Object, change ChangeType) {
	s.serial++
	s.changes[kind] = append(s.changes[kind], Change{Type: change, Object: object, serial: s.serial})
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// stores are the objects of a server by kind, so that what looks for those of one kind does not meet the
// others. The objects in here are never modified, only replaced, so that copies of the server share them.
type stores map[obj.Kind]map[obj.Key]stored

type stored struct {
	object obj.Object
	serial int // of the change that made it so
}

// uid returns that of the object; "" if there is none.
func (s stored) uid() types.UID {
	if s.object == nil {
		return ""
	}
	return s.object.GetUID()
}

func (s stores) get(key obj.Key) stored { return s[key.Kind][key] }

func (s stores) put(key obj.Key, object stored) {
	if s[key.Kind] == nil {
		s[key.Kind] = map[obj.Key]stored{}
	}
	s[key.Kind][key] = object
}

func (s stores) len() (n int) {
	for _, ofKind := range s {
		n += len(ofKind)
	}
	return n
}

func (s stores) clone() stores {
	c := make(stores, len(s))
	for kind, ofKind := range s {
		c[kind] = maps.Clone(ofKind)
	}
	return c
}

func (s *Server) get(call *Call) error {
	if err := knownKind(call.Key.Kind); err != nil {
		return err
	}
	found, ok := s.objects[call.Key.Kind][call.Key]
	if !ok {
		return notFound(call.Key)
	}
	call.answer = found.object
	return nil
}

func (s *Server) list(call *Call) error {
	if err := knownKind(call.Key.Kind); err != nil {
		return err
	}
	for key, stored := range s.objects[call.Key.Kind] {
		if call.Key.Namespace == "" || call.Key.Namespace == key.Namespace {
			call.list = append(call.list, stored.object)
		}
	}
	slices.SortFunc(call.list, byName)
	return nil
}

// byName returns the order of the objects of a kind.
func byName(a, b obj.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func knownKind(kind obj.Kind) error {
	if _, ok := infoOf(kind); !ok {
		return apierrors.NewBadRequest("bindingtest: the server has no kind " + string(kind))
	}
	return nil
}

func notFound(key obj.Key) error {
	info, _ := infoOf(key.Kind)
	return apierrors.NewNotFound(info.groupResource(), key.Name)
}

// compareKeys orders keys as they are printed: volumes before claims.
func compareKeys(a, b obj.Key) int { return cmp.Compare(a.String(), b.String()) }

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects.len()
}
