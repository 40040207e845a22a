package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// cluster is one with a class whose volumes are directories in the place.
func (p place) cluster(objects ...obj.Object) *cluster {
	return newCluster(p.hooks(), append([]obj.Object{class("fast", corev1.PersistentVolumeReclaimDelete)}, objects...)...)
}

func settle(t *testing.T, cluster *cluster) {
	t.Helper()
	require.NoError(t, cluster.Settle(t.Context()))
}

func TestP2TheNodeThatWasSelected(t *testing.T) {
	p := newPlace(t)
	data := claim("data", "fast")
	data.Annotations = map[string]string{storageclass.SelectedNodeAnnotation: "node-1"}
	cluster := p.cluster(data)
	settle(t, cluster)
	bound := cluster.Claim(namespace, "data")
	require.Equal(t, corev1.ClaimBound, bound.Status.Phase)
	assert.Equal(t, only("node-1"), cluster.Volume(bound.Spec.VolumeName).Spec.NodeAffinity)
}

// The controller crashes after each of its writes in turn and knows nothing afterwards; meanwhile the claim is
// deleted. Whatever was made is found and deleted.
func TestNothingIsLeftOfAClaimDeletedMeanwhile(t *testing.T) {
	for writes := range 6 {
		p := newPlace(t)
		before := p.contents()
		cluster := p.cluster(claim("data", "fast"))
		cluster.Client.CrashAfter(writes)
		require.ErrorIs(t, cluster.Settle(t.Context()), bindingtest.ErrCrashed)
		require.NoError(t, cluster.Delete(t.Context(), obj.ClaimKey(namespace, "data"), metav1.DeleteOptions{}))
		cluster.Restart()
		settle(t, cluster)
		volumes, err := cluster.List(t.Context(), obj.KindVolume, "")
		require.NoError(t, err)
		assert.Empty(t, volumes, "after %d writes", writes)
		assert.Nil(t, cluster.Claim(namespace, "data"), "after %d writes", writes)
		assert.Equal(t, before, p.contents(), "after %d writes", writes)
	}
}

// The volume is never stored, so the deleter goes by its name.
func TestP2AVolumeThatCannotBeStored(t *testing.T) {
	p := newPlace(t)
	before := p.contents()
	cluster := p.cluster(claim("data", "fast"))
	made := false
	cluster.Client.Use(func(call *bindingtest.Call, do func() error) error {
		if call.Verb != bindingtest.VerbCreate || call.Key.Kind != obj.KindVolume {
			return do()
		}
		_, err := os.Stat(p.path(call.Key.Name))
		made = made || err == nil
		cluster.Client.CrashAfter(0)
		return errors.New("the server is gone")
	})
	require.ErrorIs(t, cluster.Settle(t.Context()), bindingtest.ErrCrashed)
	require.True(t, made)
	require.NotEqual(t, before, p.contents())
	require.NoError(t, cluster.Delete(t.Context(), obj.ClaimKey(namespace, "data"), metav1.DeleteOptions{}))
	cluster.Restart()
	settle(t, cluster)
	assert.Nil(t, cluster.Claim(namespace, "data"))
	assert.Equal(t, before, p.contents())
}

// Somebody makes a volume of a place outside the root, and has a claim take and drop it.
func TestVolumesOfPlacesOutsideTheRoot(t *testing.T) {
	for policy, reason := range map[corev1.PersistentVolumeReclaimPolicy]decision.EventReason{
		corev1.PersistentVolumeReclaimDelete:  reclaim.EventFailedDelete,
		corev1.PersistentVolumeReclaimRecycle: reclaim.EventFailedRecycle,
	} {
		t.Run(string(policy), func(t *testing.T) {
			p := newPlace(t)
			before := p.contents()
			evil := byHand("evil", p.directories)
			evil.Spec.HostPath.Path = filepath.Join(p.base, "outside")
			evil.Spec.PersistentVolumeReclaimPolicy = policy
			cluster := p.cluster(evil, claim("data", ""))
			settle(t, cluster)
			require.NoError(t, cluster.Delete(t.Context(), obj.ClaimKey(namespace, "data"), metav1.DeleteOptions{}))
			settle(t, cluster)

			assert.Equal(t, corev1.VolumeFailed, cluster.Volume("evil").Status.Phase)
			assert.Contains(t, cluster.Volume("evil").Status.Message, "and not the volume's own directory")
			events := cluster.Events()
			assert.Equal(t, reason, events[len(events)-1].Reason)
			assert.Empty(t, cluster.Delayed(), "Rh: what is refused is not tried again")
			assert.Equal(t, before, p.contents())
		})
	}
}

func TestAClaimThatADirectoryCannotServe(t *testing.T) {
	p := newPlace(t)
	before := p.contents()
	data := claim("data", "fast")
	data.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	cluster := p.cluster(data)
	settle(t, cluster)
	events := cluster.Events()
	require.Len(t, events, 1)
	assert.Equal(t, decision.EventProvisioningFailed, events[0].Reason)
	assert.Contains(t, events[0].Message, "a directory is no block device")
	assert.Empty(t, cluster.Delayed(), "Rh: what is refused is not tried again")
	require.NoError(t, cluster.Delete(t.Context(), obj.ClaimKey(namespace, "data"), metav1.DeleteOptions{}))
	settle(t, cluster)
	assert.Nil(t, cluster.Claim(namespace, "data"))
	assert.Equal(t, before, p.contents())
}
