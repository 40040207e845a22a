package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// cluster is a namespace, and nodes, classes and volumes with names that begin with its own.
type cluster struct {
	*testing.T
	name string
}

// newCluster removes all nodes and volumes of earlier clusters.
func newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := &cluster{t, name}
	require.NoError(t, client.CoreV1().Nodes().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return c
}

func (c *cluster) of(name string) string { return c.name + "-" + name }

// disks is the provisioner that the tests play.
func (c *cluster) disks() string { return c.name + ".example.com" }

// class is one that waits for a pod.
func (c *cluster) class(name string, changes ...func(*storagev1.StorageClass)) {
	c.Helper()
	class := bindingtest.Class(c.of(name), changes...)
	class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	_, err := client.StorageV1().StorageClasses().Create(c.Context(), class, metav1.CreateOptions{})
	require.NoError(c, err)
}

func (c *cluster) provisioned(class *storagev1.StorageClass) { class.Provisioner = c.disks() }

// node is one that a pod could run on, as far as the scheduler can tell.
func (c *cluster) node(name string) {
	c.Helper()
	name = c.of(name)
	node, err := client.CoreV1().Nodes().Create(c.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}, metav1.CreateOptions{})
	require.NoError(c, err)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("500"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"),
	}
	node.Status.Capacity = node.Status.Allocatable
	node, err = client.CoreV1().Nodes().UpdateStatus(c.Context(), node, metav1.UpdateOptions{})
	require.NoError(c, err)
	node.Spec.Taints = nil // the server creates nodes as not ready
	_, err = client.CoreV1().Nodes().Update(c.Context(), node, metav1.UpdateOptions{})
	require.NoError(c, err)
}

// disk is a volume of class local on one node.
func (c *cluster) disk(name, size, node string, modes ...corev1.PersistentVolumeAccessMode) {
	c.Helper()
	_, err := client.CoreV1().PersistentVolumes().Create(c.Context(), c.volume(name, size, "local", node, modes...), metav1.CreateOptions{})
	require.NoError(c, err)
}

func (c *cluster) volume(name, size, class, node string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return bindingtest.Volume(c.of(name), size, func(v *corev1.PersistentVolume) {
		v.Spec.StorageClassName = c.of(class)
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/" + name}}
		if len(modes) > 0 {
			v.Spec.AccessModes = modes
		}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{c.of(node)}}}}}}}
	})
}

func (c *cluster) claim(name, size, class string, modes ...corev1.PersistentVolumeAccessMode) {
	c.Helper()
	claim := bindingtest.Claim(c.name, name, size, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.StorageClassName = new(c.of(class))
		if len(modes) > 0 {
			claim.Spec.AccessModes = modes
		}
	})
	_, err := client.CoreV1().PersistentVolumeClaims(c.name).Create(c.Context(), claim, metav1.CreateOptions{})
	require.NoError(c, err)
}

// pod uses the claims.
func (c *cluster) pod(name string, claims ...string) {
	c.Helper()
	_, err := client.CoreV1().Pods(c.name).Create(c.Context(), bindingtest.Pod(c.name, name, "", claims...), metav1.CreateOptions{})
	require.NoError(c, err)
}

func (c *cluster) stored(claim string) *corev1.PersistentVolumeClaim {
	c.Helper()
	stored, err := client.CoreV1().PersistentVolumeClaims(c.name).Get(c.Context(), claim, metav1.GetOptions{})
	require.NoError(c, err)
	return stored
}

// nodeOf is the node that the pod was bound to, without the cluster's name; "" if none.
func (c *cluster) nodeOf(pod string) string {
	stored, err := client.CoreV1().Pods(c.name).Get(c.Context(), pod, metav1.GetOptions{})
	require.NoError(c, err)
	return strings.TrimPrefix(stored.Spec.NodeName, c.name+"-")
}

// scheduled waits for the pod to be bound to one of the nodes.
func (c *cluster) scheduled(pod string) (node string) {
	c.Helper()
	eventually(c.T, func() bool {
		node = c.nodeOf(pod)
		return node != ""
	}, pod+" is scheduled")
	return node
}

// unschedulable waits for the scheduler to say so, and returns why.
func (c *cluster) unschedulable(pod string) (why string) {
	c.Helper()
	eventually(c.T, func() bool {
		stored, err := client.CoreV1().Pods(c.name).Get(c.Context(), pod, metav1.GetOptions{})
		require.NoError(c, err)
		for _, condition := range stored.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				why = condition.Message
			}
		}
		return why != ""
	}, pod+" is unschedulable")
	return why
}

// change changes a claim as somebody else would.
func (c *cluster) change(claim string, change func(*corev1.PersistentVolumeClaim)) {
	c.Helper()
	require.NoError(c, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		stored := c.stored(claim)
		change(stored)
		_, err := client.CoreV1().PersistentVolumeClaims(c.name).Update(context.Background(), stored, metav1.UpdateOptions{})
		return err
	}))
}
