package controllerruntime_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/obj"
)

// deleter counts its calls.
type deleter struct{ calls atomic.Int32 }

func (d *deleter) Delete(context.Context, hooks.ReclaimRequest) error {
	d.calls.Add(1)
	return nil
}

func remove(t *testing.T, server *apitest.Server, claim string) {
	t.Helper()
	stored := server.Claim("default", claim)
	stored.Finalizers = nil
	_, err := server.Update(t.Context(), stored)
	require.NoError(t, err)
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", claim), metav1.DeleteOptions{}))
}

// A proxy that answers from a cache for a while looks like a restore, and no deleter is called for some time. One that comes within
// the minute after that has all read anew once more; it is told no second time.
func TestW8ARestoreShortlyAfterAnOldReply(t *testing.T) {
	server, ours := newServer(t,
		bindingtest.Volume("free", "1Gi"), bindingtest.Claim("default", "old", "1Gi"),
		bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}}
		}),
		bindingtest.Claim("default", "data", "5Gi")), &deleter{}
	before := server.Claim("default", "old")
	live, err := client.NewWithWatch(server.Start(t), client.Options{Scheme: scheme.Scheme, Mapper: kinds()})
	require.NoError(t, err)
	var old atomic.Bool
	behindProxy := interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && key.Name == "old" && old.Load() {
				before.DeepCopyInto(claim)
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	manage(t, server, &controllerruntime.Reconciler{
		Client: behindProxy, Recorder: server.Server, Hooks: hooks.Set{SourceDeleters: map[string]hooks.Deleter{"hostPath": ours}},
	}, func(o *ctrl.Options) { o.Cache.NewInformer = clientgo.NewInformer })
	eventually(t, func() bool { return isBound(server, "old") && isBound(server, "data") }, "both are bound")

	old.Store(true)
	require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "old"), metav1.DeleteOptions{})) // the controller lets it go (F2)
	eventually(t, func() bool { return told(server) >= 1 }, "W8 live reads show the claim that is gone, as it was")
	old.Store(false)
	eventually(t, func() bool { return server.Volume("free").Status.Phase == corev1.VolumeReleased }, "V3 then the server answers")
	first := told(server) // again, where the watch has shown the end of the claim only then

	snapshot := server.Snapshot()
	remove(t, server, "data")
	eventually(t, func() bool { return server.Volume("disk").Status.Phase == corev1.VolumeReleased }, "V3")
	calls := len(server.Calls())
	server.Restore(snapshot)
	eventually(t, func() bool {
		return slices.ContainsFunc(server.CallsSince(calls), func(call bindingtest.Call) bool {
			return call.Verb == bindingtest.VerbGet && call.Key == obj.VolumeKey("disk")
		})
	}, "W8 it is read once more")
	createPair(t, server, "default", "later")
	eventually(t, func() bool { return isBound(server, "later") }, "work goes on")
	assert.Equal(t, corev1.VolumeBound, server.Volume("disk").Status.Phase)
	assert.Equal(t, first, told(server), "N not again within a minute")
	assert.Zero(t, ours.calls.Load(), "R8 another controller may be at work that has announced what the server has lost")
}
