package binding_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// TestModelStorageIsLikeTheOther makes the same calls on the model's storage and on bindingtest.Storage, and compares
// what is there after each.
func TestModelStorageIsLikeTheOther(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, 0))
	things := newThings([]obj.Key{obj.VolumeKey("a"), obj.VolumeKey("b"), obj.VolumeKey("c")})
	var tiny tinyStorage
	large := bindingtest.NewStorage()
	for range 2000 {
		at := random.IntN(len(things.keys))
		volume := bindingtest.Volume(things.keys[at].Name, "1Gi")
		claim := bindingtest.Claim("default", volume.Name, "1Gi")
		call := []string{"provision", "delete", "recycle", "write"}[random.IntN(4)]
		switch call {
		case "provision":
			tiny.provision(at)
			_, err := large.Provision(t.Context(), binding.ProvisionRequest{Claim: claim, Volume: volume})
			require.NoError(t, err)
		case "delete":
			tiny.delete(at)
			require.NoError(t, large.Delete(t.Context(), volume))
		case "recycle":
			tiny.recycle(at)
			require.NoError(t, large.Recycle(t.Context(), volume))
		case "write":
			tiny.write(at)
			large.Write(volume.Name)
		}
		var kept, written places
		for _, storage := range large.Kept() {
			here := place(things.place(obj.VolumeKey(storage.Volume)))
			kept |= here
			if storage.Content == bindingtest.Written {
				written |= here
			}
		}
		require.Equal(t, []places{kept, written}, []places{tiny.kept, tiny.written}, "seed %d: after %s %s", seed, call, volume.Name)
	}
}

// TestModelNoticesLostStorage holds the judgement of what is stored at the end to what it is there for.
func TestModelNoticesLostStorage(t *testing.T) {
	m := newModel(worldNamed("a provisioned claim"))
	now := m.beginning()
	made := m.place(obj.VolumeKey("pvc-a.1"))
	require.True(t, now.storage.kept.has(made))
	require.Empty(t, judgeStorage(&now.server, now.storage))

	lost := *now
	lost.server.remove(made)
	require.Equal(t, []string{"P2: the storage of pvc-a.1 is lost track of"}, judgeStorage(&lost.server, lost.storage))

	gone := *now
	gone.storage.delete(made)
	require.Equal(t, []string{"R3: pvc-a.1 has no storage any more"}, judgeStorage(&gone.server, gone.storage))

	retained := *now
	editing(func(_ *tinyServer, object obj.Object) bool {
		object.(*corev1.PersistentVolume).Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		return true
	})(&retained.server, made)
	before := retained.server.objects[made]
	retained.server.remove(made)
	m.leave(&retained, made, before)
	require.Empty(t, judgeStorage(&retained.server, retained.storage))
}
