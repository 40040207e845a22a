package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Evidence is how much a look-up in a View is worth. A cache that lacks an object proves nothing: the
// object may be newer than the cache. So before anything is released, reclaimed or declared lost, a
// decision asks for a live read and is asked again with its outcome.
type Evidence string

const (
	// Unknown: not in the cache, which proves nothing.
	Unknown Evidence = ""
	// Cached: found in a cache, which may be old.
	Cached Evidence = "Cached"
	// Live: read from the server since the last write.
	Live Evidence = "Live"
	// Absent: the server said, since the last write, that it does not exist, and had said so before. One NotFound alone
	// may be a mistake, and one that is not IsAbsent is no word of the server's at all.
	Absent Evidence = "Absent"
)

// Proven reports whether the server itself said so.
func (e Evidence) Proven() bool { return e == Live || e == Absent }

// View is what a decision may know of the rest of the cluster. Everything in it is read only.
// Snapshot implements it on plain lists.
type View interface {
	// Volume looks up a volume by name.
	Volume(name string) (*corev1.PersistentVolume, Evidence)
	// Claim looks up a claim.
	Claim(namespace, name string) (*corev1.PersistentVolumeClaim, Evidence)
	// Class looks up a class; nil if it is not known.
	Class(name string) *storagev1.StorageClass
	// DefaultClass is the class that claims without one get (C2); nil if there is none.
	DefaultClass() *storagev1.StorageClass
	// PodsOf are the pods of the namespace that name the claim in a volume, finished ones too. Unknown
	// means that no pods are known at all.
	PodsOf(namespace, claim string) ([]*corev1.Pod, Evidence)
	// AttachmentsOf are the attachments that name the volume, those being deleted too. Unknown means that none is
	// known, which proves nothing; Live, that all there are were listed since the last write.
	AttachmentsOf(volume string) ([]*storagev1.VolumeAttachment, Evidence)

	// Find chooses a volume for the claim among all volumes (M). Errors, here and of Summary, are those of Check.
	Find(claim *corev1.PersistentVolumeClaim) (match.Match, error)
	// Summary tells in numbers why no volume fits the claim (E2).
	Summary(claim *corev1.PersistentVolumeClaim) (match.Summary, error)
	// Owners are the claims that an Unclaimed volume belongs to all the same (M2), in order; none if nobody. See Terms.
	Owners(volume string) []obj.Key
	// Answered are the answers to actions of this kind about the object with this UID that were given since
	// the sync began, the oldest first.
	Answered(of ActionKind, about types.UID) []Answer
	// Waiting is the claim that the volume is to be offered to next (W1); nil if nobody waits for it.
	Waiting(volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim
}
