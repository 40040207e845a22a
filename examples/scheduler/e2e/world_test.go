package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// world is a namespace, and nodes, classes and volumes with names that begin with its own. Its pods are a scheduler's, and can
// run on its nodes alone.
type world struct {
	testing.TB
	cluster
	name      string
	scheduler string
}

// ofWorld is the label of its nodes.
const ofWorld = "example.com/world"

func newWorld(t testing.TB, c cluster, name, scheduler string) *world {
	t.Helper()
	w := makeWorld(t, c, name, scheduler)
	t.Cleanup(w.end)
	return w
}

// makeWorld returns a world that ends with its control plane.
func makeWorld(t testing.TB, c cluster, name, scheduler string) *world {
	t.Helper()
	w := &world{TB: t, cluster: c, name: name, scheduler: scheduler}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return w
}

// end removes the nodes, so that nothing is said about them in other worlds.
func (w *world) end() {
	require.NoError(w, w.client.CoreV1().Nodes().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: ofWorld + "=" + w.name}))
}

func (w *world) of(name string) string { return w.name + "-" + name }

// disks is the provisioner that the tests play.
func (w *world) disks() string { return w.name + ".example.com" }

// create creates objects, many at once.
func (w *world) create(objects ...obj.Object) {
	w.Helper()
	var mutex sync.Mutex
	var failed error
	workqueue.ParallelizeUntil(context.Background(), 16, len(objects), func(i int) {
		if err := w.createOne(w.Context(), objects[i]); err != nil {
			mutex.Lock()
			defer mutex.Unlock()
			failed = err
		}
	})
	require.NoError(w, failed)
}

func (w *world) createOne(ctx context.Context, object obj.Object) (err error) {
	core, storage, options := w.client.CoreV1(), w.client.StorageV1(), metav1.CreateOptions{}
	switch object := object.(type) {
	case *corev1.Namespace:
		_, err = core.Namespaces().Create(ctx, object, options)
	case *corev1.Node:
		_, err = core.Nodes().Create(ctx, object, options)
	case *corev1.PersistentVolume:
		_, err = core.PersistentVolumes().Create(ctx, object, options)
	case *corev1.PersistentVolumeClaim:
		_, err = core.PersistentVolumeClaims(object.Namespace).Create(ctx, object, options)
	case *corev1.Pod:
		_, err = core.Pods(object.Namespace).Create(ctx, object, options)
	case *storagev1.StorageClass:
		_, err = storage.StorageClasses().Create(ctx, object, options)
	case *storagev1.CSIDriver:
		_, err = storage.CSIDrivers().Create(ctx, object, options)
	case *storagev1.CSIStorageCapacity:
		_, err = storage.CSIStorageCapacities(object.Namespace).Create(ctx, object, options)
	default:
		err = fmt.Errorf("no %T is created here", object)
	}
	return err
}

// class is one that waits for a pod.
func (w *world) class(name string, changes ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return bindingtest.Class(w.of(name), append([]func(*storagev1.StorageClass){func(class *storagev1.StorageClass) {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}}, changes...)...)
}

func (w *world) provisioned(class *storagev1.StorageClass) { class.Provisioner = w.disks() }

// node is one that a pod could run on, as far as the scheduler can tell.
func (w *world) node(name string) *corev1.Node {
	return bindingtest.Node(w.of(name), w.of("zone"), func(node *corev1.Node) {
		node.Labels[ofWorld] = w.name
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("500"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		}
		node.Status.Capacity = node.Status.Allocatable
	})
}

// disk is a volume of class local on one node; on none of this world's if node is empty.
func (w *world) disk(name, size, node string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	return bindingtest.Volume(w.of(name), size, append([]func(*corev1.PersistentVolume){func(volume *corev1.PersistentVolume) {
		volume.Spec.StorageClassName = w.of("local")
		volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/" + name}}
		volume.Spec.NodeAffinity = w.affinity(node)
	}}, changes...)...)
}

func (w *world) affinity(node string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{w.of(node)}}}}}}}
}

func (w *world) claim(name, size, class string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim(w.name, name, size, append([]func(*corev1.PersistentVolumeClaim){func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.StorageClassName = new(w.of(class))
	}}, changes...)...)
}

// pod uses the claims, and runs on nodes that are not ready too, which those of a world are not.
func (w *world) pod(name string, claims ...string) *corev1.Pod {
	pod := bindingtest.Pod(w.name, name, "", claims...)
	pod.Spec.SchedulerName = w.scheduler
	pod.Spec.NodeSelector = map[string]string{ofWorld: w.name}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

// driver tells that capacities count.
func (w *world) driver() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: w.disks()}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
}

// capacity is what can be made of class made on one node.
func (w *world) capacity(node, size string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: w.name, Name: node},
		StorageClassName: w.of("made"),
		NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: w.of(node)}},
		Capacity:         new(resource.MustParse(size)),
	}
}

func (w *world) storedPod(name string) *corev1.Pod {
	stored, err := w.client.CoreV1().Pods(w.name).Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return stored
}

func (w *world) storedClaim(name string) *corev1.PersistentVolumeClaim {
	stored, err := w.client.CoreV1().PersistentVolumeClaims(w.name).Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return stored
}

// available waits until the volumes of the world can be chosen by whoever waits for their phase.
func (w *world) available(names ...string) {
	w.Helper()
	for _, name := range names {
		eventually(w, func() bool {
			stored, err := w.client.CoreV1().PersistentVolumes().Get(context.Background(), w.of(name), metav1.GetOptions{})
			require.NoError(w, err)
			return stored.Status.Phase == corev1.VolumeAvailable
		}, "%s is Available", name)
	}
}

// scheduled waits for the pod to be bound to one of the nodes, and returns which.
func (w *world) scheduled(pod string) (node string) {
	w.Helper()
	eventually(w, func() bool {
		node = strings.TrimPrefix(w.storedPod(pod).Spec.NodeName, w.name+"-")
		return node != ""
	}, "%s is scheduled", pod)
	return node
}

// unschedulable waits for the scheduler to say so, and returns why.
func (w *world) unschedulable(pod string) (why string) {
	w.Helper()
	eventually(w, func() bool {
		why = whyPending(w.storedPod(pod))
		return why != ""
	}, "%s is unschedulable", pod)
	return why
}

// pendingFor waits for the scheduler to say that. It may say before that it does not know yet what was created with the pod.
func (w *world) pendingFor(pod, why string) {
	w.Helper()
	eventually(w, func() bool { return strings.Contains(whyPending(w.storedPod(pod)), why) }, "%s is Pending: %s", pod, why)
}

// whyPending returns what the scheduler says in the pod's status; "" if it has said nothing, or bound it.
func whyPending(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}
