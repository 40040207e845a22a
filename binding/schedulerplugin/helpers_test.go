package schedulerplugin_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kube-scheduler/framework"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/clientgo/apitest"
	"github.com/pvbind/pvbind/binding/schedulerplugin"
)

// patience is how long a test waits for what must come, before it fails.
const patience = 30 * time.Second

// handle is what the plugin uses of a framework.
type handle struct {
	framework.Handle
	set       kubernetes.Interface
	informers informers.SharedInformerFactory
}

func (h handle) ClientSet() kubernetes.Interface                        { return h.set }
func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }

// cycle is the state of a pod that is scheduled.
type cycle struct {
	framework.CycleState
	data map[framework.StateKey]framework.StateData
}

func newCycle() *cycle { return &cycle{data: map[framework.StateKey]framework.StateData{}} }

func (c *cycle) Read(key framework.StateKey) (framework.StateData, error) {
	if data, known := c.data[key]; known {
		return data, nil
	}
	return nil, framework.ErrNotFound
}

func (c *cycle) Write(key framework.StateKey, data framework.StateData) { c.data[key] = data }

// clone copies the state as preemption does.
func (c *cycle) clone() *cycle {
	copied := newCycle()
	for key, data := range c.data {
		copied.data[key] = data.Clone()
	}
	return copied
}

// nodeInfo is a node as the framework hands it to plugins.
type nodeInfo struct {
	framework.NodeInfo
	node *corev1.Node
}

func (n nodeInfo) Node() *corev1.Node { return n.node }

func infosOf(nodes ...*corev1.Node) (infos []framework.NodeInfo) {
	for _, node := range nodes {
		infos = append(infos, nodeInfo{node: node})
	}
	return infos
}

// scheduler has the plugin on a server, and calls it as the framework does.
type scheduler struct {
	*testing.T
	*schedulerplugin.Plugin
	*apitest.Server
	set       *fake.Clientset
	informers informers.SharedInformerFactory
	nodes     []*corev1.Node
}

// schedulerOn has nodes n1 and n2, in the zones z1 and z2, and two classes: local, of volumes that are there, and made, of
// volumes that the driver example.com/made makes. Both wait for the node.
func schedulerOn(t *testing.T, args *configv1.VolumeBindingArgs, objects ...runtime.Object) *scheduler {
	t.Helper()
	nodes := []*corev1.Node{bindingtest.Node("n1", "z1"), bindingtest.Node("n2", "z2")}
	set := fake.NewClientset(append(objects, waiting("local", "kubernetes.io/no-provisioner"), waiting("made", "example.com/made"), nodes[0], nodes[1])...)
	s := &scheduler{T: t, set: set, Server: apitest.Back(set), informers: informers.NewSharedInformerFactory(set, 0), nodes: nodes}
	plugin, err := schedulerplugin.New(t.Context(), args, handle{set: set, informers: s.informers})
	require.NoError(t, err)
	s.Plugin = plugin.(*schedulerplugin.Plugin)
	ctx, cancel := context.WithCancel(context.Background())
	s.informers.StartWithContext(ctx)
	t.Cleanup(func() { cancel(); s.informers.Shutdown() })
	return s
}

func waiting(name, provisioner string) *storagev1.StorageClass {
	return bindingtest.Class(name, func(c *storagev1.StorageClass) {
		c.Provisioner, c.VolumeBindingMode = provisioner, new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
}

// claim is a claim to 5Gi of a class.
func claim(name, class string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	return bindingtest.Claim("default", name, "5Gi", append(changes, func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class })...)
}

// bound has a claim be bound to a volume; lost, being lost.
func boundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Annotations = volume, map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		c.Status.Phase = corev1.ClaimBound
	}
}

// disk is a volume of the class local on a node.
func disk(name, size, node string) *corev1.PersistentVolume {
	return bindingtest.Volume(name, size, func(v *corev1.PersistentVolume) {
		v.Spec.StorageClassName = "local"
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	})
}

func pod(name string, claims ...string) *corev1.Pod {
	return bindingtest.Pod("default", name, "", claims...)
}

// pod returns a pod as it is stored.
func (s *scheduler) pod(name string) *corev1.Pod {
	s.Helper()
	stored, err := s.set.CoreV1().Pods("default").Get(s.Context(), name, metav1.GetOptions{})
	require.NoError(s, err)
	return stored
}

// plan calls PreFilter, which must succeed.
func (s *scheduler) plan(pod *corev1.Pod) *cycle {
	s.Helper()
	state := newCycle()
	_, status := s.PreFilter(s.Context(), state, pod, infosOf(s.nodes...))
	require.NoError(s, status.AsError())
	return state
}

// filter calls Filter for all nodes, and returns why not on each.
func (s *scheduler) filter(state *cycle, pod *corev1.Pod) map[string]string {
	s.Helper()
	reasons := map[string]string{}
	for _, node := range s.nodes {
		if status := s.Filter(s.Context(), state, pod, nodeInfo{node: node}); !status.IsSuccess() {
			require.Equal(s, framework.UnschedulableAndUnresolvable, status.Code(), status.Message())
			reasons[node.Name] = status.Message()
		}
	}
	return reasons
}

// reserve calls Reserve, which must succeed.
func (s *scheduler) reserve(state *cycle, pod *corev1.Pod, node string) {
	s.Helper()
	require.NoError(s, s.Reserve(s.Context(), state, pod, node).AsError())
}

// writes counts what the plugin has written.
func (s *scheduler) writes() (count int) {
	for _, call := range s.Calls() {
		if call.Writes() {
			count++
		}
	}
	return count
}

func (s *scheduler) eventually(so func() bool, what string) {
	s.Helper()
	require.Eventually(s, so, patience, 5*time.Millisecond, what)
}
