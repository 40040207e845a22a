package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/examples/cluster/clustertest"
	"github.com/pvbind/pvbind/storageclass"
)

// selected waits until a volume is to be made for the claim, and returns the node it is for.
func (c *cluster) selected(claim string) (node string) {
	c.Helper()
	clustertest.Eventually(c, func() bool {
		stored := c.StoredClaim(claim)
		node = stored.Annotations[storageclass.SelectedNodeAnnotation]
		return node != "" && stored.Annotations["volume.kubernetes.io/storage-provisioner"] == c.Disks()
	}, "the provisioner is asked for "+claim)
	return node[len(c.Namespace)+1:]
}

// provide makes the volume, as a provisioner does.
func (c *cluster) provide(claim, node string) {
	c.Helper()
	stored := c.StoredClaim(claim)
	volume := c.Disk("pvc-"+string(stored.UID), "5Gi", node)
	volume.Spec.StorageClassName = c.Of("made")
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: claim, UID: stored.UID}
	c.Create(volume)
}

// fail does what a provisioner does that cannot make a volume for the node.
func (c *cluster) fail(claim string) {
	c.Helper()
	c.change(claim, func(claim *corev1.PersistentVolumeClaim) {
		delete(claim.Annotations, storageclass.SelectedNodeAnnotation)
	})
}

// A pod with a volume that is there and one that is made: both on one node, and the pod last.
func TestDynamicProvisioning(t *testing.T) {
	c := newCluster(t, "made")
	c.Create(c.Class("local"), c.Class("made", c.Provisioned), c.Node("n1"), c.Node("n2"), c.Node("n3"), c.Disk("d2", "10Gi", "n2"))
	_, address := startExtender(t)
	startScheduler(t, address, true)
	c.Create(c.Claim("data", "5Gi", "local"), c.Claim("logs", "1Gi", "made"), c.Pod("web", "data", "logs"))
	assert.Equal(t, "n2", c.selected("logs"), "where the local volume is")
	assert.Empty(t, c.nodeOf("web"), "S8 the pod is bound last")
	c.provide("logs", "n2")
	assert.Equal(t, "n2", c.Scheduled("web"))
	assert.Equal(t, corev1.ClaimBound, c.StoredClaim("logs").Status.Phase)
	assert.Equal(t, c.Of("d2"), c.StoredClaim("data").Spec.VolumeName)
}

// A provision that fails takes its node off the claim, and the pod is scheduled anew: here to another node, for the
// first one turns out to be full.
func TestScheduledAnewAfterAFailedProvision(t *testing.T) {
	c := newCluster(t, "anew")
	c.Create(c.Class("made", c.Provisioned), c.Driver(), c.Capacity("n1", "10Gi"), c.Capacity("n2", "100Gi"), c.Capacity("n3", "1Gi"), c.Node("n1"), c.Node("n2"), c.Node("n3"))
	_, address := startExtender(t)
	startScheduler(t, address, true)
	c.Create(c.Claim("logs", "5Gi", "made"), c.Pod("web", "logs"))
	require.Equal(t, "n1", c.selected("logs"), "S10 it is filled most")
	require.NoError(t, client.StorageV1().CSIStorageCapacities(c.Namespace).Delete(t.Context(), "n1", metav1.DeleteOptions{}))
	c.fail("logs")
	clustertest.Eventually(t, func() bool { return c.selected("logs") == "n2" }, "the next best node is selected")
	c.provide("logs", "n2")
	assert.Equal(t, "n2", c.Scheduled("web"))
}

// An extender that ends in the middle of a bind leaves nothing behind that the next one does not finish.
func TestAnotherExtenderGoesOn(t *testing.T) {
	c := newCluster(t, "other")
	c.Create(c.Class("made", c.Provisioned), c.Node("n1"))
	first, address := startExtender(t, "--shutdown-timeout=50ms")
	scheduler := startScheduler(t, address, true)
	c.Create(c.Claim("logs", "5Gi", "made"), c.Pod("web", "logs"))
	require.Equal(t, "n1", c.selected("logs"))
	require.NoError(t, first.Stop(30*time.Second), "it ends as it was told to")
	scheduler.Kill()
	c.provide("logs", "n1")
	assert.Empty(t, c.nodeOf("web"))
	_, address = startExtender(t)
	startScheduler(t, address, true)
	assert.Equal(t, "n1", c.Scheduled("web"))
}
