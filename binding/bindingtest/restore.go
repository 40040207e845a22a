package bindingtest

// roomToRestore is how many writes there may be after a Restore until versions and UIDs come again that were given
// before it.
const roomToRestore = 10_000

// Snapshot is a backup of all objects, as one of etcd. What is written from now on is many versions later, so that
// after a Restore no version is given twice.
func (s *Server) Snapshot() *Server {
	snapshot := s.Clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version += roomToRestore
	return snapshot
}

// Restore takes the objects back to what they were at the Snapshot, and the versions with them, as an etcd that is
// restored from a backup. Only the clock goes on. Those who watch are told what they would find by listing anew: each
// object as it is again, on its old version, and the end of those that came later. They are not told that it is a
// restore, for nobody is.
func (s *Server) Restore(snapshot *Server) {
	backup := snapshot.Clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range Kinds() {
		for key, stored := range s.objects[kind] {
			if stored.object.GetUID() != backup.objects.get(key).uid() {
				s.tell(kind, stored.object, Deleted)
			}
		}
	}
	s.objects, s.version = stores{}, backup.version
	for _, kind := range Kinds() {
		for key, stored := range backup.objects[kind] {
			s.put(key, stored.object, Modified)
		}
	}
}
