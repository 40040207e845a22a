// Package clustertest has worlds for tests that share a control plane: objects that a scheduler schedules pods by, and what it says of them.
package clustertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// World is a namespace, and nodes, classes and volumes with names that begin with its own. Its pods are a scheduler's, and can
// run on its nodes alone. Make one with NewWorld.
type World struct {
	testing.TB
	Client    kubernetes.Interface
	Namespace string

	scheduler string
}

// Label is on the nodes of a world, with its name.
const Label = "example.com/world"

// NewWorld creates the namespace of a world.
func NewWorld(t testing.TB, client kubernetes.Interface, name, scheduler string) *World {
	t.Helper()
	w := &World{TB: t, Client: client, Namespace: name, scheduler: scheduler}
	w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return w
}

// End removes the nodes, so that nothing is said about them in other worlds.
func (w *World) End() {
	require.NoError(w, w.Client.CoreV1().Nodes().DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: Label + "=" + w.Namespace}))
}

// Of returns the name that something of the world has.
func (w *World) Of(name string) string { return w.Namespace + "-" + name }

// Disks is the provisioner that the tests play.
func (w *World) Disks() string { return w.Namespace + ".example.com" }

// Create creates objects, many at once.
func (w *World) Create(objects ...obj.Object) {
	w.Helper()
	var mutex sync.Mutex
	var failed error
	workqueue.ParallelizeUntil(context.Background(), 16, len(objects), func(i int) {
		if err := w.CreateOne(w.Context(), objects[i]); err != nil {
			mutex.Lock()
			defer mutex.Unlock()
			failed = err
		}
	})
	require.NoError(w, failed)
}

// CreateOne creates an object of a kind that worlds have.
func (w *World) CreateOne(ctx context.Context, object obj.Object) (err error) {
	core, storage, options := w.Client.CoreV1(), w.Client.StorageV1(), metav1.CreateOptions{}
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

// Class is one that waits for a pod.
func (w *World) Class(name string, changes ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return bindingtest.Class(w.Of(name), append([]func(*storagev1.StorageClass){func(class *storagev1.StorageClass) {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}}, changes...)...)
}

// Provisioned has a class provision.
func (w *World) Provisioned(class *storagev1.StorageClass) { class.Provisioner = w.Disks() }

// Node is one that a pod could run on, as far as the scheduler can tell.
func (w *World) Node(name string) *corev1.Node {
	return bindingtest.Node(w.Of(name), w.Of("zone"), func(node *corev1.Node) {
		node.Labels[Label] = w.Namespace
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("500"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		}
		node.Status.Capacity = node.Status.Allocatable
	})
}

// Disk is a volume of class local on one node; on none of this world's if node is empty.
func (w *World) Disk(name, size, node string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	return bindingtest.Volume(w.Of(name), size, append([]func(*corev1.PersistentVolume){func(volume *corev1.PersistentVolume) {
		volume.Spec.StorageClassName = w.Of("local")
		volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/" + name}}
		volume.Spec.NodeAffinity = w.affinity(node)
	}}, changes...)...)
}

func (w *World) affinity(node string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{w.Of(node)}}}}}}}
}

// Claim is one to so much of a class.
func (w *World) Claim(name, size, class string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim(w.Namespace, name, size, append([]func(*corev1.PersistentVolumeClaim){func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.StorageClassName = new(w.Of(class))
	}}, changes...)...)
}

// Pod uses the claims, and runs on nodes that are not ready too, which those of a world are not.
func (w *World) Pod(name string, claims ...string) *corev1.Pod {
	pod := bindingtest.Pod(w.Namespace, name, "", claims...)
	pod.Spec.SchedulerName = w.scheduler
	pod.Spec.NodeSelector = map[string]string{Label: w.Namespace}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return pod
}

// Driver tells that capacities count.
func (w *World) Driver() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: w.Disks()}, Spec: storagev1.CSIDriverSpec{StorageCapacity: new(true)}}
}

// Capacity is what can be made of class made on one node.
func (w *World) Capacity(node, size string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: w.Namespace, Name: node},
		StorageClassName: w.Of("made"),
		NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: w.Of(node)}},
		Capacity:         new(resource.MustParse(size)),
	}
}

// StoredPod reads a pod, StoredClaim a claim.
func (w *World) StoredPod(name string) *corev1.Pod {
	stored, err := w.Client.CoreV1().Pods(w.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return stored
}

func (w *World) StoredClaim(name string) *corev1.PersistentVolumeClaim {
	stored, err := w.Client.CoreV1().PersistentVolumeClaims(w.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(w, err)
	return stored
}

// Available waits until the volumes of the world can be chosen by whoever waits for their phase.
func (w *World) Available(names ...string) {
	w.Helper()
	for _, name := range names {
		Eventually(w, func() bool {
			stored, err := w.Client.CoreV1().PersistentVolumes().Get(context.Background(), w.Of(name), metav1.GetOptions{})
			require.NoError(w, err)
			return stored.Status.Phase == corev1.VolumeAvailable
		}, "%s is Available", name)
	}
}

// Scheduled waits for the pod to be bound to one of the nodes, and returns which.
func (w *World) Scheduled(pod string) (node string) {
	w.Helper()
	Eventually(w, func() bool {
		node = strings.TrimPrefix(w.StoredPod(pod).Spec.NodeName, w.Namespace+"-")
		return node != ""
	}, "%s is scheduled", pod)
	return node
}

// Unschedulable waits for the scheduler to say so, and returns why.
func (w *World) Unschedulable(pod string) (why string) {
	w.Helper()
	Eventually(w, func() bool {
		why = WhyPending(w.StoredPod(pod))
		return why != ""
	}, "%s is unschedulable", pod)
	return why
}

// PendingFor waits for the scheduler to say that. It may say before that it does not know yet what was created with the pod.
func (w *World) PendingFor(pod, why string) {
	w.Helper()
	Eventually(w, func() bool { return strings.Contains(WhyPending(w.StoredPod(pod)), why) }, "%s is Pending: %s", pod, why)
}

// WhyPending returns what the scheduler says in the pod's status; "" if it has said nothing, or bound it.
func WhyPending(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// patience is how long a test waits for what must come, before it fails.
const patience = 2 * time.Minute

// Eventually waits until it is so.
func Eventually(t testing.TB, so func() bool, what string, args ...any) {
	t.Helper()
	require.Eventually(t, so, patience, 10*time.Millisecond, append([]any{what}, args...)...)
}
