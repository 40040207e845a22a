package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// plugin is what a plugin of kube-scheduler does about the volumes of one pod, with the framework left out.
type plugin struct {
	volumes    *clientgo.Executor
	timeout    time.Duration
	assumption *scheduling.Assumption // that a real plugin keeps in the CycleState of the pod
}

// reserve chooses the volumes; nothing is written.
func (p *plugin) reserve(pod *corev1.Pod, node *corev1.Node) error {
	plan, err := scheduling.PlanPod(p.volumes.Request(pod), node)
	if err != nil || !plan.Fits() {
		return errors.Join(err, fmt.Errorf("%v", plan.NodeReasons()))
	}
	var ok bool
	if p.assumption, ok = p.volumes.Assume(plan); !ok {
		return errors.New("another pod was faster")
	}
	return nil
}

// preBind returns the status that the scheduler is told.
func (p *plugin) preBind(ctx context.Context, pod *corev1.Pod, node *corev1.Node) string {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	if err := p.volumes.BindVolumes(ctx, pod, node, p.assumption); err != nil {
		return "Error: " + err.Error() // the scheduler tries again after the back-off of the pod
	}
	return "Success"
}

func (p *plugin) unreserve() { p.assumption.Revert() }

// A plugin of kube-scheduler: Reserve assumes, PreBind binds, Unreserve reverts.
func ExampleExecutor() {
	clientset := fake.NewClientset(bindingtest.Pod("default", "web", "", "data"), bindingtest.Claim("default", "data", "5Gi", inClass("local")),
		bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" }), waiting("local"))
	apitest.Back(clientset)
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(clientset, 0) // in a plugin, those of the framework.Handle
	volumes, err := clientgo.NewExecutor(clientset, factory)
	if err != nil {
		log.Fatal(err)
	}
	factory.Start(ctx.Done())
	volumes.Synced(ctx)
	var binder sync.WaitGroup // what binds claims in the cluster
	binder.Go(func() {
		_ = (&clientgo.Runner{Clientset: clientset, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
	})

	pod, _ := clientset.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
	node := bindingtest.Node("node", "zone")
	plugin := plugin{volumes: volumes, timeout: 10 * time.Minute}
	if err := plugin.reserve(pod, node); err != nil {
		log.Fatal(err)
	}
	status := plugin.preBind(ctx, pod, node)
	if status != "Success" {
		plugin.unreserve()
	}
	fmt.Println(status)
	claim, _ := clientset.CoreV1().PersistentVolumeClaims("default").Get(ctx, "data", metav1.GetOptions{})
	fmt.Println(claim.Name, "has", claim.Spec.VolumeName) // its status follows
	cancel()
	binder.Wait()
	factory.Shutdown()
	// Output:
	// Success
	// data has disk
}

func inClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func waiting(name string, changes ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	waits := func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	return bindingtest.Class(name, append(changes, waits)...)
}

// executorOn is an Executor on informers of a server that has these objects; their context ends with the test.
func executorOn(t *testing.T, server *apitest.Server) *clientgo.Executor {
	t.Helper()
	set, err := kubernetes.NewForConfig(server.Start(t))
	require.NoError(t, err)
	var volumes *clientgo.Executor
	factory := clientgo.NewSchedulingInformers(set, func(string, error) { volumes.ServerWentBack() })
	volumes, err = clientgo.NewExecutor(set, factory)
	require.NoError(t, err)
	_, err = clientgo.NewExecutor(set, factory)
	require.NoError(t, err, "another on the same informers")
	factory.StartWithContext(t.Context())
	t.Cleanup(func() { clientgo.Shutdown(factory) })
	require.True(t, volumes.Synced(t.Context()))
	return volumes
}

func podOf(t *testing.T, server *apitest.Server, name string) *corev1.Pod {
	t.Helper()
	stored, err := server.Get(t.Context(), bindingtest.PodKey("default", name))
	require.NoError(t, err)
	return stored.(*corev1.Pod)
}

// S8: the outcomes as a plugin sees them.
func TestExecutorInAPlugin(t *testing.T) {
	onVolume := bindingtest.On(bindingtest.VerbUpdate, obj.KindVolume)
	conflicts := func(call *bindingtest.Call, do func() error) error {
		if onVolume(call) {
			return apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumes"}, "disk", errors.New("somebody writes it all the time"))
		}
		return do()
	}
	for name, c := range map[string]struct {
		fault bindingtest.Hook
		want  string
	}{
		"S8 a conflict":                {bindingtest.Conflict(1, onVolume), "Error: waiting for pvc/default/data to be bound to disk: context deadline exceeded"},
		"S8 nothing but conflicts":     {conflicts, "Error: something has changed since the plan was made: pre-bind disk to default/data: "},
		"S8 the write is rejected":     {bindingtest.Fail(1, onVolume, errors.New("connection reset")), "Error: pre-bind disk to default/data: "},
		"S8 B6 the reply is lost":      {bindingtest.LoseAnswer(1, onVolume), "Error: waiting for pvc/default/data to be bound to disk: context deadline exceeded"},
		"S8 nobody binds the claim":    {bindingtest.Before(1, onVolume, func() {}), "Error: waiting for pvc/default/data to be bound to disk: context deadline exceeded"},
		"S8 another's reply, no proof": {bindingtest.Answer(1, onVolume, &corev1.PersistentVolume{}), "Error: waiting for pvc/default/data to be bound to disk: "},
	} {
		t.Run(name, func(t *testing.T) {
			disk := bindingtest.Volume("disk", "10Gi", func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "local" })
			server := newServer(t, waiting("local"), disk, bindingtest.Claim("default", "data", "5Gi", inClass("local")), bindingtest.Pod("default", "web", "", "data"))
			p := plugin{volumes: executorOn(t, server), timeout: 200 * time.Millisecond}
			web, node := podOf(t, server, "web"), bindingtest.Node("node", "zone")
			require.NoError(t, p.reserve(web, node))
			server.Client.Use(c.fault)
			assert.Contains(t, p.preBind(t.Context(), web, node), c.want)
			p.unreserve()
		})
	}
}

// S5, S8: what is looked up beside claims and volumes, and the end of pods that the informer has and that it does not have.
func TestExecutorLooksUp(t *testing.T) {
	const driver = "disks.example.com"
	server := newServer(t, waiting("made", func(c *storagev1.StorageClass) { c.Provisioner = driver }),
		bindingtest.Claim("default", "logs", "5Gi", inClass("made")), bindingtest.Pod("default", "web", "", "logs"))
	server.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}}
	server.Capacities = []*storagev1.CSIStorageCapacity{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "room"}, StorageClassName: "made",
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: "a"}}, Capacity: new(resource.MustParse("100Gi")),
	}}
	p := plugin{volumes: executorOn(t, server), timeout: patience}
	web := podOf(t, server, "web")
	require.ErrorContains(t, p.reserve(web, bindingtest.Node("node-b", "b")), string(scheduling.NodeNoStorage))
	require.NoError(t, p.reserve(web, bindingtest.Node("node-a", "a")))
	status := make(chan string, 1)
	go func() { status <- p.preBind(t.Context(), web, bindingtest.Node("node-a", "a")) }()
	require.Eventually(t, func() bool {
		return server.Claim("default", "logs").Annotations["volume.kubernetes.io/selected-node"] == "node-a"
	}, patience, time.Millisecond)
	require.NoError(t, server.Delete(t.Context(), bindingtest.PodKey("default", "web"), metav1.DeleteOptions{}))
	assert.Equal(t, "Error: the pod does not exist any more", <-status)

	_, err := server.Create(t.Context(), bindingtest.Pod("default", "web", "", "logs"))
	require.NoError(t, err)
	require.NoError(t, p.reserve(web, bindingtest.Node("node-a", "a")))
	assert.Equal(t, "Error: the pod does not exist any more", p.preBind(t.Context(), web, bindingtest.Node("node-a", "a")), "one of its name is another pod")
}
