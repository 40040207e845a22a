//go:build envtest

package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/internal/settling"
)

// On the real API server that envtest starts: KUBEBUILDER_ASSETS=… go test -tags envtest -run Envtest

func TestEnvtest(t *testing.T) {
	environment := &envtest.Environment{}
	config, err := environment.Start()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, environment.Stop()) })
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	t.Run("Settle", func(t *testing.T) { settlesALife(t, c) })
	clear(t, c)
	t.Run("Stories", func(t *testing.T) {
		settling.Run(t, func(t *testing.T) settling.Cluster {
			t.Cleanup(func() { clear(t, c) })
			return onClient{c}
		})
	})
	t.Run("Manager", func(t *testing.T) {
		mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard()})
		require.NoError(t, err)
		reconciler := &controllerruntime.Reconciler{BindingOptions: decision.Options{Protection: decision.ProtectionOn}}
		another := true // the tests of one process are several managers
		reconciler.Options.SkipNameValidation = &another
		require.NoError(t, reconciler.SetupWithManager(mgr))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		defer func() {
			cancel()
			assert.NoError(t, <-ended)
		}()
		bindsAndReleases(t, c)
	})
}

// clear deletes everything, whatever holds it.
func clear(t *testing.T, c client.Client) {
	ctx := context.Background() // that of the test is over
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}, &storagev1.StorageClassList{},
		&storagev1.VolumeAttachmentList{}, &storagev1.CSINodeList{}, &corev1.NodeList{}} {
		require.NoError(t, c.List(ctx, list))
		require.NoError(t, meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			if err := c.Delete(ctx, object, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
			return client.IgnoreNotFound(c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		}))
	}
}

// settlesALife binds a claim, deletes it, and has its volume released, by calls of Settle.
func settlesALife(t *testing.T, c client.Client) {
	ctx := t.Context()
	for _, object := range []client.Object{bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi")} {
		require.NoError(t, c.Create(ctx, object))
	}
	settle(t, c)
	claim := claimOf(t, c)
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	assert.Equal(t, corev1.VolumeBound, volumeOf(t, c).Status.Phase)
	require.NoError(t, c.Delete(ctx, claim))
	settle(t, c)
	assert.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(claim), claim)), "F2 nobody uses it")
	assert.Equal(t, corev1.VolumeReleased, volumeOf(t, c).Status.Phase, "V3")
}

// bindsAndReleases does the same with many, and a manager.
func bindsAndReleases(t *testing.T, c client.Client) {
	const pairs = 20
	for i := range pairs {
		require.NoError(t, c.Create(t.Context(), bindingtest.Volume(fmt.Sprint("disk-", i), "10Gi")))
		require.NoError(t, c.Create(t.Context(), bindingtest.Claim("default", fmt.Sprint("data-", i), "5Gi")))
	}
	in := func(phase corev1.PersistentVolumePhase) func() bool {
		return func() bool {
			var list corev1.PersistentVolumeList
			require.NoError(t, c.List(t.Context(), &list))
			count := 0
			for _, volume := range list.Items {
				if volume.Name != "disk" && volume.Status.Phase == phase {
					count++
				}
			}
			return count == pairs
		}
	}
	eventually(t, in(corev1.VolumeBound), "all are bound")
	require.NoError(t, c.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace("default")))
	eventually(t, in(corev1.VolumeReleased), "V3 all are released")
}
