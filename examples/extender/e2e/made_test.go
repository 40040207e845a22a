package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// selected waits until a volume is to be made for the claim, and returns the node it is for.
func (c *cluster) selected(claim string) (node string) {
	c.Helper()
	eventually(c.T, func() bool {
		stored := c.stored(claim)
		node = stored.Annotations[storageclass.SelectedNodeAnnotation]
		return node != "" && stored.Annotations["volume.kubernetes.io/storage-provisioner"] == c.disks()
	}, "the provisioner is asked for "+claim)
	return node[len(c.name)+1:]
}

// provide makes the volume, as a provisioner does.
func (c *cluster) provide(claim, node string) {
	c.Helper()
	stored := c.stored(claim)
	volume := c.volume("pvc-"+string(stored.UID), "5Gi", "made", node)
	volume.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.name, Name: claim, UID: stored.UID}
	_, err := client.CoreV1().PersistentVolumes().Create(c.Context(), volume, metav1.CreateOptions{})
	require.NoError(c, err)
}

// fail does what a provisioner does that cannot make a volume for the node.
func (c *cluster) fail(claim string) {
	c.Helper()
	c.change(claim, func(claim *corev1.PersistentVolumeClaim) {
		delete(claim.Annotations, storageclass.SelectedNodeAnnotation)
	})
}

// driver tells that capacities count.
func (c *cluster) driver() {
	c.Helper()
	_, err := client.StorageV1().CSIDrivers().Create(c.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: c.disks()}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}, metav1.CreateOptions{})
	require.NoError(c, err)
}

func (c *cluster) capacity(node, size string) *storagev1.CSIStorageCapacity {
	c.Helper()
	stored, err := client.StorageV1().CSIStorageCapacities(c.name).Create(c.Context(), &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Name: node},
		StorageClassName: c.of("made"),
		NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: c.of(node)}},
		Capacity:         new(resource.MustParse(size)),
	}, metav1.CreateOptions{})
	require.NoError(c, err)
	return stored
}

// A pod with a volume that is there and one that is made: both on one node, and the pod last.
func TestDynamicProvisioning(t *testing.T) {
	c := newCluster(t, "made")
	c.class("local")
	c.class("made", c.provisioned)
	c.node("n1")
	c.node("n2")
	c.node("n3")
	c.disk("d2", "10Gi", "n2")
	_, address := startExtender(t)
	startScheduler(t, address, true)
	c.claim("data", "5Gi", "local")
	c.claim("logs", "1Gi", "made")
	c.pod("web", "data", "logs")
	assert.Equal(t, "n2", c.selected("logs"), "where the local volume is")
	assert.Empty(t, c.nodeOf("web"), "S8 the pod is bound last")
	c.provide("logs", "n2")
	assert.Equal(t, "n2", c.scheduled("web"))
	assert.Equal(t, corev1.ClaimBound, c.stored("logs").Status.Phase)
	assert.Equal(t, c.of("d2"), c.stored("data").Spec.VolumeName)
}

// A provision that fails takes its node off the claim, and the pod is scheduled anew: here to another node, for the
// first one turns out to be full.
func TestScheduledAnewAfterAFailedProvision(t *testing.T) {
	c := newCluster(t, "anew")
	c.class("made", c.provisioned)
	c.driver()
	first := c.capacity("n1", "10Gi")
	c.capacity("n2", "100Gi")
	c.capacity("n3", "1Gi")
	c.node("n1")
	c.node("n2")
	c.node("n3")
	_, address := startExtender(t)
	startScheduler(t, address, true)
	c.claim("logs", "5Gi", "made")
	c.pod("web", "logs")
	require.Equal(t, "n1", c.selected("logs"), "S10 it is filled most")
	first.Capacity = new(resource.MustParse("0"))
	_, err := client.StorageV1().CSIStorageCapacities(c.name).Update(t.Context(), first, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.fail("logs")
	eventually(t, func() bool { return c.selected("logs") == "n2" }, "the next best node is selected")
	c.provide("logs", "n2")
	assert.Equal(t, "n2", c.scheduled("web"))
}

// An extender that ends in the middle of a bind leaves nothing behind that the next one does not finish.
func TestAnotherExtenderGoesOn(t *testing.T) {
	c := newCluster(t, "other")
	c.class("made", c.provisioned)
	c.node("n1")
	first, address := startExtender(t, "--shutdown-timeout=50ms")
	scheduler := startScheduler(t, address, true)
	c.claim("logs", "5Gi", "made")
	c.pod("web", "logs")
	require.Equal(t, "n1", c.selected("logs"))
	require.NoError(t, first.Stop(30*time.Second), "it ends as it was told to")
	scheduler.Kill()
	c.provide("logs", "n1")
	assert.Empty(t, c.nodeOf("web"))
	_, address = startExtender(t)
	startScheduler(t, address, true)
	assert.Equal(t, "n1", c.scheduled("web"))
}
