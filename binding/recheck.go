package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// recheck compares what a cache has with what is known, and returns whom that wakes (W7).
func (s *state) recheck(object obj.Object) []obj.Key {
	woken := s.observe(object)
	switch object := object.(type) {
	case *corev1.PersistentVolume:
		return s.question(obj.VolumeKey(object.Name), object, woken)
	case *corev1.PersistentVolumeClaim:
		return s.question(obj.KeyOf(object), object, woken)
	case *storagev1.StorageClass:
		if known := s.classes[object.Name]; known != nil && !sameVersion(known, object) {
			woken = s.observeDeleted(known)
		}
		s.gone.exhume(object.UID)
	case *corev1.Pod:
		if known := s.pods[obj.KeyOfPod(object)]; known != nil && !sameVersion(known, object) {
			woken = s.observeDeleted(known)
		}
		s.gonePods.exhume(object.UID)
	case *storagev1.VolumeAttachment:
		if known := s.attachments[attachmentKey(object)]; known != nil && !sameVersion(known, object) {
			woken = s.observeDeleted(known)
		}
		s.gonePods.exhume(object.UID)
	}
	return unique(append(woken, s.observe(object)...))
}

// question puts an object in doubt if a cache has another version of it than the one that is known. Where its last write
// is in doubt, it will be read anyhow, and the sync that made the write has to hear of it (B6).
func (s *state) question(key obj.Key, cached obj.Object, woken []obj.Key) []obj.Key {
	known := s.known(key)
	if _, doubted := s.unsettled[key]; !doubted && (known == nil || !sameVersion(known, cached)) {
		s.doubt(key, key)
	}
	return unique(append(woken, key))
}

func sameVersion(a, b obj.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}
