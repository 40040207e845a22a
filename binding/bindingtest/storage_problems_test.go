package bindingtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

const made = "pvc-uid-2"

// assertProblems compares the beginnings of the problems.
func assertProblems(t *testing.T, storage *bindingtest.Storage, want ...string) {
	t.Helper()
	problems := storage.Problems()
	require.Len(t, problems, len(want), "%q", problems)
	for i, problem := range problems {
		assert.Contains(t, problem, want[i])
	}
}

// vanish removes an object whatever its finalizers say, as a person may.
func vanish(t *testing.T, server *bindingtest.Server, key obj.Key) {
	t.Helper()
	object, err := server.Get(t.Context(), key)
	require.NoError(t, err)
	object.SetFinalizers(nil)
	_, err = server.Update(t.Context(), object)
	require.NoError(t, err)
	require.NoError(t, server.Delete(t.Context(), key, metav1.DeleteOptions{}))
}

func TestALeakIsReported(t *testing.T) {
	cluster, storage := newProvisioned(t)
	vanish(t, cluster.Server, dataClaim)
	assertProblems(t, storage)
	vanish(t, cluster.Server, obj.VolumeKey(made))
	assertProblems(t, storage, "leak: the storage of pvc-uid-2")
}

func TestStorageThatWasRetainedIsNoLeak(t *testing.T) {
	cluster, storage := newProvisioned(t)
	volume := cluster.Volume(made)
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	_, err := cluster.Update(t.Context(), volume)
	require.NoError(t, err)
	vanish(t, cluster.Server, obj.VolumeKey(made))
	assertProblems(t, storage)
}

func TestStorageOfAClaimBeingProvisionedIsNoLeak(t *testing.T) {
	cluster, storage := newProvisioned(t, bindingtest.LieStorage(1, bindingtest.AnyStorageCall))
	require.Nil(t, cluster.Volume(made))
	require.Len(t, storage.Kept(), 1)
	assertProblems(t, storage)
	vanish(t, cluster.Server, dataClaim)
	assertProblems(t, storage, "leak:")
}

func TestADeletionInUseIsReported(t *testing.T) {
	t.Run("X2 its claim is there", func(t *testing.T) {
		_, storage := newProvisioned(t)
		deleteStorage(t, storage, made)
		assertProblems(t, storage, "deleted in use: pvc-uid-2, and the volume is Bound", "missing: the storage of pvc-uid-2")
	})
	t.Run("X2 its claim names it, and its volume is gone", func(t *testing.T) {
		cluster, storage := newProvisioned(t)
		vanish(t, cluster.Server, obj.VolumeKey(made))
		deleteStorage(t, storage, made)
		assertProblems(t, storage, "deleted in use: pvc-uid-2, and claim default/data is there")
	})
	t.Run("X2 its policy is Retain", func(t *testing.T) {
		storage := bindingtest.NewStorage()
		storage.Add(bindingtest.Volume("a", "1Gi"))
		cluster := testkit.NewDrivenWith(bindingtest.DriverOptions{Hooks: storage.Hooks(dirs, "hostPath")}, bindingtest.Volume("a", "1Gi"))
		require.NoError(t, storage.Recycle(t.Context(), hooks.ReclaimRequest{Volume: cluster.Volume("a")}))
		deleteStorage(t, storage, "a")
		assertProblems(t, storage, "scrubbed against its policy: a has Retain", "deleted against its policy: a has Retain")
	})
}

