package bindingtest

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// Problems returns what went wrong so far, one line each; empty if nothing did. Meant for the end of a test, when all
// has settled. The storage must be attached to a server.
//
// A leak is storage for which no volume is on the server and no claim with decision.ProvisioningFinalizer, by the
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
// success, and nothing since is a reason to ask again. The reasons are: storage was made there again, or its volume stored; a controller
// restarted (Restarted); a call of this storage for the same volume failed, or was answered when the controller had
// given up; a call of the server on the volume, on the claim that the volume held, on the pods of its namespace or on
// the list of attachments failed, but for a read of what does not exist. A controller remembers an answer only as long
// as its sync lasts, and each of these ends one.
func (s *Storage) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return []string{"the storage is attached to no server in memory, so that nobody knows what is in use: look at Kept and Calls"}
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
	if claim != nil && slices.Contains(claim.Finalizers, decision.ProvisioningFinalizer) {
		return true
	}
	last := s.server.lastOf(kept.Volume)
	return last != nil && last.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// reportLoss notes what is wrong with removing the data of a volume now.
func (s *Storage) reportLoss(what string, kept Kept, sent *corev1.PersistentVolume) {
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

// instant is a point in the log of the storage and in that of its server.
type instant struct{ serverCalls, calls, restarts int }

func (s *Storage) now() instant {
	now := instant{calls: len(s.calls), restarts: s.restarts}
	if s.server != nil {
		now.serverCalls = len(s.server.callsFrom(0))
	}
	return now
}

// reportDoubleDelete notes a deletion of what is gone, if it is a double one.
func (s *Storage) reportDoubleDelete(volume *corev1.PersistentVolume) {
	before, answered := s.deleted[volume.Name]
	if !answered || s.restarts > before.restarts {
		return
	}
	for _, call := range s.calls[before.calls:len(s.calls)] {
		if call.Volume == volume.Name && !call.answered() {
			return
		}
	}
	if s.server == nil || !s.server.asksAgain(volume, before.serverCalls) {
		s.problems = append(s.problems, fmt.Sprintf("double delete: the storage of %s was deleted, and is deleted again without a reason", volume.Name))
	}
}

// asksAgain reports whether a call after the first n has stored the volume, or failed and a sync of the volume depends on it.
func (s *Server) asksAgain(volume *corev1.PersistentVolume, n int) bool {
	keys := []obj.Key{obj.VolumeKey(volume.Name), {Kind: obj.KindAttachment}}
	if ref := volume.Spec.ClaimRef; ref != nil {
		keys = append(keys, obj.ClaimKey(ref.Namespace, ref.Name), obj.Key{Kind: obj.KindPod, Namespace: ref.Namespace})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.calls[n:], func(call *Call) bool {
		absent := call.Verb == VerbGet && apierrors.IsNotFound(call.Err)
		stored := call.Verb == VerbCreate && call.Key == keys[0]
		return (stored || call.Err != nil && !absent) && slices.Contains(keys, call.Key)
	})
}

// claimOf returns the claim with the UID; nil if there is none.
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

// lastOf returns the last state of a volume that is gone; nil if there never was one.
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

// attachedTo returns a node that the volume is attached to, the first by the name of the attachment.
func (s *Server) attachedTo(volume string) (node string, attached bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := ""
	for key, stored := range s.objects[obj.KindAttachment] {
		spec := stored.object.(*storagev1.VolumeAttachment).Spec
		if name := spec.Source.PersistentVolumeName; name != nil && *name == volume && (!attached || key.Name < first) {
			first, node, attached = key.Name, spec.NodeName, true
		}
	}
	return node, attached
}
