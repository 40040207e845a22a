package controllerruntime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/obj"
)

// The lists of a fake client have no resourceVersion, as that of a proxy which answers with {}. Settle takes them, and nothing else.
func TestR3AListWithoutAVersionIsAnError(t *testing.T) {
	client := controllerruntime.Client{Client: fake.NewClientBuilder().Build()}
	_, err := client.ListAttachments(t.Context())
	require.ErrorContains(t, err, "the reply is no list of volumeattachments")
	_, err = client.ListClaims(t.Context())
	require.ErrorContains(t, err, "the reply is no list of pvc")
	_, err = client.ListPods(t.Context(), "default")
	require.ErrorContains(t, err, "the reply is no list of pods/default")
}

// What keeps a NotFound of the API server and answers it in its place does not hide an object.
func TestV3AReadThatIsNotFoundIsConfirmed(t *testing.T) {
	server := newServer(t, bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
	watching, err := client.NewWithWatch(server.Start(t), client.Options{Mapper: kinds()})
	require.NoError(t, err)
	keeps := interceptor.NewClient(watching, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			resource := map[bool]string{true: "persistentvolumes", false: "persistentvolumeclaims"}[key.Namespace == ""]
			return apierrors.NewNotFound(corev1.Resource(resource), key.Name)
		},
	})
	c := controllerruntime.Client{Client: watching, Live: keeps}
	volume, err := c.GetVolume(t.Context(), "disk")
	require.NoError(t, err)
	assert.Equal(t, server.Volume("disk").UID, volume.UID)
	claim, err := c.GetClaim(t.Context(), "default", "data")
	require.NoError(t, err)
	assert.Equal(t, server.Claim("default", "data").UID, claim.UID)
	_, err = c.GetVolume(t.Context(), "other")
	assert.True(t, obj.IsAbsent(err, obj.VolumeKey("other")), "%v", err)
	assert.NotEmpty(t, obj.AbsentAsOf(err))
	_, err = c.GetClaim(t.Context(), "default", "other")
	assert.NotEmpty(t, obj.AbsentAsOf(err))
}

// silent is a client of a server whose replies never come.
func silent() client.WithWatch {
	never := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return never(ctx)
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			return never(ctx)
		},
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			return never(ctx)
		},
		Update: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.UpdateOption) error {
			return never(ctx)
		},
		Delete: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
			return never(ctx)
		},
		SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ ...client.SubResourceUpdateOption) error {
			return never(ctx)
		},
	})
}

func TestB6ACallWhoseReplyNeverComesEnds(t *testing.T) {
	volume, claim := bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi")
	for name, call := range map[string]func(context.Context, controllerruntime.Client) error{
		"GetVolume": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.GetVolume(ctx, "disk")
			return err
		},
		"GetClaim": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.GetClaim(ctx, "default", "data")
			return err
		},
		"ListClaims": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.ListClaims(ctx)
			return err
		},
		"ListPods": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.ListPods(ctx, "default")
			return err
		},
		"ListAttachments": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.ListAttachments(ctx)
			return err
		},
		"UpdateVolume": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.UpdateVolume(ctx, volume)
			return err
		},
		"UpdateVolumeStatus": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.UpdateVolumeStatus(ctx, volume)
			return err
		},
		"UpdateClaim": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.UpdateClaim(ctx, claim)
			return err
		},
		"UpdateClaimStatus": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.UpdateClaimStatus(ctx, claim)
			return err
		},
		"CreateVolume": func(ctx context.Context, c controllerruntime.Client) error {
			_, err := c.CreateVolume(ctx, volume)
			return err
		},
		"DeleteVolume": func(ctx context.Context, c controllerruntime.Client) error {
			return c.DeleteVolume(ctx, "disk", metav1.Preconditions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				require.ErrorIs(t, call(t.Context(), controllerruntime.Client{Client: silent()}), context.DeadlineExceeded)
				assert.Equal(t, 30*time.Second, time.Since(start))
				start = time.Now()
				require.ErrorIs(t, call(t.Context(), controllerruntime.Client{Client: silent(), Timeout: time.Second}), context.DeadlineExceeded)
				assert.Equal(t, time.Second, time.Since(start))
			})
		})
	}
}

// Each call has an end: the writes of a sync, and the lists by which the server is asked how far it is.
func TestB6EachCallOfAReconcilerHasAnEnd(t *testing.T) {
	server := newServer(t)
	live, err := client.NewWithWatch(server.Start(t), client.Options{Scheme: scheme.Scheme, Mapper: kinds()})
	require.NoError(t, err)
	hasEnd := func(ctx context.Context) {
		end, ok := ctx.Deadline()
		assert.True(t, ok && time.Until(end) <= 30*time.Second)
	}
	var lists atomic.Int64
	watched := interceptor.NewClient(live, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			hasEnd(ctx)
			lists.Add(1)
			return c.List(ctx, list, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			hasEnd(ctx)
			return c.Update(ctx, object, options...)
		},
	})
	manage(t, server, &controllerruntime.Reconciler{Client: watched, Resync: 10 * time.Millisecond, Recorder: server.Server})
	createPair(t, server, "default", "data")
	eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
	eventually(t, func() bool { return lists.Load() > 0 }, "the server is asked how far it is")
}
