package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// What an informer has stored and not yet reported is planned with. These informers are never started, so that nothing is
// reported at all.
func TestExecutorPlansWithWhatIsStored(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	volumes, err := clientgo.NewExecutor(fake.NewClientset(), factory)
	require.NoError(t, err)
	pod := bindingtest.Pod("default", "web", "", "data")
	fits := func() bool {
		plan, err := scheduling.PlanPod(volumes.Request(pod), bindingtest.Node("node", "zone"))
		return err == nil && plan.Fits()
	}
	require.NoError(t, factory.Storage().V1().StorageClasses().Informer().GetStore().Add(waiting("local")))
	assert.False(t, fits(), "the claim is absent")
	claim := bindingtest.Claim("default", "data", "5Gi", inClass("local"))
	require.NoError(t, factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().Add(claim))
	assert.False(t, fits(), "no volume")
	disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
		v.UID, v.ResourceVersion, v.Spec.StorageClassName = "uid", "7", "local"
	})
	store := factory.Core().V1().PersistentVolumes().Informer().GetStore()
	require.NoError(t, store.Add(disk))
	assert.True(t, fits())
	taken := disk.DeepCopy()
	taken.ResourceVersion, taken.Spec.ClaimRef = "8", &corev1.ObjectReference{Namespace: "default", Name: "other"}
	require.NoError(t, store.Update(taken))
	assert.False(t, fits(), "it was taken")
	store.Bookmark("9")
	assert.False(t, fits())
}

// S3: an informer of CSINodes tells which plugins are migrated.
func TestExecutorHonoursMigration(t *testing.T) {
	disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
		v.Labels = map[string]string{corev1.LabelTopologyZone: "elsewhere"}
		v.Spec.StorageClassName = "local"
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid"}
	})
	claim := bindingtest.Claim("default", "data", "5Gi", inClass("local"), func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Annotations = "disk", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	})
	server := newServer(t, waiting("local"), disk, claim, bindingtest.Pod("default", "web", "", "data"), &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name: "migrated", Annotations: map[string]string{corev1.MigratedPluginsAnnotationKey: "kubernetes.io/gce-pd"}}})
	volumes := executorOn(t, server)
	reasons := func(node string) []scheduling.NodeReason {
		plan, err := scheduling.PlanPod(volumes.Request(podOf(t, server, "web")), bindingtest.Node(node, "zone"))
		require.NoError(t, err)
		return plan.NodeReasons()
	}
	assert.Empty(t, reasons("not-yet"))
	assert.Equal(t, []scheduling.NodeReason{scheduling.NodeAffinityConflict}, reasons("migrated"))
}
