package binding

import (
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// reserveAll takes the volumes of all bindings, each in exactly the version that was planned with, or none. It
// returns the names of those that it took: the others have belonged to their claims before, and are not to be
// released with them.
func (x *Index) reserveAll(bindings []PodBinding) (taken map[string]bool, ok bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	taken = map[string]bool{}
	for _, b := range bindings {
		free, available := x.available(b)
		if !available {
			return nil, false
		}
		if free {
			taken[b.Volume.Name] = true
		}
	}
	for _, b := range bindings {
		if taken[b.Volume.Name] {
			x.refile(b.Volume.Name, func() { zeromap.Put(&x.reserved, b.Volume.Name, []obj.Key{obj.KeyOf(b.Claim)}) })
		}
	}
	return taken, true
}

// available reports whether the claim can have the volume, and whether the volume is free, not the claim's.
func (x *Index) available(b PodBinding) (free, available bool) {
	known := x.volumes[b.Volume.Name]
	if known == nil || known.UID != b.Volume.UID || known.ResourceVersion != b.Volume.ResourceVersion {
		return false, false
	}
	if known.Spec.ClaimRef != nil {
		link := phase.LinkOf(known, b.Claim)
		return false, link == phase.Reserved || link == phase.Held
	}
	owners := x.ownersOf(known.Name)
	return len(owners) == 0, !match.KeptFrom(obj.KeyOf(b.Claim), owners)
}
