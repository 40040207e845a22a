package scheduling_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// examplePods is a class that waits for a pod, one volume on each of two disks, and a claim on them.
func examplePods() scheduling.Snapshot {
	class := bindingtest.Class("fast", func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	small, large := ExampleVolume("disk-1", "10Gi"), ExampleVolume("disk-2", "100Gi")
	small.Spec.NodeAffinity, large.Spec.NodeAffinity = exampleOnHost("node-1"), exampleOnHost("node-2")
	return scheduling.Snapshot{Snapshot: decision.Snapshot{
		Classes: []*storagev1.StorageClass{class},
		Claims:  []*corev1.PersistentVolumeClaim{ExampleClaim("8Gi")},
		Volumes: []*corev1.PersistentVolume{small, large},
	}}
}

func exampleOnHost(name string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}}}}
}

func exampleNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
}

func ExamplePlanPod() {
	view := examplePods()
	request := scheduling.Request{Pod: bindingtest.Pod("default", "web", "", "data"), View: view, Index: view.Index()}

	plan, err := scheduling.PlanPod(request, exampleNode("node-2"))
	fmt.Println(plan.Fits(), plan.Bindings[0].Claim.Name, "gets", plan.Bindings[0].Volume.Name, err)

	plan, err = scheduling.PlanPod(request, exampleNode("node-3"))
	fmt.Println(plan.Fits(), plan.NodeReasons(), err)
	fmt.Println(plan.Reasons[0])
	// Output:
	// true data gets disk-2 <nil>
	// false [node(s) didn't find available persistent volumes to bind] <nil>
	// pvc/default/data: NoVolume: class fast provisions none; 0/2 volumes fit: 2 NodeAffinity
}

// One pod on all nodes: the best is where least is wasted.
func ExamplePlanPodOnNodes() {
	view := examplePods()
	request := scheduling.Request{Pod: bindingtest.Pod("default", "web", "", "data"), View: view, Index: view.Index()}
	nodes := []*corev1.Node{exampleNode("node-1"), exampleNode("node-2"), exampleNode("node-3")}

	plans, err := scheduling.PlanPodOnNodes(request, nodes)
	fmt.Println(plans, err)
	shape := scheduling.PackingShape()
	for _, plan := range plans.Fitting() {
		fmt.Println(plan.Node.Name, shape.Score(plan))
	}
	best, ok := plans.Best(shape.Score)
	fmt.Println(best.Node.Name, ok)
	// Output:
	// 2/3 nodes are available: 1 node(s) didn't find available persistent volumes to bind. <nil>
	// node-1 80
	// node-2 8
	// node-1 true
}

// A plan is carried out in steps: assume it, so that no other pod gets the same volume, then make its writes.
func ExampleNextForPlan() {
	view := examplePods()
	index := view.Index()
	var assumptions scheduling.Assumptions
	request := scheduling.Request{Pod: bindingtest.Pod("default", "web", "", "data"), View: view, Index: index, Assumptions: &assumptions}
	plan, _ := scheduling.PlanPod(request, exampleNode("node-1"))

	assumption, ok := assumptions.Assume(index, plan)
	fmt.Println("assumed:", ok)
	step, err := scheduling.NextForPlan(plan, view)
	fmt.Println(step, err)
	assumption.Revert()
	// Output:
	// assumed: true
	// B1 UpdateVolume pv/disk-1: pre-bind disk-1 to default/data <nil>
}

// What a kubelet waits for.
func ExampleVolumesOf() {
	for _, volume := range scheduling.VolumesOf(bindingtest.Pod("default", "web", "", "data"), examplePods()) {
		fmt.Println(volume.Name, volume.Ready(), volume.Wait)
	}
	// Output: data false pvc/default/data: ClaimUnbound: the claim is not bound
}
