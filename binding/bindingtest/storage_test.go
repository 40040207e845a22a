package bindingtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

const dirs = "example.com/dirs"

var dataClaim = obj.ClaimKey("default", "data")

// newProvisioned returns a cluster with a storage, and a claim that is provisioned in it.
func newProvisioned(t *testing.T, added ...bindingtest.StorageHook) (*testkit.Driven, *bindingtest.Storage) {
	t.Helper()
	storage := bindingtest.NewStorage()
	storage.Use(added...)
	cluster := testkit.NewDrivenWith(
		bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: storage.Hooks(dirs, "hostPath")},
		bindingtest.Class("fast", func(class sc) { class.Provisioner = dirs }),
		bindingtest.Claim("default", "data", "5Gi", func(claim pvc) { claim.Spec.StorageClassName = new("fast") }),
	)
	require.NoError(t, cluster.Settle(t.Context()))
	return cluster, storage
}

// deleteStorage deletes the storage of a volume as a controller does that knows no better.
func deleteStorage(t *testing.T, storage *bindingtest.Storage, volume string) {
	t.Helper()
	require.NoError(t, storage.Delete(t.Context(), hooks.ReclaimRequest{Volume: bindingtest.Volume(volume, "1Gi")}))
}

func TestStorageRecordsWhatExists(t *testing.T) {
	cluster, storage := newProvisioned(t)
	uid := cluster.Claim("default", "data").UID
	name := "pvc-" + string(uid)
	require.Len(t, storage.Kept(), 1)
	kept := storage.Kept()[0]
	assert.Equal(t, []any{name, uid, "", "5Gi", bindingtest.Blank}, []any{kept.Volume, kept.Claim, kept.Node, kept.Size.String(), kept.Content})
	assert.True(t, storage.Write(name))
	assert.Equal(t, bindingtest.Written, storage.Kept()[0].Content)
	assert.False(t, storage.Write("nothing"))
	assert.Empty(t, storage.Problems())
}

func TestStorageIsIdempotent(t *testing.T) {
	cluster, storage := newProvisioned(t)
	claim := cluster.Claim("default", "data")
	request := hooks.ProvisionRequest{Claim: claim, Node: "elsewhere", Volume: cluster.Volume(claim.Spec.VolumeName)}
	again, err := storage.Provision(t.Context(), request)
	require.NoError(t, err)
	assert.Nil(t, again.Spec.NodeAffinity, "it is where it was made")
	assert.Len(t, storage.Kept(), 1)
}

func TestStorageOnANode(t *testing.T) {
	storage := bindingtest.NewStorage()
	claim := bindingtest.Claim("default", "data", "1Gi", func(claim pvc) { claim.UID = "u" })
	made, err := storage.Provision(t.Context(), hooks.ProvisionRequest{Claim: claim, Node: "n", Volume: bindingtest.Volume("pvc-u", "1Gi")})
	require.NoError(t, err)
	assert.Equal(t, []string{"n"}, made.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values)
	assert.Equal(t, "n", storage.Kept()[0].Node)
}

func TestStorageRecyclesAVolumeOfASource(t *testing.T) {
	storage := bindingtest.NewStorage()
	volume := bindingtest.Volume("a", "1Gi", func(v pv) { v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle })
	storage.Add(volume)
	cluster := testkit.NewDrivenWith(
		bindingtest.DriverOptions{BindingOptions: decision.Options{Protection: decision.ProtectionOn}, Hooks: storage.Hooks(dirs, "hostPath")},
		volume, bindingtest.Claim("default", "data", "1Gi"),
	)
	require.NoError(t, cluster.Settle(t.Context()))
	storage.Write("a")
	require.NoError(t, cluster.Delete(t.Context(), dataClaim, metav1.DeleteOptions{}))
	require.NoError(t, cluster.Settle(t.Context()))
	assert.Equal(t, bindingtest.Scrubbed, storage.Kept()[0].Content, "R4")
	assert.Equal(t, corev1.VolumeAvailable, cluster.Volume("a").Status.Phase)
	assert.Empty(t, storage.Problems())
}

func TestStorageFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault bindingtest.StorageHook
		first string
	}{
		"fails":       {bindingtest.FailStorage(1, bindingtest.AnyStorageCall, errBroken), "provision pvc-uid-2: failed: " + errBroken.Error()},
		"lies":        {bindingtest.LieStorage(1, bindingtest.AnyStorageCall), "provision pvc-uid-2: made, but answered: " + bindingtest.ErrAnswerLost.Error()},
		"in progress": {bindingtest.DelayStorage(1, bindingtest.AnyStorageCall, time.Minute), "provision pvc-uid-2: failed: InProgress"},
		"panics":      {bindingtest.PanicStorage(1, bindingtest.OnStorage(bindingtest.StorageProvision)), "provision pvc-uid-2: failed: bindingtest: the storage panicked"},
	} {
		t.Run("Rh "+name, func(t *testing.T) {
			cluster, storage := newProvisioned(t, test.fault)
			require.Len(t, storage.Calls(), 1)
			assert.Equal(t, test.first, storage.Calls()[0].String())
			assert.Empty(t, storage.Problems(), "the claim stands for what was made")
			require.Len(t, cluster.Delayed(), 1, "W6")
			require.NoError(t, cluster.AdvanceClock(t.Context()))
			assert.Equal(t, corev1.ClaimBound, cluster.Claim("default", "data").Status.Phase)
			assert.Len(t, storage.Kept(), 1)
		})
	}
}

func TestStorageHooksNest(t *testing.T) {
	var order []string
	hook := func(name string) bindingtest.StorageHook {
		return func(_ context.Context, call *bindingtest.StorageCall, do func() error) error {
			order = append(order, name)
			err := do()
			order = append(order, name+" "+string(call.Effect))
			return err
		}
	}
	newProvisioned(t, hook("outer"), hook("inner"))
	assert.Equal(t, []string{"outer", "inner", "inner made", "outer made"}, order)
}

func TestStorageCloneGoesItsOwnWay(t *testing.T) {
	cluster, storage := newProvisioned(t)
	clone := storage.Clone()
	clone.Attach(cluster.Server.Clone())
	deleteStorage(t, clone, "pvc-uid-2")
	assert.Len(t, storage.Kept(), 1)
	assert.Len(t, storage.Calls(), 1)
	assert.Empty(t, storage.Problems())
	assert.Empty(t, clone.Kept())
	assert.NotEmpty(t, clone.Problems())
}

func TestStorageHooksByName(t *testing.T) {
	storage := bindingtest.NewStorage()
	set := storage.Hooks(dirs, "hostPath", "nfs")
	assert.Equal(t, map[string]hooks.Provisioner{dirs: storage}, set.Provisioners)
	assert.Equal(t, map[string]hooks.Deleter{dirs: storage}, set.Deleters)
	assert.Equal(t, map[string]hooks.Deleter{"hostPath": storage, "nfs": storage}, set.SourceDeleters)
	assert.Equal(t, map[string]hooks.Recycler{"hostPath": storage, "nfs": storage}, set.Recyclers)
	assert.True(t, errors.Is(storage.Delete(t.Context(), hooks.ReclaimRequest{Volume: bindingtest.Volume("a", "1Gi")}), nil))
	assert.Equal(t, []string{"the storage is attached to no server in memory, so that nobody knows what is in use: look at Kept and Calls"}, storage.Problems())
}
