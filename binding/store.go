package binding

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

// store is the newest known version of every object, and where they name each other. What is stored is
// never modified, so that copying the maps copies the store.
type store struct {
	volumes map[string]*corev1.PersistentVolume
	claims  map[obj.Key]*corev1.PersistentVolumeClaim
	classes map[string]*storagev1.StorageClass
	pods    map[obj.Key]*corev1.Pod

	attachments map[obj.Key]*storagev1.VolumeAttachment

	naming  links // volume: the claims whose spec.volumeName is it
	holding links // claim: the volumes whose claimRef has its name
	using   links // claim: the pods that name it

	attached links // volume: the attachments that name it

	index   *index.Index  // the volumes once more, to choose from
	waiting index.Waiting // the claims that any volume may serve
	called  index.Waiting // those of them that a volume was offered to and that have not had their sync yet
	gone    tombstones
	// gonePods are apart, or the pods and attachments, which come and go by the thousand, would push out the rest.
	gonePods tombstones
}

// putVolume stores a volume unless it is known to be gone or a version at least as new is stored. It
// returns what it replaced, and whether it stored anything.
func (s *store) putVolume(volume *corev1.PersistentVolume) (old *corev1.PersistentVolume, stored bool) {
	old = s.volumes[volume.Name]
	if s.gone.has(volume.UID) || old != nil && !obj.Newer(volume, old) {
		return old, false
	}
	s.holding.move(obj.ReferencedClaim(old), obj.ReferencedClaim(volume), obj.VolumeKey(volume.Name))
	zeromap.Put(&s.volumes, volume.Name, volume)
	s.index.Set(volume)
	return old, true
}

// dropVolume removes a volume and buries its UID. It returns what it removed; nil if nothing of that UID
// was stored.
func (s *store) dropVolume(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	s.gone.bury(volume.UID)
	old := s.volumes[volume.Name]
	if old == nil || old.UID != volume.UID {
		return nil
	}
	s.holding.move(obj.ReferencedClaim(old), obj.Key{}, obj.VolumeKey(volume.Name))
	delete(s.volumes, volume.Name)
	s.index.Delete(volume.Name)
	return old
}

func (s *store) putClaim(claim *corev1.PersistentVolumeClaim) (old *corev1.PersistentVolumeClaim, stored bool) {
	key := obj.KeyOf(claim)
	old = s.claims[key]
	if s.gone.has(claim.UID) || old != nil && !obj.Newer(claim, old) {
		return old, false
	}
	s.naming.move(obj.NamedVolume(old), obj.NamedVolume(claim), key)
	zeromap.Put(&s.claims, key, claim)
	s.index.SetClaim(claim)
	s.enlist(claim)
	return old, true
}

func (s *store) dropClaim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	s.gone.bury(claim.UID)
	key := obj.KeyOf(claim)
	old := s.claims[key]
	if old == nil || old.UID != claim.UID {
		return nil
	}
	s.naming.move(obj.NamedVolume(old), obj.Key{}, key)
	delete(s.claims, key)
	s.index.DeleteClaim(key)
	s.waiting.Delete(key)
	s.called.Delete(key)
	return old
}

func (s *store) clone() store {
	copied := store{
		volumes: maps.Clone(s.volumes),
		claims:  maps.Clone(s.claims),
		classes: maps.Clone(s.classes),
		pods:    maps.Clone(s.pods),
		naming:  s.naming.clone(),
		holding: s.holding.clone(),
		using:   s.using.clone(),
		index:   &index.Index{},
		waiting: s.waiting.Clone(),
		called:  s.called.Clone(),
		gone:    s.gone.clone(),

		attachments: maps.Clone(s.attachments),
		attached:    s.attached.clone(),

		gonePods: s.gonePods.clone(),
	}
	copied.index.Load(slices.Collect(maps.Values(s.volumes))...)
	for name, volume := range s.volumes {
		if claim, reserved := s.index.Reservation(name); reserved {
			copied.index.Reserve(name, volume.ResourceVersion, claim)
		}
	}
	for _, claim := range s.claims {
		copied.index.SetClaim(claim)
	}
	return copied
}

// enlist puts a claim where it waits, if it does. One that was called stays so until its sync ends.
func (s *store) enlist(claim *corev1.PersistentVolumeClaim) {
	list := &s.waiting
	if s.called.Get(obj.KeyOf(claim)) != nil {
		list = &s.called
	}
	list.Set(claim, s.classOf(claim))
}
