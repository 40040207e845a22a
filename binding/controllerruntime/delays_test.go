package controllerruntime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

// on is a Reconciler on a server in memory, that has been told of all its objects.
func on(server *bindingtest.Server) *Reconciler {
	r := &Reconciler{controller: &binding.Controller{Client: server}, queue: workqueue.NewTypedRateLimitingQueue[obj.Key](&delays{})}
	for _, kind := range bindingtest.Kinds() {
		watch := server.Watch(kind)
		for change, ok := watch.Next(); ok; change, ok = watch.Next() {
			r.controller.Observe(change.Object)
		}
	}
	return r
}

func TestW9TheControllerSharesOutTheReconciles(t *testing.T) {
	r := &Reconciler{}
	assert.Equal(t, defaultConcurrency, r.newController(Client{}, nil).Workers, "W9")
	r.Options.MaxConcurrentReconciles = 3
	assert.Equal(t, 3, r.newController(Client{}, nil).Workers, "W9")
}

func TestDelaysAreTheControllers(t *testing.T) {
	server := bindingtest.NewServer(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
	client := server.NewClient("controller")
	r := on(server)
	r.controller.Client = client
	key := obj.ClaimKey("default", "data")
	client.CrashAfter(0)
	var before time.Duration
	for range 3 {
		_, err := r.Reconcile(t.Context(), key)
		require.ErrorIs(t, err, bindingtest.ErrCrashed)
		assert.Greater(t, r.delays.When(key), before, "W6 longer after each failure")
		before = r.delays.When(key)
	}
	client.Restart()
	result, err := r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	assert.Zero(t, result)
	r.delays.Forget(key)
	assert.Zero(t, r.delays.When(key))
	assert.Zero(t, r.delays.NumRequeues(key))
}

func TestWhatOnlyAChangeMendsIsNotTriedAgain(t *testing.T) {
	server := bindingtest.NewServer()
	volume := bindingtest.Volume("bad", "-1Gi")
	volume.UID, volume.ResourceVersion, volume.Finalizers = "uid", "1", []string{reclaim.VolumeProtection}
	require.NoError(t, server.Load(volume))
	r := on(server)
	_, err := r.Reconcile(t.Context(), obj.VolumeKey("bad"))
	require.ErrorIs(t, err, reconcile.TerminalError(nil), "X7")
}

func TestUpdates(t *testing.T) {
	server := bindingtest.NewServer(bindingtest.Volume("disk", "10Gi"), bindingtest.Claim("default", "data", "5Gi"))
	r := on(server)
	claim, volume := server.Claim("default", "data"), server.Volume("disk")
	key := obj.KeyOf(claim)
	assert.Equal(t, []obj.Key{key}, r.update(claim, claim), "the cache resyncs")
	assert.Equal(t, []obj.Key{obj.VolumeKey("disk")}, r.update(volume, volume))
	pod := bindingtest.Pod("default", "web", "node")
	assert.Empty(t, r.update(pod, pod))

	other := claim.DeepCopy()
	other.UID, other.ResourceVersion = "another", "100"
	assert.Contains(t, r.update(claim, other), key)
	assert.Empty(t, r.controller.Observe(claim), "X3 the one before it is known to be gone")
}

// W7: what the cache has when it resyncs, though it is known to be gone, is read live.
func TestResyncOfWhatIsKnownToBeGone(t *testing.T) {
	server := bindingtest.NewServer(bindingtest.Claim("default", "data", "5Gi"))
	r, claim := on(server), server.Claim("default", "data")
	r.controller.ObserveDeleted(claim)
	assert.Equal(t, []obj.Key{obj.KeyOf(claim)}, r.update(claim, claim))
	_, err := r.Reconcile(t.Context(), obj.KeyOf(claim))
	require.ErrorContains(t, err, "restored from a backup")
	assert.Equal(t, []obj.Key{obj.KeyOf(claim)}, r.controller.Recheck(claim))
	_, err = r.Reconcile(t.Context(), obj.KeyOf(claim))
	require.NoError(t, err)
}
