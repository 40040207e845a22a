package preview_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/preview"
)

var metaDelete = metav1.DeleteOptions{}

// What happens anyway is not the changes' doing.
func TestUnsettled(t *testing.T) {
	released := bindingtest.Volume("old", "1Gi", policy("Delete"))
	released.UID, released.Status.Phase = "uid-of-old", corev1.VolumeReleased
	released.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "gone", UID: "was"}
	objects := []obj.Object{volumeOf(), claimOf(), released}
	outcome, err := preview.Of(t.Context(), preview.Cluster{Objects: objects, Options: withHooks()}, preview.Delete(claimOf()))
	require.NoError(t, err)
	assert.Equal(t, "pv/pv-1: Bound -> Released\n"+
		"pvc/shop/orders: Bound -> gone\n"+
		"storage of pv/pv-1: Kept, with the data of shop/orders: its reclaim policy is Retain\n"+
		"without the changes, for it was not at rest:\n"+
		"  pv/old: Released -> gone\n"+
		"  pv/pv-1: Pending -> Bound\n"+
		"  pvc/shop/orders: Pending -> Bound\n"+
		"  storage of pv/old: Deleted by hostPath, with the data of shop/gone\n", outcome.String())
}

// An edit changes what it says, and leaves what the controller wrote since.
func TestUpdateIsMerged(t *testing.T) {
	claim := claimOf()
	labelled := claim.DeepCopy()
	labelled.Labels = map[string]string{"app": "shop"}
	kept := volumeOf()
	kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	objects := []obj.Object{volumeOf(policy("Delete"), provisionedBy(external)), claim}
	outcome, err := preview.Of(t.Context(), preview.Cluster{Objects: objects}, preview.Update(labelled), preview.Update(kept), preview.Delete(claim))
	require.NoError(t, err)
	require.Len(t, outcome.Storage, 1)
	assert.Equal(t, preview.Kept, outcome.Storage[0].Outcome)
	assert.Len(t, outcome.Phases, 2, "it was bound")
}

func TestWhatCannotBeDone(t *testing.T) {
	pair := []obj.Object{volumeOf(), claimOf()}
	grown := volumeOf()
	grown.Spec.HostPath.Path = "/elsewhere"
	for name, test := range map[string]struct {
		objects []obj.Object
		change  preview.Change
		want    string
	}{
		"A4 an edit that the server refuses": {pair, preview.Update(grown), "spec.persistentvolumesource: Forbidden"},
		"a deletion of what is not there":    {pair, preview.Delete(bindingtest.Claim("shop", "other", "1Gi")), `persistentvolumeclaims "other" not found`},
		"an edit of what is not there":       {pair, preview.Update(bindingtest.Claim("shop", "other", "1Gi")), `persistentvolumeclaims "other" not found`},
		"nothing":                            {pair, preview.Change{}, "without an object"},
		"another kind":                       {pair, preview.Delete(&corev1.Secret{}), "are not stored"},
		"another kind in the cluster":        {[]obj.Object{&corev1.Secret{}}, preview.Delete(claimOf()), "are not stored"},
		"an object twice":                    {[]obj.Object{stored(volumeOf()), stored(volumeOf())}, preview.Delete(volumeOf()), "cannot load pv/pv-1: it is there already"},
		"an object that the server refuses":  {[]obj.Object{&corev1.PersistentVolume{}}, preview.Delete(volumeOf()), "is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := preview.Of(t.Context(), preview.Cluster{Objects: test.objects}, test.change)
			assert.ErrorContains(t, err, test.want)
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := preview.Of(ended, preview.Cluster{Objects: []obj.Object{stored(volumeOf())}})
	assert.ErrorIs(t, err, context.Canceled)
}

func stored(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	volume.UID = "uid"
	return volume
}

// X7: a bad object is reported, and the rest goes on.
func TestX7Problems(t *testing.T) {
	bad := claimOf(func(c *corev1.PersistentVolumeClaim) {
		c.Name, c.UID = "bad", "uid-of-bad"
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("-1Gi")
	})
	objects := []obj.Object{volumeOf(), claimOf(), bad}
	outcome, err := preview.Of(t.Context(), preview.Cluster{Objects: objects}, preview.Delete(claimOf()))
	require.NoError(t, err)
	require.Len(t, outcome.Problems, 1)
	assert.Contains(t, outcome.Problems[0], "pvc/shop/bad")
	assert.Contains(t, outcome.String(), "no decision: pvc/shop/bad: ")
	assert.Len(t, outcome.Phases, 2)
}

func TestJSON(t *testing.T) {
	outcome, err := preview.Of(t.Context(), preview.Cluster{})
	require.NoError(t, err)
	text, err := json.Marshal(outcome)
	require.NoError(t, err)
	assert.JSONEq(t, `{"phases":[],"storage":[],"blocked":[],"unsettled":{"phases":[],"storage":[],"blocked":[]},"problems":[]}`, string(text))
}

// TestOfALargeCluster previews the end of a namespace in a cluster of 50,000 volumes.
func TestOfALargeCluster(t *testing.T) {
	volumes := 50_000
	if testing.Short() {
		volumes = 2_000
	}
	objects := manyPairs(volumes)
	var changes []preview.Change
	for _, object := range objects {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Namespace == "team-0" {
			changes = append(changes, preview.Delete(claim))
		}
	}
	start := time.Now()
	outcome, err := preview.Of(t.Context(), preview.Cluster{Objects: objects}, changes...)
	require.NoError(t, err)
	assert.True(t, outcome.Unsettled.Empty())
	assert.Len(t, outcome.Storage, volumes/10)
	t.Logf("%d volumes and claims, %d deletions: %s", volumes, len(changes), time.Since(start))
	assert.Less(t, time.Since(start), time.Minute, "it takes a few seconds")
}

// manyPairs returns as many volumes and claims, bound, in ten namespaces.
func manyPairs(n int) []obj.Object {
	var objects []obj.Object
	for i := range n {
		volume := bindingtest.Volume(fmt.Sprintf("pv-%06d", i), "5Gi", policy("Delete"), provisionedBy(external), volumeFinalizer("kubernetes.io/pv-protection"))
		claim := bindingtest.Claim(fmt.Sprintf("team-%d", i%10), fmt.Sprintf("data-%d", i), "5Gi", naming(volume.Name))
		volume.UID, volume.ResourceVersion = types.UID(fmt.Sprint("volume-", i)), fmt.Sprint(2*i+1)
		claim.UID, claim.ResourceVersion = types.UID(fmt.Sprint("claim-", i)), fmt.Sprint(2*i+2)
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		volume.Status.Phase, claim.Status.Phase = corev1.VolumeBound, corev1.ClaimBound
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
		claim.Status.AccessModes, claim.Status.Capacity = volume.Spec.AccessModes, volume.Spec.Capacity
		objects = append(objects, volume, claim)
	}
	return objects
}
