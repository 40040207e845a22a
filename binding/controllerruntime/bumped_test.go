package controllerruntime_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// restoreBumped restores as "etcdutl snapshot restore --bump-revision --mark-compacted" does: objects have the versions of the backup,
// lists have later ones than ever before, and whoever watches lists anew.
func restoreBumped(server *apitest.Server, backup *bindingtest.Server) {
	for range 3 {
		backup.Snapshot() // which leaves room for later versions
	}
	var compacted sync.Map
	server.Deny(func(request apitest.Request) bool {
		if request.Verb != "watch" {
			return false
		}
		_, again := compacted.LoadOrStore(request.Resource, true)
		return !again
	})
	server.Restore(backup)
}

// No list is older than one before, and the cache shows what is back. It is known to be gone.
func TestW7AClaimIsBackAfterARestoreWhoseRevisionsGoOn(t *testing.T) {
	for name, cached := range map[string]cache.Options{
		"all namespaces": {},
		"some":           {DefaultNamespaces: map[string]cache.Config{"default": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t, bindingtest.Claim("default", "waits", "50Gi"))
			createPair(t, server, "default", "data")
			manage(t, server, &controllerruntime.Reconciler{
				Resync: 50 * time.Millisecond, Recorder: server.Server, BindingOptions: decision.Options{Protection: decision.ProtectionOn},
			}, func(o *ctrl.Options) { o.Cache = cached })
			remove := func(name string) {
				require.NoError(t, server.Delete(t.Context(), obj.ClaimKey("default", name), metav1.DeleteOptions{}))
				eventually(t, func() bool { return server.Claim("default", name) == nil }, "F2 nobody uses "+name)
			}
			eventually(t, func() bool { return isBound(server, "data") }, "the claim is bound")
			waits := func(event decision.Event) bool { return event.Reason == decision.EventFailedBinding }
			eventually(t, func() bool { return slices.ContainsFunc(server.Events(), waits) }, "C5 nothing fits the other one")
			backup := server.Snapshot()
			remove("data")
			remove("waits")
			eventually(t, func() bool { return server.Volume("disk-of-data").Status.Phase == corev1.VolumeReleased }, "V3 its volume is released")
			restoreBumped(server, backup)
			remove("data")
			_, err := server.Create(t.Context(), bindingtest.Volume("disk", "50Gi"))
			require.NoError(t, err)
			eventually(t, func() bool { return isBound(server, "waits") }, "C1 the other one gets a volume")
			eventually(t, func() bool { return server.Volume("disk-of-data").Status.Phase == corev1.VolumeReleased }, "V3 its volume is released once more")
			assert.Positive(t, told(server), "W8 it is told")
		})
	}
}

// W7: a resync of a cache that has all that is known reads nothing, and has nothing synced.
func TestW7AResyncOfWhatIsKnownReadsNothing(t *testing.T) {
	server := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		createPair(t, server, "default", name)
	}
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
	manage(t, server, &controllerruntime.Reconciler{Client: counting, Resync: 10 * time.Millisecond, Recorder: server.Server})
	for _, name := range []string{"a", "b", "c"} {
		eventually(t, func() bool { return isBound(server, name) }, name+" is bound")
	}
	settled, from := reads.Load(), checks.Load()
	eventually(t, func() bool { return checks.Load() > from+100 }, "the server is asked how far it is")
	assert.LessOrEqual(t, reads.Load(), settled+12, "but for what a cache had not shown yet")
}
