package binding

import (
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/obj"
)

func (s *store) putAttachment(attachment *storagev1.VolumeAttachment) (old *storagev1.VolumeAttachment, stored bool) {
	name := attachmentKey(attachment)
	old = s.attachments[name]
	if s.gonePods.has(attachment.UID) || old != nil && !obj.Newer(attachment, old) {
		return old, false
	}
	s.attached.move(attachedVolume(old), attachedVolume(attachment), name)
	zeromap.Put(&s.attachments, name, attachment)
	return old, true
}

func (s *store) dropAttachment(attachment *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
	s.gonePods.bury(attachment.UID)
	name := attachmentKey(attachment)
	old := s.attachments[name]
	if old == nil || old.UID != attachment.UID {
		return nil
	}
	s.attached.move(attachedVolume(old), obj.Key{}, name)
	delete(s.attachments, name)
	return old
}

func attachmentKey(attachment *storagev1.VolumeAttachment) obj.Key {
	return obj.Key{Kind: obj.KindAttachment, Name: attachment.Name}
}

// attachedVolume is the volume that an attachment names; zero if it is for one that is written into a pod.
func attachedVolume(attachment *storagev1.VolumeAttachment) obj.Key {
	if attachment == nil || attachment.Spec.Source.PersistentVolumeName == nil {
		return obj.Key{}
	}
	return obj.VolumeKey(*attachment.Spec.Source.PersistentVolumeName)
}

// attachmentsOf are those among all attachments that name the volume.
func attachmentsOf(all []*storagev1.VolumeAttachment, volume string) (found []*storagev1.VolumeAttachment) {
	for _, attachment := range all {
		if attachedVolume(attachment) == obj.VolumeKey(volume) {
			found = append(found, attachment)
		}
	}
	return found
}

// evidenceOf is what attachments from a cache are worth.
func evidenceOf(found []*storagev1.VolumeAttachment) Evidence {
	if len(found) == 0 {
		return Unknown
	}
	return Cached
}

// attachedTo names the nodes of attachments, each once, in order: "attached to node a, b".
func attachedTo(attachments []*storagev1.VolumeAttachment) string {
	var nodes []string
	for _, attachment := range attachments {
		nodes = append(nodes, attachment.Spec.NodeName)
	}
	slices.Sort(nodes)
	return "attached to node " + strings.Join(slices.Compact(nodes), ", ")
}
