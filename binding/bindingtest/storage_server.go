package bindingtest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
)

// claimOf is the claim with the UID; nil if there is none.
func (s *Server) claimOf(uid types.UID) *corev1.PersistentVolumeClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stored := range s.objects[obj.KindClaim] {
		if claim := stored.object.(*corev1.PersistentVolumeClaim); uid != "" && claim.UID == uid {
			return claim
		}
	}
	return nil
}

// lastOf is the last state of a volume that is gone; nil if there never was one.
func (s *Server) lastOf(volume string) *corev1.PersistentVolume {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, change := range slices.Backward(s.changes[obj.KindVolume]) {
		if last := change.Object.(*corev1.PersistentVolume); last.Name == volume {
			return last
		}
	}
	return nil
}

// attachedTo is a node that the volume is attached to, the first by the name of the attachment.
func (s *Server) attachedTo(volume string) (node string, attached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := ""
	for key, stored := range s.objects[KindAttachment] {
		spec := stored.object.(*storagev1.VolumeAttachment).Spec
		if name := spec.Source.PersistentVolumeName; name != nil && *name == volume && (!attached || key.Name < first) {
			first, node, attached = key.Name, spec.NodeName, true
		}
	}
	return node, attached
}
