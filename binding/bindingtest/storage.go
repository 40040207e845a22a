package bindingtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

var (
	_ hooks.Provisioner = (*Storage)(nil)
	_ hooks.Deleter     = (*Storage)(nil)
	_ hooks.Recycler    = (*Storage)(nil)
)

// Storage is a fake of whatever keeps the data of volumes: hooks for a controller, and a record of what they
// did. It keeps the contract of the hooks (rule Rh) unless a StorageHook makes it break it. At the end of a test
// Problems tells what went wrong.
//
// It remembers the largest token of each volume, as storage should, and refuses a smaller one; see IgnoreTokens.
//
// Make one with NewStorage. It may be used from many goroutines at once; the same calls in the same order have
// the same effects.
type Storage struct {
	mu       sync.Mutex
	server   *Server
	kept     map[string]Kept    // by the name of the volume
	known    map[string]bool    // the volumes for which storage was ever there
	deleted  map[string]instant // the last deletion that was answered with success, by the name of the volume
	tokens   map[string]int64   // the largest token of a call, by the name of the volume
	forgets  bool               // it cannot refuse older tokens
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
	// Node is the one that it was made for; "" if for any.
	Node    string
	Size    resource.Quantity
	Content Content
}

// NewStorage returns a storage with nothing on it.
func NewStorage() *Storage {
	return &Storage{kept: map[string]Kept{}, known: map[string]bool{}, deleted: map[string]instant{}, tokens: map[string]int64{}}
}

// Hooks returns those of a controller that makes and deletes all volumes of the provisioner with this storage, and
// deletes and recycles those of these sources, such as "hostPath", that a person made.
func (s *Storage) Hooks(provisioner string, sources ...string) hooks.Set {
	set := hooks.Set{
		Provisioners:   map[string]hooks.Provisioner{provisioner: s},
		Deleters:       map[string]hooks.Deleter{provisioner: s},
		SourceDeleters: map[string]hooks.Deleter{},
		Recyclers:      map[string]hooks.Recycler{},
	}
	for _, source := range sources {
		set.SourceDeleters[source], set.Recyclers[source] = s, s
	}
	return set
}

// Attach sets the server that has the volumes, by which Problems sees what is in use. A Driver attaches
// those among its hooks by itself.
func (s *Storage) Attach(server *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
}

// IgnoreTokens makes it a storage that does not refuse a call with a smaller token than an earlier one had for the same
// volume (R8). It is for tests of what remains then.
func (s *Storage) IgnoreTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets = true
}

// Restarted notes that a controller has lost its memory and may repeat calls that were answered before. A
// Driver that restarts does so by itself for those among its hooks.
func (s *Storage) Restarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarts++
}

// Add adds the storage of a volume that a person made.
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

// Kept returns the storage that exists, sorted by the name of the volume.
func (s *Storage) Kept() []Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.kept), func(a, b Kept) int { return cmp.Compare(a.Volume, b.Volume) })
}

// Clone returns a copy that goes its own way from here on, without hooks and not attached to a server.
func (s *Storage) Clone() *Storage {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := NewStorage()
	c.kept, c.known, c.deleted = maps.Clone(s.kept), maps.Clone(s.known), maps.Clone(s.deleted)
	c.tokens, c.forgets = maps.Clone(s.tokens), s.forgets
	c.restarts, c.problems = s.restarts, slices.Clone(s.problems)
	for _, call := range s.calls {
		copied := *call
		c.calls = append(c.calls, &copied)
	}
	return c
}

// storagesIn returns the fakes among the hooks, each once.
func storagesIn(set hooks.Set) []*Storage {
	var found []*Storage
	note := func(hook any) {
		if storage, ok := hook.(*Storage); ok && !slices.Contains(found, storage) {
			found = append(found, storage)
		}
	}
	for _, hook := range set.Provisioners {
		note(hook)
	}
	for _, deleters := range []map[string]hooks.Deleter{set.Deleters, set.SourceDeleters} {
		for _, hook := range deleters {
			note(hook)
		}
	}
	for _, hook := range set.Recyclers {
		note(hook)
	}
	return found
}

// Provision makes the storage for a claim, of the size asked for. Storage that was made for the claim before is returned as it is.
//
// The volume looks as that of a CSI driver: a CSI source with driver and handle and, on a request for a node, an affinity to that
// node's topology, as a CSINode says, or else to its zone, or else to the node itself. An in-tree provisioner's has a path. Nodes
// are those of the server that the storage is attached to.
func (s *Storage) Provision(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	if server == nil {
		server = newServer()
	}
	return s.provision(ctx, request, server)
}

func (s *Storage) provision(ctx context.Context, request hooks.ProvisionRequest, nodes nodes) (*corev1.PersistentVolume, error) {
	name := request.Volume.Name
	call := &StorageCall{Verb: StorageProvision, Volume: name, Claim: request.Claim.UID, Node: request.Node, Token: request.Token}
	var made Kept
	err := s.perform(ctx, call, func() StorageEffect {
		kept, there := s.kept[name]
		if !there {
			kept = Kept{name, request.Claim.UID, request.Node, request.Volume.Spec.Capacity[corev1.ResourceStorage], Blank}
			s.put(kept)
		}
		made = kept
		if there {
			return StorageUnchanged
		}
		return StorageMade
	})
	if err != nil {
		return nil, err
	}
	volume := request.Volume.DeepCopy()
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: made.Size}
	driver := volume.Annotations[phase.ProvisionedByAnnotation]
	setSource(volume, driver)
	volume.Spec.NodeAffinity = affinityTo(topologyOf(driver, made.Node, nodes))
	return volume, nil
}

func setSource(volume *corev1.PersistentVolume, driver string) {
	if driver == "" || storageclass.InTree(driver) {
		volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/storage/" + volume.Name}
	} else {
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: volume.Name}
	}
}

// Delete deletes the storage of a volume. That there is none is success. It refuses a smaller token than it has seen.
func (s *Storage) Delete(ctx context.Context, request hooks.ReclaimRequest) error {
	volume := request.Volume
	call := &StorageCall{Verb: StorageDelete, Volume: volume.Name, Claim: claimUID(volume), Token: request.Token}
	return s.perform(ctx, call, func() StorageEffect {
		kept, there := s.kept[volume.Name]
		if !there {
			s.reportDoubleDelete(volume)
			return StorageUnchanged
		}
		s.reportLoss("deleted", kept, volume)
		delete(s.kept, volume.Name)
		return StorageDeleted
	})
}

// Recycle removes the data from the storage of a volume. That there is none is success. It refuses a smaller token than it
// has seen.
func (s *Storage) Recycle(ctx context.Context, request hooks.ReclaimRequest) error {
	volume := request.Volume
	call := &StorageCall{Verb: StorageRecycle, Volume: volume.Name, Claim: claimUID(volume), Token: request.Token}
	return s.perform(ctx, call, func() StorageEffect {
		kept, there := s.kept[volume.Name]
		if !there {
			return StorageUnchanged
		}
		s.reportLoss("scrubbed", kept, volume)
		kept.Content = Scrubbed
		s.kept[volume.Name] = kept
		return StorageScrubbed
	})
}
