package binding

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reply is what came of an action. The zero value is the absence of one, before the first.
type reply struct {
	object Object        // what the server stored or holds; nil: nothing, or an error
	pods   []*corev1.Pod // for a read of pods
	err    error
}

// errNoVersion refuses a write that the server would take as "overwrite anything" (B5).
var errNoVersion = errors.New("the object to write carries no resourceVersion")

// perform does what the action says. It is all the I/O there is.
func perform(ctx context.Context, client Client, action Action) reply {
	switch action.Kind {
	case Read:
		return performRead(ctx, client, action.Key)
	case UpdateVolume, UpdateVolumeStatus:
		if action.Volume.ResourceVersion == "" {
			return reply{err: apierrors.NewBadRequest(action.Target().String() + ": " + errNoVersion.Error())}
		}
		if action.Kind == UpdateVolume {
			return volumeReply(client.UpdateVolume(ctx, action.Volume))
		}
		return volumeReply(client.UpdateVolumeStatus(ctx, action.Volume))
	default:
		if action.Claim.ResourceVersion == "" {
			return reply{err: apierrors.NewBadRequest(action.Target().String() + ": " + errNoVersion.Error())}
		}
		if action.Kind == UpdateClaim {
			return claimReply(client.UpdateClaim(ctx, action.Claim))
		}
		return claimReply(client.UpdateClaimStatus(ctx, action.Claim))
	}
}

func performRead(ctx context.Context, client Client, key Key) reply {
	switch key.Kind {
	case KindVolume:
		return volumeReply(client.GetVolume(ctx, key.Name))
	case KindClaim:
		return claimReply(client.GetClaim(ctx, key.Namespace, key.Name))
	default:
		pods, err := client.ListPods(ctx, key.Namespace)
		return reply{pods: pods, err: err}
	}
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
	switch {
	case err == nil:
		return done
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsGone(err):
		return lost
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsTooManyRequests(err), apierrors.IsNotAcceptable(err),
		apierrors.IsUnsupportedMediaType(err), apierrors.IsRequestEntityTooLargeError(err):
		return refused
	}
	return unknown
}
