package bindingtest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// Load takes over objects of a running cluster as they stand: uid, resourceVersion, status, finalizers
// and deletionTimestamp. Nothing is defaulted, admitted or checked, so a test can have a state that the
// API would refuse. What happens later is numbered above the highest resourceVersion loaded, on a
// clock after the latest creationTimestamp. An object without a numeric resourceVersion or without a
// uid is given one.
//
// It fails, and loads nothing, if an object has no name, is of a kind that is not stored, is given
// twice or is there already.
func (s *Server) Load(objects ...obj.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, err := s.keysToLoad(objects)
	if err != nil {
		return err
	}
	for _, object := range objects {
		s.advanceTo(object)
	}
	for i, key := range keys {
		object := copyOf(objects[i])
		s.complete(object)
		s.put(key, object, Added)
		s.log(&Call{Verb: VerbLoad, Key: key, After: object})
	}
	return nil
}

func (s *Server) keysToLoad(objects []obj.Object) ([]obj.Key, error) {
	seen, keys := map[obj.Key]bool{}, make([]obj.Key, len(objects))
	for i, object := range objects {
		key, err := KeyOf(object)
		if err != nil {
			return nil, err
		}
		if key.Name == "" {
			return nil, fmt.Errorf("bindingtest: cannot load a %s without a name", key.Kind)
		}
		if _, there := s.objects[key.Kind][key]; there || seen[key] {
			return nil, fmt.Errorf("bindingtest: cannot load %s: it is there already", display(key))
		}
		seen[key], keys[i] = true, key
	}
	return keys, nil
}

func (s *Server) advanceTo(object obj.Object) {
	if version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 63); err == nil {
		s.version = max(s.version, version)
	}
	if created := object.GetCreationTimestamp(); created.After(s.now) {
		s.now = created.UTC()
	}
}

func (s *Server) complete(object obj.Object) {
	if _, err := strconv.ParseUint(object.GetResourceVersion(), 10, 63); err != nil {
		s.tick()
		object.SetResourceVersion(strconv.FormatUint(s.version, 10))
	}
	if object.GetUID() == "" {
		s.tick()
		object.SetUID(types.UID(fmt.Sprintf("uid-%d", s.version)))
	}
}

// roomToRestore is how many writes there may be after a Restore until versions and UIDs come again that were given
// before it.
const roomToRestore = 10_000

// Snapshot returns a backup of all objects, as one of etcd. What is written from now on is many versions later, so that
// after a Restore no version is given twice.
func (s *Server) Snapshot() *Server {
	snapshot := s.Clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version += roomToRestore
	return snapshot
}

// Restore takes the objects back to what they were at the Snapshot, and the versions with them, as an etcd that is
// restored from a backup. Only the clock goes on. Those who watch are told what they would find by listing anew: the
// end of those that came later, and each object as it is again, on its old version, by name. They are not told that it is a
// restore, for nobody is.
func (s *Server) Restore(snapshot *Server) {
	backup := snapshot.Clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range Kinds() {
		for _, key := range slices.SortedFunc(maps.Keys(s.objects[kind]), obj.CompareKeys) {
			stored := s.objects[kind][key]
			if stored.object.GetUID() != backup.objects.get(key).uid() {
				s.tell(kind, stored.object, Deleted)
			}
		}
	}
	s.objects, s.version = stores{}, backup.version
	for _, kind := range Kinds() {
		for _, key := range slices.SortedFunc(maps.Keys(backup.objects[kind]), obj.CompareKeys) {
			s.put(key, backup.objects[kind][key].object, Modified)
		}
	}
}
