package binding

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Provisioner makes storage for claims.
//
// It is idempotent by claim.UID: asked again for the same claim it returns the storage it has made, for what it
// answered may never have been heard. A *HookError says more than that it failed.
//
// What it cannot do it has to refuse: a claim's selector, dataSource and dataSourceRef, its volume mode and
// access modes, the parameters and allowedTopologies of the class are for it to look at. Of its answer is
// checked that the volume fits the claim (M3 to M7) and has a source and the name it was given.
type Provisioner interface {
	Provision(ctx context.Context, request ProvisionRequest) (*corev1.PersistentVolume, error)
}

// ProvisionRequest is what a provisioner is asked for. What the provisioner gets is a copy of its own.
type ProvisionRequest struct {
	Claim *corev1.PersistentVolumeClaim
	// Class has the parameters, and the allowedTopologies that the storage must be reachable from.
	Class *storagev1.StorageClass
	// Node is the name of the node where the scheduler has placed the pod that waits for the claim; "" if it is
	// all the same.
	Node string
	// Volume is what will be stored, but for its source. The provisioner sets that, and where it has to
	// the capacity, access modes, node affinity, labels and annotations, and returns it.
	Volume *corev1.PersistentVolume
}

// Deleter deletes the storage of a volume.
//
// It is idempotent: storage that does not exist, or no longer, is success. Where the answer of a provisioner was
// never heard, it is called with a volume that was never stored and has no source: its name ("pvc-" and the UID
// of the claim) and its claimRef say what to delete, if it exists. A *HookError says more than that it failed.
//
// Neither it nor a Recycler is called while a VolumeAttachment names the volume: see AttachmentLister.
type Deleter interface {
	Delete(ctx context.Context, volume *corev1.PersistentVolume) error
}

// Recycler removes the data from a volume, so that another claim may have it. It is idempotent. A *HookError
// says more than that it failed.
type Recycler interface {
	Recycle(ctx context.Context, volume *corev1.PersistentVolume) error
}

// Hooks are what a Controller makes, deletes and scrubs storage with (Rh). Each runs within the Sync of its
// claim or volume, outside of any lock, with a context that ends after Timeout, and with copies of its
// arguments. A panic is the error of that one call.
type Hooks struct {
	// Provisioners, by the name in a class's provisioner (P2).
	Provisioners map[string]Provisioner
	// Deleters of the volumes that were provisioned, by the provisioner's name (R3). A provisioner without one
	// is taken for one whose volumes are deleted elsewhere, and leaves behind what it made for a claim that was
	// deleted before its volume could be stored.
	Deleters map[string]Deleter
	// SourceDeleters of the volumes that nobody is said to have provisioned, by the field of the volume's
	// spec that has their source, such as "hostPath" (R3).
	SourceDeleters map[string]Deleter
	// Recyclers of all volumes, by the field of the volume's spec that has their source (R4).
	Recyclers map[string]Recycler

	// Timeout of one call; two minutes if zero. A call that goes on nevertheless is not waited for any longer,
	// and none for the same storage is made until it has returned.
	Timeout time.Duration
	// AtOnce is how many calls may be waited for at the same time; 10 if zero. With more workers than that,
	// hooks never keep all of them busy.
	AtOnce int
}

const (
	defaultTimeout = 2 * time.Minute
	defaultAtOnce  = 10
)

// Reclaims reports whether there is any deleter or recycler. Without, nobody has to know of attachments.
func (h Hooks) Reclaims() bool { return len(h.Deleters)+len(h.SourceDeleters)+len(h.Recyclers) > 0 }

// names are those that the hooks are registered under.
func (h Hooks) names() HookNames {
	return HookNames{
		Provisioners:   sets.KeySet(h.Provisioners),
		Deleters:       sets.KeySet(h.Deleters),
		SourceDeleters: sets.KeySet(h.SourceDeleters),
		Recyclers:      sets.KeySet(h.Recyclers),
	}
}

// HookNames say which hooks are registered, as Hooks does. A decision needs no more of them.
type HookNames struct {
	Provisioners, Deleters, SourceDeleters, Recyclers sets.Set[string]
}

// HookMeaning is what a hook means by an error.
type HookMeaning string

const (
	// HookFailed: it did not work out. It is tried again with back-off; so is every error that is no *HookError.
	HookFailed HookMeaning = ""
	// HookInProgress: the work goes on and is not done. Ask again after HookError.After.
	HookInProgress HookMeaning = "InProgress"
	// HookRefused: this will never work, on no node. It is not tried again before the object changes.
	HookRefused HookMeaning = "Refused"
	// HookNotMine: for a deleter or recycler, this storage is somebody else's. The volume is left as it is until
	// it changes.
	HookNotMine HookMeaning = "NotMine"
	// HookInUse: somebody still uses the storage. The volume keeps its phase (R3).
	HookInUse HookMeaning = "InUse"
)

// HookError is an error with which a hook says more than that it failed. It may be wrapped.
type HookError struct {
	Meaning HookMeaning
	// After is when to ask again, for HookInProgress. Zero: with back-off.
	After time.Duration
	// Err is what happened, for people; it may be nil.
	Err error
}

func (e *HookError) Error() string {
	if e.Err == nil {
		return string(e.Meaning)
	}
	return e.Err.Error()
}

func (e *HookError) Unwrap() error { return e.Err }
