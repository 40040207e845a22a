package hooks

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Set has the hooks of a Controller. Each runs within the Sync of its claim or volume, outside of any lock, with a context
// that ends after Timeout, and with copies of its arguments. A panic becomes the error of that one call (Rh).
type Set struct {
	// Provisioners provision volumes for claims, by the name in the class's provisioner (P2).
	Provisioners map[string]Provisioner
	// Deleters delete volumes with the annotation provisioned-by, by the provisioner's name in it. If a provisioner has no
	// Deleter, its volumes are left to an external controller, and storage that was provisioned for a claim which was deleted
	// before its volume could be stored is left behind (R3).
	Deleters map[string]Deleter
	// SourceDeleters delete volumes without the annotation provisioned-by, by the field of the volume's spec that has their
	// source, such as "hostPath" (R3).
	SourceDeleters map[string]Deleter
	// Recyclers remove the data from volumes, by the field of the volume's spec that has their source (R4).
	Recyclers map[string]Recycler

	// Timeout limits one call; DefaultTimeout if zero. After it the call is abandoned, and no other call for the same storage
	// starts until it has returned. Of a Deleter and a Recycler it counts from the announcement, and is an hour at most (R8).
	// Their contexts also end when it is noticed that the server was restored from a backup, and their answers do not count then.
	Timeout time.Duration
	// MaxConcurrent limits the calls at the same time; DefaultMaxConcurrent if zero. A namespace gets one more only while it has
	// fewer than are free, half of all if it is alone, and the namespaces that wait are served in turn (Rh). A sync keeps its
	// slot until it ends. Keep it below the number of workers, so that slow hooks never occupy all of them.
	MaxConcurrent int
}

const (
	// DefaultTimeout is how long a hook may take.
	DefaultTimeout = 2 * time.Minute
	// Margin is how long after an announcement its Deleter or Recycler may be called at the latest, and how much longer than
	// the Timeout another controller waits for it (R8).
	Margin = 30 * time.Second
	// DefaultMaxConcurrent is how many hooks run at the same time, at most half of them for one namespace.
	DefaultMaxConcurrent = 20
)

// Provisioner provisions storage for claims.
//
// Provision is idempotent by claim.UID: called again for the same claim it returns the storage it has made, for its earlier
// answer may be lost. An *Error says when to retry.
//
// Provision has to refuse what it cannot do: it looks at a claim's selector, dataSource and dataSourceRef, its volume mode
// and access modes, the parameters and allowedTopologies of the class. Of its answer is checked that the volume fits the
// claim and has a source and the name it was given (M3 to M7).
type Provisioner interface {
	Provision(ctx context.Context, request ProvisionRequest) (*corev1.PersistentVolume, error)
}

// ProvisionRequest is what to provision. The provisioner may modify it: it is a copy.
type ProvisionRequest struct {
	Claim *corev1.PersistentVolumeClaim
	// Class has the parameters, and the allowedTopologies that the storage must be reachable from.
	Class *storagev1.StorageClass
	// Node is the name of the node where the scheduler has placed the pod that waits for the claim; "" if any will do. It is the
	// claim's annotation selected-node, which whoever may edit the claim can write too: it may be no node, or none of the class's
	// allowedTopologies, or no name at all. Look the node up before anything is made of its name; if there is none, fail, and the
	// scheduler chooses again (P2).
	Node string
	// Volume is what will be stored, but for its source. The provisioner sets that, and where it has to
	// the capacity, access modes, node affinity, labels and annotations, and returns it.
	Volume *corev1.PersistentVolume
	// Token is counted with those of ReclaimRequest for the same storage, and larger than those before. Storage that keeps the largest
	// one keeps this one before it hands the storage out, found or made, and refuses a smaller one with the Meaning StaleToken.
	Token int64
}

