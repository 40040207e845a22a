package controllerruntime_test

import (
	"context"
	"log"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/controllerruntime"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
	"github.com/pvbind/pvbind/binding/scheduling/executor"
)

// What a scheduler does with a pod for which it has chosen a node.
func ExampleExecutor() {
	ctx := context.Background()
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	volumes, err := controllerruntime.NewExecutor(ctx, mgr)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if volumes.Synced(ctx) {
			pod, node := &corev1.Pod{}, &corev1.Node{} // whenever there is a pod to schedule, and the node that was chosen
			binding, cancel := context.WithTimeout(ctx, 10*time.Minute)
			defer cancel()
			switch err := volumes.BindVolumes(binding, pod, node, nil); executor.OutcomeOf(err) {
			case "": // bind the pod
			case executor.ScheduleElsewhere: // choose another node
			default:
				log.Print(err) // try again later
			}
		}
	}()
	log.Fatal(mgr.Start(ctx))
}

// executorOn is an Executor in a manager that runs until the test ends.
func executorOn(t *testing.T, server *apitest.Server) *controllerruntime.Executor {
	t.Helper()
	return managedExecutor(t, server, 0, ctrl.Options{Logger: logr.Discard()})
}

func waiting(name, provisioner string) *storagev1.StorageClass {
	return bindingtest.Class(name, func(c *storagev1.StorageClass) {
		c.Provisioner, c.VolumeBindingMode = provisioner, new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
}

func claimIn(name, class string) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim("default", name, "5Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class })
}

// S8: a pod with a claim that gets a volume and one that is provisioned for, then a restart of the server's watches, and the end
// of a pod that waits.
func TestExecutor(t *testing.T) {
	const driver = "disks.example.com"
	disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" })
	server := newServer(t, waiting("local", "kubernetes.io/no-provisioner"), waiting("made", driver), disk,
		claimIn("data", "local"), claimIn("logs", "made"), bindingtest.Pod("default", "web", "", "data", "logs"),
		claimIn("never", "made"), bindingtest.Pod("default", "late", "", "never"))
	server.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}}
	server.Capacities = []*storagev1.CSIStorageCapacity{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "room"}, StorageClassName: "made",
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}, Capacity: new(resource.MustParse("100Gi")),
	}}
	volumes := executorOn(t, server)
	plan := func(pod, zone string) scheduling.Plan {
		stored, err := server.Get(t.Context(), bindingtest.PodKey("default", pod))
		require.NoError(t, err)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{"zone": zone}}}
		plan, err := scheduling.PlanPod(volumes.Request(stored.(*corev1.Pod)), node)
		require.NoError(t, err)
		return plan
	}
	assert.Equal(t, []scheduling.NodeReason{scheduling.NodeNoStorage}, plan("web", "b").NodeReasons(), "S5")
	assert.Same(t, plan("web", "a").Provisions[0].Capacity, plan("web", "a").Provisions[0].Capacity)

	carryOut := func(pod string) <-chan error {
		assumption, ok := volumes.Assume(plan(pod, "a"))
		require.True(t, ok)
		ended := make(chan error, 1)
		go func() { ended <- volumes.CarryOut(t.Context(), assumption) }()
		return ended
	}
	ended, late := carryOut("web"), carryOut("late")
	eventually(t, func() bool {
		return server.Claim("default", "logs").Annotations["volume.kubernetes.io/selected-node"] == "node-a" && server.Volume("disk").Spec.ClaimRef != nil
	}, "the plan is written")
	logs := server.Claim("default", "logs")
	made := bindingtest.Volume("made", "5Gi", func(v *corev1.PersistentVolume) {
		v.Spec.StorageClassName = "made"
		v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: "logs", UID: logs.UID}
	})
	_, err := server.Create(t.Context(), made)
	require.NoError(t, err)
	manage(t, server, &controllerruntime.Reconciler{})
	require.NoError(t, <-ended)
	eventually(t, func() bool { return isBound(server, "data") && isBound(server, "logs") }, "the phase follows")

	require.NoError(t, server.Delete(t.Context(), bindingtest.PodKey("default", "late"), metav1.DeleteOptions{}))
	require.ErrorIs(t, <-late, executor.ErrPodGone)
}

// S8 B6: the reply to a write is lost; a write that is rejected fails.
func TestExecutorAfterFaults(t *testing.T) {
	disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" })
	server := newServer(t, waiting("local", "kubernetes.io/no-provisioner"), disk, claimIn("data", "local"), bindingtest.Pod("default", "web", "", "data"))
	volumes := executorOn(t, server)
	stored, err := server.Get(t.Context(), bindingtest.PodKey("default", "web"))
	require.NoError(t, err)
	carryOut := func() error {
		plan, err := scheduling.PlanPod(volumes.Request(stored.(*corev1.Pod)), bindingtest.Node("node", "zone"))
		require.NoError(t, err)
		assumption, ok := volumes.Assume(plan)
		require.True(t, ok)
		return volumes.CarryOut(t.Context(), assumption)
	}
	onVolume := bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)
	server.Client.Use(bindingtest.Conflict(1, onVolume))
	assert.Equal(t, executor.PlanAnew, executor.OutcomeOf(carryOut()))
	server.Client.Use(bindingtest.LoseAnswer(1, onVolume))
	ended := make(chan error, 1)
	go func() {
		ended <- volumes.BindVolumes(t.Context(), stored.(*corev1.Pod), bindingtest.Node("node", "zone"), nil)
	}()
	eventually(t, func() bool { return server.Volume("disk").Spec.ClaimRef != nil }, "it is written")
	manage(t, server, &controllerruntime.Reconciler{})
	require.NoError(t, <-ended)
}

// S3: the cache's CSINodes tell which plugins are migrated.
func TestExecutorHonoursMigration(t *testing.T) {
	disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) {
		v.Labels = map[string]string{corev1.LabelTopologyZone: "elsewhere"}
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	})
	claim := bindingtest.Claim("default", "data", "5Gi", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Annotations = "disk", map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	})
	migrated := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name: "migrated", Annotations: map[string]string{corev1.MigratedPluginsAnnotationKey: "kubernetes.io/gce-pd"}}}
	volumes := executorOn(t, newServer(t, disk, claim, migrated))
	reasons := func(node string) []scheduling.NodeReason {
		plan, err := scheduling.PlanPod(volumes.Request(bindingtest.Pod("default", "web", "", "data")), bindingtest.Node(node, "zone"))
		require.NoError(t, err)
		return plan.NodeReasons()
	}
	assert.Empty(t, reasons("not-yet"))
	assert.Equal(t, []scheduling.NodeReason{scheduling.NodeAffinityConflict}, reasons("migrated"))
}
