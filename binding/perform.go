package binding

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/obj"
)

// perform performs an action with the client, unless it runs a hook. It is all the I/O there is.
func perform(ctx context.Context, client Client, action decision.Action) engine.Reply {
	if err := action.CheckVersion(); err != nil {
		return engine.Reply{Err: err}
	}
	switch action.Kind {
	case decision.Read:
		return performRead(ctx, client, action.Key)
	case decision.CreateVolume:
		return replyOf(client.CreateVolume(ctx, action.Volume))
	case decision.UpdateVolume:
		return replyOf(client.UpdateVolume(ctx, action.Volume))
	case decision.UpdateVolumeStatus:
		return replyOf(client.UpdateVolumeStatus(ctx, action.Volume))
	case decision.UpdateClaim:
		return replyOf(client.UpdateClaim(ctx, action.Claim))
	case decision.UpdateClaimStatus:
		return replyOf(client.UpdateClaimStatus(ctx, action.Claim))
	case decision.DeleteVolume:
		volume := action.Volume
		return engine.Reply{Err: client.DeleteVolume(ctx, volume.Name, metav1.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion})}
	}
	return engine.Reply{Err: fmt.Errorf("%s: no client can perform that", action)}
}

func performRead(ctx context.Context, client Client, key obj.Key) engine.Reply {
	switch key.Kind {
	case obj.KindVolume:
		return replyOf(client.GetVolume(ctx, key.Name))
	case obj.KindClaim:
		return replyOf(client.GetClaim(ctx, key.Namespace, key.Name))
	case obj.KindAttachments:
		return attachmentsReply(ctx, client)
	default:
		pods, err := client.ListPods(ctx, key.Namespace)
		return engine.Reply{Pods: pods, Err: err}
	}
}

// attachmentsReply lists the attachments; none if the client is no AttachmentLister.
func attachmentsReply(ctx context.Context, client Client) engine.Reply {
	lister, attaches := client.(AttachmentLister)
	if !attaches {
		return engine.Reply{}
	}
	attachments, err := lister.ListAttachments(ctx)
	return engine.Reply{Attachments: attachments, Err: err}
}

// errNoObject stands for a reply without content: it proves no absence, and no write.
var errNoObject = errors.New("the client returned neither an object nor an error")

func replyOf[O interface {
	comparable
	obj.Object
}](object O, err error) engine.Reply {
	var none O
	switch {
	case err != nil:
		return engine.Reply{Err: err}
	case object == none:
		return engine.Reply{Err: errNoObject}
	}
	return engine.Reply{Object: object}
}