// DeepCopy returns a request that shares nothing with this one.
func (r ProvisionRequest) DeepCopy() ProvisionRequest {
	r.Claim, r.Class, r.Volume = r.Claim.DeepCopy(), r.Class.DeepCopy(), r.Volume.DeepCopy()
	return r
}

// Deleter deletes the storage of a volume.
//
// Delete is idempotent: storage that does not exist, or no longer, is success. Where the answer of a provisioner was lost,
// Delete is called with a volume that was never stored and has no source: its name ("pvc-" and the UID of the claim) and its
// claimRef tell what to delete, if it exists. An *Error says when to retry.
//
// Neither Delete nor Recycle is called while a VolumeAttachment names the volume: see binding.AttachmentLister.
type Deleter interface {
	Delete(ctx context.Context, request ReclaimRequest) error
}

// Recycler removes the data from a volume, so that another claim may have it. Recycle is idempotent. An *Error
// says when to retry.
type Recycler interface {
	Recycle(ctx context.Context, request ReclaimRequest) error
}

// ReclaimRequest is whose storage to delete or to recycle. The hook may modify it: it is a copy.
type ReclaimRequest struct {
	Volume *corev1.PersistentVolume
	// Token grows with each call for the same storage, whichever controller makes it. Storage that keeps the largest one it
	// has seen refuses a smaller one with the Meaning StaleToken: that call comes from a controller which was paused, and
	// somebody may use the storage by now. See the package's documentation.
	Token int64
}

// Reclaims reports whether there is any deleter or recycler. Without one, attachments do not matter.
func (h Set) Reclaims() bool { return len(h.Deleters)+len(h.SourceDeleters)+len(h.Recyclers) > 0 }

// Names returns the names that the hooks are registered under.
func (h Set) Names() Names {
	return Names{
		Provisioners:   sets.KeySet(h.Provisioners),
		Deleters:       sets.KeySet(h.Deleters),
		SourceDeleters: sets.KeySet(h.SourceDeleters),
		Recyclers:      sets.KeySet(h.Recyclers),
	}
}

// Names are the names that hooks are registered under, as in a Set. A decision needs no more of them.
type Names struct {
	Provisioners, Deleters, SourceDeleters, Recyclers sets.Set[string]
}

// Error classifies the failure of a hook, and so says when to retry. It may be wrapped. Any other error counts as Failed.
type Error struct {
	Meaning Meaning
	// After is how long to wait before the next call, for InProgress. Zero: with back-off.
	After time.Duration
	// Err is what happened, for people; it may be nil.
	Err error
}

// Error returns the text of Err, or else the Meaning.
func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Meaning)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Meaning is the kind of failure that an Error reports.
type Meaning string

const (
	// Failed means that the hook is called again with back-off.
	Failed Meaning = ""
	// InProgress means that the work goes on. The hook is called again after Error.After.
	InProgress Meaning = "InProgress"
	// Refused means that this fails on every node and for ever. The hook is not called again before the object changes.
	Refused Meaning = "Refused"
	// NotMine means that another component deletes or recycles this storage. The volume is left as it is until it changes.
	NotMine Meaning = "NotMine"
	// StaleToken means that the storage has seen a larger token. The volume keeps its phase, or the claim its node, and the call is
	// announced anew, if that is needed, and made with back-off, if it is still due (R8).
	StaleToken Meaning = "StaleToken"
	// TooLate means that a Deleter or Recycler was not called, because more than Margin had passed by then since its announcement or
	// the reads that it relies on. A Controller says so itself. The volume keeps its phase, and the call is announced anew, with
	// back-off (R8).
	TooLate Meaning = "TooLate"
	// NotReturned means that a hook was not called, because an earlier call for the same storage has not returned, as of one whose context has
	// ended, and that does not heed it. A Controller says so itself. The volume keeps its phase, or the claim its node, and the call is due
	// with back-off (Rh).
	NotReturned Meaning = "NotReturned"
	// InUse means that the storage is still used. The volume keeps its phase (R3).
	InUse Meaning = "InUse"
)
