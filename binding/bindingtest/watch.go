package bindingtest

import (
	"slices"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/pvbind/pvbind/binding/obj"
)

// ChangeType says what happened to an object.
type ChangeType = watch.EventType

const (
	Added    ChangeType = watch.Added
	Modified ChangeType = watch.Modified
	Deleted  ChangeType = watch.Deleted
)

// Change is one change of an object, as a watcher sees it.
type Change struct {
	Type ChangeType
	// Object is the new state; of a deleted object the last state, with the deletion's resourceVersion.
	Object obj.Object

	serial int
}

// Watch reads the changes of one kind, at the reader's own pace. Nothing happens between two calls of
// Next, so a test decides how far a cache lags. It is not safe for concurrent use.
type Watch struct {
	server *Server
	kind   obj.Kind
	first  []Change // the objects that were there at the start
	cursor int
}

// Watch begins with the objects of that kind that exist now, as Added, and goes on with what changes.
func (s *Server) Watch(kind obj.Kind) *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &Watch{server: s, kind: kind, cursor: s.dropped[kind] + len(s.changes[kind])}
	for _, stored := range s.objects[kind] {
		w.first = append(w.first, Change{Type: Added, Object: stored.object, serial: stored.serial})
	}
	slices.SortFunc(w.first, func(a, b Change) int { return a.serial - b.serial })
	return w
}

// Changed returns a channel that is closed with the next change of any object. Who waits for one takes the channel first, reads
// its watches, and waits then.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// On continues this watch on a copy of its server.
func (w *Watch) On(clone *Server) *Watch {
	return &Watch{server: clone, kind: w.kind, first: slices.Clip(w.first), cursor: w.cursor}
}

// Next returns the next change; false if there is none yet.
func (w *Watch) Next() (Change, bool) {
	change, ok := w.peek()
	if !ok {
		return Change{}, false
	}
	if len(w.first) > 0 {
		w.first = w.first[1:]
	} else {
		w.cursor++
	}
	change.Object = copyOf(change.Object)
	return change, true
}

// Pending returns the number of changes not read yet.
func (w *Watch) Pending() int {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return len(w.first) + w.server.dropped[w.kind] + len(w.server.changes[w.kind]) - w.cursor
}

func (w *Watch) peek() (Change, bool) {
	if len(w.first) > 0 {
		return w.first[0], true
	}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	changes, at := w.server.changes[w.kind], w.cursor-w.server.dropped[w.kind]
	if at < len(changes) {
		return changes[at], true
	}
	return Change{}, false
}
