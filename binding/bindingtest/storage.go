package bindingtest

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
)

var (
	_ binding.Provisioner = (*Storage)(nil)
	_ binding.Deleter     = (*Storage)(nil)
	_ binding.Recycler    = (*Storage)(nil)
)

// Storage is a fake of whatever keeps the data of volumes: hooks for a controller, and a record of what they
// did. It keeps the contract of the hooks (rule Rh) unless a StorageHook makes it break it. At the end of a test
// Problems tells what went wrong.
//
// Make one with NewStorage. It may be used from many goroutines at once; the same calls in the same order have
// the same effects.
type Storage struct {
	mu       sync.Mutex
	server   *Server
	kept     map[string]Kept // by the name of the volume
	known    map[string]bool // the volumes for which storage was ever there
	deleted  map[string]mark // the last deletion that was answered with success, by the name of the volume
	calls    []*StorageCall
	hooks    []StorageHook
	restarts int
	problems []string
}

// Content is what is on the storage of a volume.
type Content string

const (
	Blank    Content = ""
	Written  Content = "Written"  // somebody wrote data
	Scrubbed Content = "Scrubbed" // a recycler removed it
)

// Kept is the storage of one volume.
type Kept struct {
	// Volume is the name of the volume, stored or about to be.
	Volume string
	// Claim is the claim that it was made for; "" for what Add put there.
	Claim types.UID
	// Node is where it is; "" if everywhere.
	Node    string
	Size    resource.Quantity
	Content Content
}

// NewStorage returns a storage with nothing on it.
func NewStorage() *Storage {
	return &Storage{kept: map[string]Kept{}, known: map[string]bool{}, deleted: map[string]mark{}}
}

// Hooks are those of a controller that makes and deletes all volumes of the provisioner with this storage, and
// deletes and recycles those of these sources, such as "hostPath", that a person made.
func (s *Storage) Hooks(provisioner string, sources ...string) binding.Hooks {
	hooks := binding.Hooks{
		Provisioners:   map[string]binding.Provisioner{provisioner: s},
		Deleters:       map[string]binding.Deleter{provisioner: s},
		SourceDeleters: map[string]binding.Deleter{},
		Recyclers:      map[string]binding.Recycler{},
	}
	for _, source := range sources {
		hooks.SourceDeleters[source], hooks.Recyclers[source] = s, s
	}
	return hooks
}

// Attach tells the storage which server has the volumes, so that it knows what is in use. A Driver attaches
// those among its hooks by itself.
func (s *Storage) Attach(server *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
}

// Restarted tells that a controller has lost its memory and may ask again for what it was answered before. A
// Driver that restarts tells those among its hooks by itself.
func (s *Storage) Restarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarts++
}

// Add puts the storage of a volume there that a person made.
func (s *Storage) Add(volume *corev1.PersistentVolume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(Kept{Volume: volume.Name, Size: volume.Spec.Capacity[corev1.ResourceStorage]})
}

func (s *Storage) put(kept Kept) {
	s.kept[kept.Volume] = kept
	s.known[kept.Volume] = true
	delete(s.deleted, kept.Volume)
}

// Write writes data onto the storage of a volume, as a pod would, and reports whether there is such storage.
func (s *Storage) Write(volume string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, ok := s.kept[volume]
	if ok {
		kept.Content = Written
		s.kept[volume] = kept
	}
	return ok
}

// Kept is the storage that exists, sorted by the name of the volume.
func (s *Storage) Kept() []Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.kept), func(a, b Kept) int { return cmp.Compare(a.Volume, b.Volume) })
}

// Clone is a copy that goes its own way from here on, without hooks and not attached to a server.
func (s *Storage) Clone() *Storage {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := NewStorage()
	c.kept, c.known, c.deleted = maps.Clone(s.kept), maps.Clone(s.known), maps.Clone(s.deleted)
	c.restarts, c.problems = s.restarts, slices.Clone(s.problems)
	for _, call := range s.calls {
		copied := *call
		c.calls = append(c.calls, &copied)
	}
	return c
}

// storagesIn are the fakes among the hooks, each once.
func storagesIn(hooks binding.Hooks) []*Storage {
	var found []*Storage
	note := func(hook any) {
		if storage, ok := hook.(*Storage); ok && !slices.Contains(found, storage) {
			found = append(found, storage)
		}
	}
	for _, hook := range hooks.Provisioners {
		note(hook)
	}
	for _, deleters := range []map[string]binding.Deleter{hooks.Deleters, hooks.SourceDeleters} {
		for _, hook := range deleters {
			note(hook)
		}
	}
	for _, hook := range hooks.Recyclers {
		note(hook)
	}
	return found
}
