package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// observe stores a version of an object, if it is new, and returns whom that wakes (W).
func (s *state) observe(object obj.Object) []obj.Key {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		if old, stored := s.putVolume(object); stored {
			if object.Spec.ClaimRef != nil {
				s.forgetOffers(object.Name)
			}
			return s.wokenByVolume(old, object)
		}
	case *corev1.PersistentVolumeClaim:
		if old, stored := s.putClaim(object); stored {
			return s.wokenByClaim(old, object)
		}
	case *storagev1.StorageClass:
		if s.putClass(object) {
			return s.wokenByClass(object)
		}
	case *corev1.Pod:
		if old, stored := s.putPod(object); stored {
			return s.wokenByPods(old, object)
		}
	case *storagev1.VolumeAttachment:
		if old, stored := s.putAttachment(object); stored {
			return s.wokenByAttachments(old, object)
		}
	}
	return nil
}

// observeDeleted forgets an object that is gone, and returns whom that wakes (W).
func (s *state) observeDeleted(object obj.Object) []obj.Key {
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		s.forgetOffers(object.Name)
		if old := s.dropVolume(object); old != nil {
			s.forget(obj.VolumeKey(old.Name))
			return s.wokenByVolume(old)
		}
	case *corev1.PersistentVolumeClaim:
		if old := s.dropClaim(object); old != nil {
			s.forget(obj.KeyOf(old))
			return append(s.wokenByClaim(old), s.doubts.of(obj.KeyOf(old))...)
		}
	case *storagev1.StorageClass:
		if old := s.dropClass(object); old != nil {
			return s.wokenByClass(old)
		}
	case *corev1.Pod:
		if old := s.dropPod(object); old != nil {
			return s.wokenByPods(old)
		}
	case *storagev1.VolumeAttachment:
		if old := s.dropAttachment(object); old != nil {
			return s.wokenByAttachments(old)
		}
	}
	return nil
}

// forget drops what is remembered of an object that is gone.
func (s *state) forget(key obj.Key) {
	delete(s.said, key)
	delete(s.failures, key)
	delete(s.refused, key)
}

// wokenByVolume are the volume, the claim that it names, and those that name it with the other volumes that are bound to
// them, which may be needed or not by what became of this one (W1 to W3, V2). The versions are the old and the new one, as
// far as there are such.
func (s *state) wokenByVolume(versions ...*corev1.PersistentVolume) []obj.Key {
	var keys []obj.Key
	for _, volume := range versions {
		if volume == nil {
			continue
		}
		keys = append(keys, obj.VolumeKey(volume.Name))
		if claim := obj.ReferencedClaim(volume); s.claims[claim] != nil {
			keys = append(keys, claim)
		}
		naming := s.naming.of(obj.VolumeKey(volume.Name))
		keys = append(keys, naming...)
		for _, claim := range naming {
			keys = append(keys, s.holding.of(claim)...)
		}
	}
	return unique(keys)
}

// wokenByClaim are the claim, the volume that it names, and every volume whose claimRef names it (W3).
func (s *state) wokenByClaim(versions ...*corev1.PersistentVolumeClaim) []obj.Key {
	var keys []obj.Key
	for _, claim := range versions {
		if claim == nil {
			continue
		}
		keys = append(keys, obj.KeyOf(claim))
		keys = append(keys, s.holding.of(obj.KeyOf(claim))...)
		if claim.Spec.VolumeName != "" {
			keys = append(keys, obj.VolumeKey(claim.Spec.VolumeName))
		}
		if phase.Owned(claim) != "" {
			keys = append(keys, s.wokenByOwner(obj.NamedVolume(claim))...)
		}
	}
	return unique(keys)
}

// wokenByOwner are the claims that name a volume, if it has no claimRef. They are refused for as long as it is
// another's all the same (M2, C9, C11), and nothing else tells them that it is not any more, or has become so.
func (s *state) wokenByOwner(volume obj.Key) []obj.Key {
	if known := s.volumes[volume.Name]; known == nil || known.Spec.ClaimRef != nil {
		return nil
	}
	return s.naming.of(volume)
}

// wokenByClass are the unbound claims that name the class, or would get it as the default (W4).
func (s *state) wokenByClass(class *storagev1.StorageClass) []obj.Key {
	var keys []obj.Key
	for key, claim := range s.claims {
		serves := storageclass.OfClaim(claim) == class.Name || storageclass.IsDefault(class) && storageclass.Unset(claim)
		if serves && !phase.BindCompleted(claim) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, obj.CompareKeys)
	return keys
}

// wokenByPods are the claims that a pod names, and the volumes that wait to be reclaimed from them (W5).
func (s *state) wokenByPods(versions ...*corev1.Pod) []obj.Key {
	var keys []obj.Key
	for _, pod := range versions {
		for _, claim := range claimsOf(pod) {
			keys = append(append(keys, claim), s.holding.of(claim)...)
		}
	}
	return unique(keys)
}

// wokenByAttachments are the volumes that attachments name, if they wait to be reclaimed (W5).
func (s *state) wokenByAttachments(versions ...*storagev1.VolumeAttachment) []obj.Key {
	var keys []obj.Key
	for _, attachment := range versions {
		key := attachedVolume(attachment)
		volume := s.volumes[key.Name]
		if volume != nil && (volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed) {
			keys = append(keys, key)
		}
	}
	return unique(keys)
}
