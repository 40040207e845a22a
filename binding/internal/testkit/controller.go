package testkit

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/engine"
	"github.com/pvbind/pvbind/binding/obj"
)

// Perform makes the call that an action says, as a Controller does. The action runs no hook.
func Perform(client binding.Client, action decision.Action) engine.Reply {
	return perform(client, action).Checked(action)
}

func perform(client binding.Client, action decision.Action) engine.Reply {
	if err := action.CheckVersion(); err != nil {
		return engine.Reply{Err: err}
	}
	ctx := context.Background()
	switch action.Kind {
	case decision.CreateVolume:
		return replied(client.CreateVolume(ctx, action.Volume))
	case decision.UpdateVolume:
		return replied(client.UpdateVolume(ctx, action.Volume))
	case decision.UpdateVolumeStatus:
		return replied(client.UpdateVolumeStatus(ctx, action.Volume))
	case decision.UpdateClaim:
		return replied(client.UpdateClaim(ctx, action.Claim))
	case decision.UpdateClaimStatus:
		return replied(client.UpdateClaimStatus(ctx, action.Claim))
	case decision.DeleteVolume:
		exactly := metav1.Preconditions{UID: &action.Volume.UID, ResourceVersion: &action.Volume.ResourceVersion}
		return engine.Reply{Err: client.DeleteVolume(ctx, action.Volume.Name, exactly)}
	}
	switch action.Key.Kind {
	case obj.KindVolume:
		return replied(client.GetVolume(ctx, action.Key.Name))
	case obj.KindClaim:
		return replied(client.GetClaim(ctx, action.Key.Namespace, action.Key.Name))
	case obj.KindClaims:
		claims, err := client.ListClaims(ctx)
		return engine.Reply{Claims: claims, Err: err}
	case obj.KindAttachments:
		attachments, err := client.(binding.AttachmentLister).ListAttachments(ctx)
		return engine.Reply{Attachments: attachments, Err: err}
	}
	pods, err := client.ListPods(ctx, action.Key.Namespace)
	return engine.Reply{Pods: pods, Err: err}
}

func replied(object obj.Object, err error) engine.Reply {
	if err != nil {
		return engine.Reply{Err: err}
	}
	return engine.Reply{Object: object}
}

// Remembered returns the objects that a Controller has stored: the very ones that it was handed. It looks into the
// Controller, for users have no need of them.
func Remembered(controller *binding.Controller) []obj.Object {
	state := reflect.ValueOf(controller).Elem().FieldByName("state")
	if state.IsNil() {
		return nil // it has not been told of anything
	}
	return (*engine.State)(state.UnsafePointer()).Objects()
}

// ControllerCalls returns the writes and the reads that controllers made, one line each.
func ControllerCalls(server *bindingtest.Server) (writes, reads []string) {
	for _, call := range server.Calls() {
		switch {
		case call.Actor == "" || call.Verb == bindingtest.VerbRecord:
		case call.Writes():
			writes = append(writes, call.String())
		default:
			reads = append(reads, call.String())
		}
	}
	return writes, reads
}

// CountBound counts the claims that are Bound, each to a volume of its own (X1).
func CountBound(t testing.TB, server *bindingtest.Server, claims int) int {
	owners := map[string]string{}
	for i := range claims {
		claim := server.Claim("default", fmt.Sprintf("c-%03d", i))
		if claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		require.Empty(t, owners[claim.Spec.VolumeName], "X1")
		owners[claim.Spec.VolumeName] = claim.Name
		require.Equal(t, claim.UID, server.Volume(claim.Spec.VolumeName).Spec.ClaimRef.UID)
	}
	return len(owners)
}

// Provisions, Deletes and Recycles are hooks that are functions.
type (
	Provisions func(context.Context, hooks.ProvisionRequest) (*corev1.PersistentVolume, error)
	Deletes    func(context.Context, hooks.ReclaimRequest) error
	Recycles   func(context.Context, hooks.ReclaimRequest) error
)

// Provision calls f.
func (f Provisions) Provision(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	return f(ctx, request)
}

// Delete calls f.
func (f Deletes) Delete(ctx context.Context, request hooks.ReclaimRequest) error {
	return f(ctx, request)
}

// Recycle calls f.
func (f Recycles) Recycle(ctx context.Context, request hooks.ReclaimRequest) error {
	return f(ctx, request)
}

// MakesPaths is a provisioner that makes what is requested, on a path.
func MakesPaths(_ context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	OnHostPath(request.Volume)
	return request.Volume, nil
}
