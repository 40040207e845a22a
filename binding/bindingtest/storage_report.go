package bindingtest

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding"
)

// Problems is what went wrong so far, one line each; empty if nothing did. Meant for the end of a test, when all
// has settled. The storage must be attached to a server.
//
// A leak is storage for which no volume is on the server and no claim with binding.ProvisioningFinalizer, by the
// UID it was made for. Storage is also accounted for if its volume went while its policy was Retain.
//
// Storage is missing if its volume is Bound or its claim exists, and it once was there.
//
// Storage was deleted in use, or scrubbed, if at that moment its volume on the server was Bound, or a claim existed by
// the UID that the volume held or that the storage was made for, and named the volume, or named none while the volume
// held it; or a VolumeAttachment named the volume. It was deleted against its policy if the volume on the server had
// another one than Delete, and scrubbed if another one than Recycle.
//
// A double delete is a deletion that finds nothing, though an earlier one of the same storage was answered with
// success, and nothing since is a reason to ask again. The reasons are: storage was made there again; a controller
// restarted (Restarted); a call of this storage for the same volume failed, or was answered when the controller had
// given up; a call of the server on the volume, on the claim that the volume held, on the pods of its namespace or on
// the list of attachments failed, but for a read of what does not exist. A controller remembers an answer only as long
// as its sync lasts, and each of these ends one.
func (s *Storage) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return []string{"the storage is not attached to a server"}
	}
	problems := slices.Clone(s.problems)
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		kept, there := s.kept[name]
		volume := s.server.Volume(name)
		switch {
		case there && volume == nil && !s.accountedFor(kept):
			problems = append(problems, fmt.Sprintf("leak: the storage of %s, made for claim %q, exists and nothing stands for it", name, kept.Claim))
		case !there && volume != nil && s.useOf(name, volume) != "":
			problems = append(problems, fmt.Sprintf("missing: the storage of %s is gone, and %s", name, s.useOf(name, volume)))
		}
	}
	return problems
}

// accountedFor reports whether storage without a volume is somebody's business.
func (s *Storage) accountedFor(kept Kept) bool {
	claim := s.server.claimOf(kept.Claim)
	if claim != nil && slices.Contains(claim.Finalizers, binding.ProvisioningFinalizer) {
		return true
	}
	last := s.server.lastOf(kept.Volume)
	return last != nil && last.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// judgeLoss notes what is wrong with removing the data of a volume now.
func (s *Storage) judgeLoss(what string, kept Kept, sent *corev1.PersistentVolume) {
	if s.server == nil {
		return
	}
	volume := s.server.Volume(kept.Volume)
	use := s.useOf(kept.Volume, volume, kept.Claim, claimUID(sent))
	if node, attached := s.server.attachedTo(kept.Volume); attached && use == "" {
		use = "it is attached to node " + node
	}
	if use != "" {
		s.problems = append(s.problems, fmt.Sprintf("%s in use: %s, and %s", what, kept.Volume, use))
	}
	may := corev1.PersistentVolumeReclaimDelete
	if what == "scrubbed" {
		may = corev1.PersistentVolumeReclaimRecycle
	}
	if volume != nil && volume.Spec.PersistentVolumeReclaimPolicy != may {
		s.problems = append(s.problems, fmt.Sprintf("%s against its policy: %s has %s", what, kept.Volume, volume.Spec.PersistentVolumeReclaimPolicy))
	}
}

// useOf says who uses the volume of that name, or its storage; "" if nobody does. The volume may be gone.
func (s *Storage) useOf(name string, volume *corev1.PersistentVolume, claims ...types.UID) string {
	if volume != nil && volume.Status.Phase == corev1.VolumeBound {
		return "the volume is Bound"
	}
	for _, uid := range append(claims, claimUID(volume)) {
		claim := s.server.claimOf(uid)
		if claim == nil {
			continue
		}
		held := claimUID(volume) == uid && claim.Spec.VolumeName == ""
		if held || claim.Spec.VolumeName == name {
			return fmt.Sprintf("claim %s/%s is there", claim.Namespace, claim.Name)
		}
	}
	return ""
}
