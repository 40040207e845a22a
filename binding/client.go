package binding

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
)

// Client is the API server to a Controller. Errors are those of the API (k8s.io/apimachinery/pkg/api/errors); any other
// error of a write means that its outcome is unknown.
//
// A list that the server did not make must be an error, or it proves that there is nothing: with {} a proxy may have answered,
// which client-go decodes as an empty list. So must one that is cut short. See obj.CheckList. And so should one that is older than
// what was read before, or known, once, for a cache may have answered in the server's place: see Follower. Of a single object the Controller
// itself checks, with obj.CheckReply, that it is the whole of the one which it has asked for, and so it does of each in a list.
//
// That an object is not found proves more if a live list confirms it, which says as of when: see obj.Confirm. Else the Controller
// reads it twice, and nothing shows that a cache has not kept both replies (V3).
//
// Every method is called from many goroutines at once, and must not keep or modify its arguments.
type Client interface {
	// GetVolume and GetClaim read from the server itself, never from a cache.
	GetVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	GetClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	// ListClaims lists the claims of all namespaces from the server itself. That is rare: a volume that is Bound and has lost its
	// claimRef is given to nobody before (V1, C7).
	ListClaims(ctx context.Context) ([]*corev1.PersistentVolumeClaim, error)
	// ListPods lists the pods of a namespace from the server itself.
	ListPods(ctx context.Context, namespace string) ([]*corev1.Pod, error)

	// The four updates write the object on the resourceVersion it carries and return what the server
	// stored: metadata and spec, or metadata and status.
	UpdateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error)
	UpdateVolumeStatus(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error)
	UpdateClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error)
	UpdateClaimStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error)

	// CreateVolume and DeleteVolume are called only where hooks are registered. A deletion that the
	// preconditions do not allow is a Conflict.
	CreateVolume(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error)
	DeleteVolume(ctx context.Context, name string, preconditions metav1.Preconditions) error
}

// AttachmentLister is what a Client has besides, if there are deleters or recyclers: storage is not reclaimed while its
// volume is attached to a node. A Client without it is taken for one of a cluster where no volume is ever attached.
//
// The rights are to list volumeattachments in storage.k8s.io, and to watch them for the driver that calls Observe with them.
// Where they are not observed, the list is read again after a growing delay (R3, R4).
type AttachmentLister interface {
	// ListAttachments lists the attachments of all volumes from the server itself, never from a cache.
	ListAttachments(ctx context.Context) ([]*storagev1.VolumeAttachment, error)
}

// Follower is what a Client is besides, if it notices lists from the past by what the Controller knows (V3). A Client that is none is
// believed that there is nothing, however old its list may be.
type Follower interface {
	// Reached notes the resourceVersion of a claim or a volume that the Controller observes, or that the Client has replied, before
	// anything is decided on that. A list that is requested after that is no older, unless the server was restored, or has what is
	// listed in another etcd than claims and volumes.
	Reached(version string)
}

// Recorder publishes events. It must not block for long and cannot fail: an event is advice.
type Recorder interface {
	Record(event decision.Event)
}
