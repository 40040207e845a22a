package bindingtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/bindingtest/internal/must"
)

// ownedBy makes owners of the objects of these UIDs.
func ownedBy(owners ...types.UID) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		for _, uid := range owners {
			claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: string(uid), UID: uid})
		}
	}
}

// collect collects garbage, and returns the keys of what was deleted.
func collect(t *testing.T, server *bindingtest.Server) (keys []string) {
	t.Helper()
	collected, err := server.CollectGarbage(t.Context())
	require.NoError(t, err)
	for _, object := range collected {
		key, err := bindingtest.KeyOf(object)
		require.NoError(t, err)
		assert.Nil(t, object.GetDeletionTimestamp(), "as it was")
		keys = append(keys, key.String())
	}
	return keys
}

func TestCollectGarbage(t *testing.T) {
	server := bindingtest.NewServer()
	web := must.Create(t, server, bindingtest.Pod("shop", "web", "n1")).UID
	job := must.Create(t, server, bindingtest.Pod("shop", "job", "n1")).UID
	for name, owners := range map[string][]types.UID{
		"web-b": {web}, "web-a": {web}, "free": nil, "of-both": {job, web}, "of-job": {job}, "of-web-and-somebody": {web, "uid-of-a-set"}, "of-somebody": {"uid-of-a-set"},
	} {
		must.Create(t, server, bindingtest.Claim("shop", name, "1Gi", ownedBy(owners...)))
	}
	assert.Empty(t, collect(t, server), "all owners are here")

	require.NoError(t, server.FinishPod(t.Context(), "shop", "web"))
	assert.Equal(t, []string{"pvc/shop/web-a", "pvc/shop/web-b"}, collect(t, server))
	assert.NotNil(t, server.Claim("shop", "web-a").DeletionTimestamp, "A5 its finalizer holds it")
	assert.Empty(t, collect(t, server), "once is enough")

	clone := server.Clone()
	require.NoError(t, clone.FinishPod(t.Context(), "shop", "job"))
	assert.Equal(t, []string{"pvc/shop/of-both", "pvc/shop/of-job"}, collect(t, clone))
	assert.Empty(t, collect(t, server), "the clone goes its own way")
}

func TestCollectGarbageGoesOnWithWhatThatOwned(t *testing.T) {
	server := bindingtest.NewServer()
	web := must.Create(t, server, bindingtest.Pod("shop", "web", "n1")).UID
	data := must.Create(t, server, bindingtest.Claim("shop", "data", "1Gi", ownedBy(web))).UID
	must.Create(t, server, bindingtest.Claim("shop", "scratch", "1Gi", ownedBy(data)))
	require.NoError(t, server.FinishPod(t.Context(), "shop", "web"))
	assert.Equal(t, []string{"pvc/shop/data"}, collect(t, server))
	assert.Empty(t, collect(t, server), "its owner is being deleted, and is here")
	must.Update(t, server, server.Claim("shop", "data"), func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
	assert.Equal(t, []string{"pvc/shop/scratch"}, collect(t, server))
	calls := server.Calls()
	assert.Equal(t, "garbage-collector", calls[len(calls)-1].Actor)
}
