package controllerruntime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/obj"
)

// A claim that a cache, in the server's place, shows for a while after its end is no more, once it does not: the manager's cache, which
// has told of its end, tells of nothing more.
func TestW7AClaimThatACacheHasRevived(t *testing.T) {
	for name, cached := range map[string]cache.Options{
		"all namespaces": {},
		"some":           {DefaultNamespaces: map[string]cache.Config{"default": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			createPair(t, server, "default", "data")
			var kept atomic.Pointer[corev1.PersistentVolumeClaim]
			manage(t, server, &controllerruntime.Reconciler{Client: keeping(t, server, &kept), Resync: 50 * time.Millisecond, Recorder: server.Server}, func(o *ctrl.Options) {
				o.Cache = cached
			})
			disk := func() corev1.PersistentVolumePhase { return server.Volume("disk-of-data").Status.Phase }
			eventually(t, func() bool { return isBound(server, "data") && disk() == corev1.VolumeBound }, "the claim is bound")
			kept.Store(server.Claim("default", "data"))
			require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
			eventually(t, func() bool { return told(server) > 0 }, "W8 it is there again, as it seems")
			kept.Store(nil)
			eventually(t, func() bool { return disk() == corev1.VolumeReleased }, "V3 the volume is released")
		})
	}
}

// keeping returns a client that answers each read of a claim with what is kept, if anything is.
func keeping(t *testing.T, server *apitest.Server, kept *atomic.Pointer[corev1.PersistentVolumeClaim]) client.Client {
	t.Helper()
	live, err := client.NewWithWatch(server.Start(t), client.Options{Scheme: scheme.Scheme, Mapper: kinds()})
	require.NoError(t, err)
	return interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && kept.Load() != nil {
				kept.Load().DeepCopyInto(claim)
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

// W7: what a cache of other namespaces cannot have is not read at each resync.
func TestW7WhatIsInOtherNamespacesIsNotReadAgain(t *testing.T) {
	server := newServer(t, bindingtest.Claim("other", "theirs", "5Gi"))
	claim := server.Claim("other", "theirs")
	_, err := server.Create(t.Context(), bindingtest.Volume("disk", "10Gi", func(volume *corev1.PersistentVolume) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "other", Name: "theirs", UID: claim.UID}
	}))
	require.NoError(t, err)
	var reads, checks atomic.Int64
	live, err := client.NewWithWatch(server.Start(t), client.Options{Scheme: scheme.Scheme, Mapper: kinds()})
	require.NoError(t, err)
	counting := interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads.Add(1)
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			checks.Add(1)
			return c.List(ctx, list, options...)
		},
	})
	manage(t, server, &controllerruntime.Reconciler{Client: counting, Resync: 10 * time.Millisecond, Recorder: server.Server}, func(o *ctrl.Options) {
		o.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}}
	})
	eventually(t, func() bool { return server.Claim("other", "theirs").Status.Phase == corev1.ClaimBound }, "V2 its volume is told of")
	settled, from := reads.Load(), checks.Load()
	eventually(t, func() bool { return checks.Load() > from+50 }, "the server is asked how far it is")
	require.LessOrEqual(t, reads.Load(), settled+3)
}
