package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

const hostname = "kubernetes.io/hostname"

// C3, C8, P3: kube-scheduler chooses a node and a volume on it, or a node to provision on, and pvbinder does the rest.
func TestWithTheRealScheduler(t *testing.T) {
	a := newAPI(t)
	startBinder(t, "pvbinder", "--protection")
	scheduler, err := plane.Scheduler()
	controlplane.ForTest(t, scheduler, err)
	given(node("here"))(t, a)
	changing(node("here"), func(n *corev1.Node) { n.Spec.Taints = nil })(t, a) // admission says that it is not ready yet
	given(class("local", waiting), class("made", waiting, provisioner("example.com/disks")))(t, a)

	given(
		volume("away", "5Gi", ofClass("local"), localTo("elsewhere")), volume("near", "9Gi", ofClass("local"), localTo("here")),
		claim("data", "5Gi", inClass("local")),
	)(t, a)
	a.tells(t, "WaitForFirstConsumer", "data")
	given(bindingtest.Pod(ns, "web", "", "data"))(t, a)
	a.becomes(t, "pv away Available, pv near Bound data, pvc data Bound near")
	a.runsOn(t, "web", "here")

	given(claim("more", "5Gi", inClass("made")), bindingtest.Pod(ns, "db", "", "more"))(t, a)
	a.tells(t, "ExternalProvisioning", "more")
	found, err := a.Get(t.Context(), obj.ClaimKey(ns, "more"))
	require.NoError(t, err)
	given(volume("made", "5Gi", heldBy(found.(pvc)), ofClass("made"), localTo("here")))(t, a)
	a.runsOn(t, "db", "here")
	eventually(t, a.isBound("more"))
}

// node is one that a pod fits on.
func node(name string) *corev1.Node {
	has := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hostname: name}},
		Status:     corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

func localTo(node string) func(pv) {
	return func(v pv) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: hostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	}
}

// runsOn waits until the pod is placed on that node.
func (a api) runsOn(t *testing.T, pod, node string) {
	t.Helper()
	eventually(t, func(ctx context.Context) (string, error) {
		found, err := a.CoreV1().Pods(ns).Get(ctx, pod, metav1.GetOptions{})
		if err != nil || found.Spec.NodeName == node {
			return "", err
		}
		return "pod " + pod + " is on node " + found.Spec.NodeName, nil
	})
}
