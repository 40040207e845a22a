package binding

// Reserve takes a volume for a claim, and reports whether the claim has it now. It has if the Index knows
// the volume in exactly this resourceVersion, the one that the decision was made on, and nobody else had
// it: no claimRef to another claim, no owner and no reservation. From then on it is found for this claim
// only, and counts as Claimed for others.
//
// A reservation ends with Release, with Delete, and with a Set that shows a claimRef. A Set of a newer
// version without one does not end it: a write whose outcome is unknown may be in that version or still
// on its way (B6), and only who made it can tell, from a live read.
func (x *Index) Reserve(volume, version string, claim Key) bool {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	known := x.volumes[volume]
	if known == nil || known.ResourceVersion != version {
		return false
	}
	if known.Spec.ClaimRef != nil {
		return referenced(known) == claim // its claimRef keeps it from others
	}
	owner := x.owner(volume)
	if owner == (Key{}) {
		x.refile(volume, func() { put(&x.reserved, volume, claim) })
	}
	return owner == Key{} || owner == claim
}

// Release gives back what Reserve took: for a write that certainly failed, or whose outcome is known. If
// the claim has no reservation, nothing changes.
func (x *Index) Release(volume string, claim Key) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.reserved[volume] == claim {
		x.refile(volume, func() { delete(x.reserved, volume) })
	}
}

// SetOwner says which claim an unclaimed volume belongs to all the same (M2): one with bind-completed
// that names it. The zero Key: none does. It need not be known yet, and outlives a Delete.
func (x *Index) SetOwner(volume string, claim Key) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.owners[volume] == claim {
		return
	}
	x.refile(volume, func() {
		if claim == (Key{}) {
			delete(x.owners, volume)
			return
		}
		put(&x.owners, volume, claim)
	})
}

// Owner is the claim that an unclaimed volume belongs to, by SetOwner or else by Reserve; the zero Key if
// it belongs to none. It can be the Owner of Terms for a list of the same volumes. In Terms for the Index
// itself it must not be: it is called with the Index locked, and it knows already.
func (x *Index) Owner(volume string) Key {
	x.mutex.RLock()
	defer x.mutex.RUnlock()
	return x.owner(volume)
}

func (x *Index) owner(volume string) Key {
	if owner := x.owners[volume]; owner != (Key{}) {
		return owner
	}
	return x.reserved[volume]
}

// refile changes what decides where a volume is put.
func (x *Index) refile(volume string, change func()) {
	known := x.volumes[volume]
	if known != nil {
		x.take(known)
	}
	change()
	if known != nil {
		x.put(known)
	}
}

// ownerBeside is the owner of a volume, if need be from Terms.
func (x *Index) ownerBeside(other func(string) Key) func(string) Key {
	return func(volume string) Key {
		if owner := x.owner(volume); owner != (Key{}) || other == nil {
			return owner
		}
		return other(volume)
	}
}
