package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

func (s *store) putClass(class *storagev1.StorageClass) (stored bool) {
	old := s.classes[class.Name]
	if s.gone.has(class.UID) || old != nil && !obj.Newer(class, old) {
		return false
	}
	zeromap.Put(&s.classes, class.Name, class)
	s.requeue(class.Name)
	return true
}

// dropClass removes a class. One that has taken its name since stays: a claim whose class is not known is bound at
// once (M11).
func (s *store) dropClass(class *storagev1.StorageClass) *storagev1.StorageClass {
	s.gone.bury(class.UID)
	old := s.classes[class.Name]
	if old == nil || old.UID != class.UID {
		return nil
	}
	delete(s.classes, class.Name)
	s.requeue(class.Name)
	return old
}

func (s *store) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	return s.classes[storageclass.OfClaim(claim)]
}

// requeue lets the claims of a class wait, or no longer, as the class now says (M11).
func (s *store) requeue(class string) {
	for _, claim := range s.claims {
		if storageclass.OfClaim(claim) == class {
			s.enlist(claim)
		}
	}
}