func TestADoubleDeleteIsReported(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	ref := &corev1.ObjectReference{Namespace: "default", Name: "data"}
	volume := bindingtest.Volume("a", "1Gi", func(v pv) { v.Spec.ClaimRef = ref })
	for name, test := range map[string]struct {
		between func(*bindingtest.Storage, *bindingtest.Server)
		double  bool
	}{
		"nothing between": {func(*bindingtest.Storage, *bindingtest.Server) {}, true},
		"other storage failed": {func(storage *bindingtest.Storage, _ *bindingtest.Server) {
			storage.Use(bindingtest.FailStorage(1, bindingtest.AnyStorageCall, errBroken))
			assert.Error(t, storage.Delete(t.Context(), hooks.ReclaimRequest{Volume: bindingtest.Volume("b", "1Gi")}))
		}, true},
		"a read of what does not exist": {func(_ *bindingtest.Storage, server *bindingtest.Server) {
			_, err := server.GetVolume(t.Context(), "a")
			assert.Error(t, err)
		}, true},
		"a write of another volume failed": {func(_ *bindingtest.Storage, server *bindingtest.Server) {
			assert.Error(t, server.Delete(t.Context(), obj.VolumeKey("b"), metav1.DeleteOptions{}))
		}, true},
		"a write failed": {func(_ *bindingtest.Storage, server *bindingtest.Server) {
			assert.Error(t, server.Delete(t.Context(), obj.VolumeKey("a"), metav1.DeleteOptions{}))
		}, false},
		"a read of its claim failed": {func(_ *bindingtest.Storage, server *bindingtest.Server) {
			client := server.NewClient("c")
			client.Use(bindingtest.LoseAnswer(1, func(*bindingtest.Call) bool { return true }))
			_, err := client.GetClaim(t.Context(), "default", "data")
			assert.Error(t, err)
		}, false},
		"its volume was stored": {func(_ *bindingtest.Storage, server *bindingtest.Server) {
			_, err := server.Create(t.Context(), volume)
			require.NoError(t, err)
		}, false},
		"it failed": {func(storage *bindingtest.Storage, _ *bindingtest.Server) {
			storage.Use(bindingtest.FailStorage(1, bindingtest.AnyStorageCall, errBroken))
			assert.Error(t, storage.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume}))
		}, false},
		"it was made again": {func(storage *bindingtest.Storage, _ *bindingtest.Server) {
			storage.Add(volume)
		}, false},
		"a restart": {func(storage *bindingtest.Storage, _ *bindingtest.Server) { storage.Restarted() }, false},
	} {
		t.Run("Rh "+name, func(t *testing.T) {
			storage, server := bindingtest.NewStorage(), bindingtest.NewServer()
			storage.Attach(server)
			storage.Add(volume)
			require.NoError(t, storage.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume}))
			test.between(storage, server)
			require.NoError(t, storage.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume}))
			if test.double {
				assertProblems(t, storage, "double delete: the storage of a")
			} else {
				assertProblems(t, storage)
			}
		})
	}
	t.Run("Rh nobody waited for the first answer", func(t *testing.T) {
		storage := bindingtest.NewStorage()
		storage.Attach(bindingtest.NewServer())
		storage.Add(volume)
		require.NoError(t, storage.Delete(canceled, hooks.ReclaimRequest{Volume: volume}))
		require.NoError(t, storage.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume}))
		assertProblems(t, storage)
	})
}

// A controller that starts again deletes what it has deleted, for it cannot know.
func TestADriverTellsItsStoragesOfARestart(t *testing.T) {
	cluster, storage := newProvisioned(t)
	require.NoError(t, cluster.Delete(t.Context(), dataClaim, metav1.DeleteOptions{}))
	cluster.Client.Use(bindingtest.Before(1, bindingtest.On(bindingtest.VerbDelete, obj.KindVolume), func() { cluster.Client.CrashAfter(1) }))
	require.ErrorIs(t, cluster.Settle(t.Context()), bindingtest.ErrCrashed)
	cluster.Restart()
	require.NoError(t, cluster.Settle(t.Context()))
	require.NoError(t, cluster.AdvanceClock(t.Context()), "R8 it waits for the call that it may have left behind")
	assert.Len(t, storage.Calls(), 3)
	assert.Empty(t, storage.Kept())
	assertProblems(t, storage)
}

func TestADeletionWhileAttachedIsReported(t *testing.T) {
	for _, reclaim := range []func(*bindingtest.Storage, *corev1.PersistentVolume) error{
		func(s *bindingtest.Storage, volume *corev1.PersistentVolume) error {
			return s.Delete(t.Context(), hooks.ReclaimRequest{Volume: volume})
		},
		func(s *bindingtest.Storage, volume *corev1.PersistentVolume) error {
			return s.Recycle(t.Context(), hooks.ReclaimRequest{Volume: volume})
		},
	} {
		cluster, storage := newProvisioned(t)
		volume := cluster.Volume(made)
		vanish(t, cluster.Server, dataClaim)
		vanish(t, cluster.Server, obj.VolumeKey(made))
		_, err := cluster.Create(t.Context(), bindingtest.Attachment("another", "n1"))
		require.NoError(t, err)
		_, err = cluster.Create(t.Context(), bindingtest.Attachment(made, "n2"))
		require.NoError(t, err)
		require.NoError(t, reclaim(storage, volume))
		assert.Contains(t, storage.Problems()[0], "in use: pvc-uid-2, and it is attached to node n2")
	}
}
