package binding

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// reply is what came of an action. The zero value is the absence of one, before the first.
type reply struct {
	object obj.Object // what the server stored or holds; nil: nothing, or an error
	err    error

	pods        []*corev1.Pod                 // for a read of pods
	attachments []*storagev1.VolumeAttachment // for a read of attachments
}

// perform does what the action says, unless a hook is to do it. It is all the I/O there is.
func perform(ctx context.Context, client Client, action Action) reply {
	if err := checkVersion(action); err != nil {
		return reply{err: err}
	}
	switch action.Kind {
	case Read:
		return performRead(ctx, client, action.Key)
	case CreateVolume:
		return volumeReply(client.CreateVolume(ctx, action.Volume))
	case UpdateVolume:
		return volumeReply(client.UpdateVolume(ctx, action.Volume))
	case UpdateVolumeStatus:
		return volumeReply(client.UpdateVolumeStatus(ctx, action.Volume))
	case UpdateClaim:
		return claimReply(client.UpdateClaim(ctx, action.Claim))
	case UpdateClaimStatus:
		return claimReply(client.UpdateClaimStatus(ctx, action.Claim))
	case DeleteVolume:
		volume := action.Volume
		return reply{err: client.DeleteVolume(ctx, volume.Name, metav1.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion})}
	}
	return reply{err: fmt.Errorf("%s: nobody can do that", action)}
}

// checkVersion refuses a write that the server would take as "overwrite anything" (B5).
func checkVersion(action Action) error {
	version := "as it should be"
	switch {
	case action.Kind == CreateVolume || !action.Writes():
	case action.Volume != nil:
		version = action.Volume.ResourceVersion
	default:
		version = action.Claim.ResourceVersion
	}
	if version == "" {
		return &obj.InvalidError{Object: action.Target().String(), Field: "metadata.resourceVersion", Problem: "is missing"}
	}
	return nil
}

func performRead(ctx context.Context, client Client, key obj.Key) reply {
	switch key.Kind {
	case obj.KindVolume:
		return volumeReply(client.GetVolume(ctx, key.Name))
	case obj.KindClaim:
		return claimReply(client.GetClaim(ctx, key.Namespace, key.Name))
	case obj.KindAttachments:
		return attachmentsReply(ctx, client)
	default:
		pods, err := client.ListPods(ctx, key.Namespace)
		return reply{pods: pods, err: err}
	}
}

// attachmentsReply is an empty list where the client has none to give: see AttachmentLister.
func attachmentsReply(ctx context.Context, client Client) reply {
	lister, attaches := client.(AttachmentLister)
	if !attaches {
		return reply{}
	}
	attachments, err := lister.ListAttachments(ctx)
	return reply{attachments: attachments, err: err}
}

// errNoObject is made of an answer that says nothing: it proves no absence, and no write.
var errNoObject = errors.New("the client returned neither an object nor an error")

func volumeReply(volume *corev1.PersistentVolume, err error) reply {
	switch {
	case err != nil:
		return reply{err: err}
	case volume == nil:
		return reply{err: errNoObject}
	}
	return reply{object: volume}
}

func claimReply(claim *corev1.PersistentVolumeClaim, err error) reply {
	switch {
	case err != nil:
		return reply{err: err}
	case claim == nil:
		return reply{err: errNoObject}
	}
	return reply{object: claim}
}

// outcome is what an error says of a write.
type outcome string

const (
	done    outcome = "done"
	lost    outcome = "lost"    // it did not happen: the object is another or gone; read it
	refused outcome = "refused" // it did not happen, and the same write would fail again
	unknown outcome = "unknown" // it may have happened
)

// outcomeOf sorts the errors of a write (B6). What is not known to mean that nothing was written counts
// as unknown.
func outcomeOf(err error) outcome {
	var invalid *obj.InvalidError
	switch {
	case err == nil:
		return done
	case errors.As(err, &invalid): // it was not sent
		return refused
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsGone(err):
		return lost
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsTooManyRequests(err), apierrors.IsNotAcceptable(err),
		apierrors.IsUnsupportedMediaType(err), apierrors.IsRequestEntityTooLargeError(err):
		return refused
	}
	return unknown
}
