package scheduling_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// planCluster is a cluster with a Controller, and a scheduler that is written out in a test: it plans a pod, assumes
// the plan, and does what NextForPlan says.
type planCluster struct {
	*testing.T
	*Driven
	storage *bindingtest.Storage
	assumed scheduling.Assumptions
}

const planDirs = "example.com/dirs"

// newPlanCluster has the classes fast, of local volumes, and dirs, that is provisioned.
func newPlanCluster(t *testing.T, objects ...obj.Object) *planCluster {
	waits := func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	storage := bindingtest.NewStorage()
	objects = append([]obj.Object{bindingtest.Class("fast", waits), bindingtest.Class("dirs", waits, func(c *storagev1.StorageClass) { c.Provisioner = planDirs })}, objects...)
	cluster := NewDrivenWith(bindingtest.DriverOptions{Hooks: storage.Hooks(planDirs)}, objects...)
	c := &planCluster{T: t, Driven: cluster, storage: storage}
	c.settle()
	return c
}

func (c *planCluster) settle() { require.NoError(c, c.Settle(context.Background())) }

// view is what the server has now.
func (c *planCluster) view() scheduling.Snapshot {
	var all []obj.Object
	for _, kind := range bindingtest.Kinds() {
		objects, err := c.Server.List(context.Background(), kind, "")
		require.NoError(c, err)
		all = append(all, objects...)
	}
	return planning{objects: all}.view()
}

func (c *planCluster) plan(pod *corev1.Pod, node *corev1.Node) scheduling.Plan {
	view := c.view()
	plan, err := scheduling.PlanPod(scheduling.Request{Pod: pod, View: view, Index: view.Index(), Assumptions: &c.assumed}, node)
	require.NoError(c, err)
	return plan
}

// step does what comes next for the plan, and returns it.
func (c *planCluster) step(plan scheduling.Plan) scheduling.Step {
	c.Helper()
	step, err := scheduling.NextForPlan(plan, c.view())
	require.NoError(c, err)
	switch step.Kind {
	case decision.UpdateVolume:
		_, err = c.Server.UpdateVolume(context.Background(), step.Volume)
	case decision.UpdateClaim:
		_, err = c.Server.UpdateClaim(context.Background(), step.Claim)
	}
	require.NoError(c, err)
	return step
}

func (c *planCluster) steps(plan scheduling.Plan) []decision.ActionKind {
	c.Helper()
	var kinds []decision.ActionKind
	for {
		step := c.step(plan)
		kinds = append(kinds, step.Kind)
		if !step.Writes() {
			return kinds
		}
	}
}

func ofClaimClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

func hostNode(name string) *corev1.Node {
	node := NodeIn("a")
	node.Name, node.Labels[corev1.LabelHostname] = name, name
	return node
}

func localTo(node string) VolumeEdit {
	return Affine(Term(Require1(corev1.LabelHostname, corev1.NodeSelectorOpIn, node)))
}

// S8: two writes of the plan's, and the Controller does the rest.
func TestPlanIsCarriedOut(t *testing.T) {
	c := newPlanCluster(t, bindingtest.Volume("disk", "10Gi", OfClass("fast"), localTo("n1")),
		bindingtest.Claim("default", "data", "5Gi", ofClaimClass("fast")), bindingtest.Claim("default", "logs", "1Gi", ofClaimClass("dirs")))
	pod := bindingtest.Pod("default", "web", "", "data", "logs")
	assert.Equal(t, "data NoVolume", planText(c.plan(pod, hostNode("n2"))))
	plan := c.plan(pod, hostNode("n1"))
	require.Equal(t, "data disk, logs provision", planText(plan))
	assert.Equal(t, []decision.ActionKind{decision.UpdateVolume, decision.UpdateClaim, decision.Wait}, c.steps(plan))
	assert.Equal(t, []decision.ActionKind{decision.Wait}, c.steps(plan), "nothing is written twice")
	c.settle()
	assert.Equal(t, []decision.ActionKind{decision.Nothing}, c.steps(plan))
	for _, v := range scheduling.VolumesOf(pod, c.view()) {
		assert.True(t, v.Ready(), "%s: %s", v.Name, v.Wait)
	}
	assert.Empty(t, planText(c.plan(pod, hostNode("n1"))), "S3: all is bound")
	assert.Equal(t, "data VolumeElsewhere disk, logs VolumeElsewhere "+c.Claim("default", "logs").Spec.VolumeName, planText(c.plan(pod, hostNode("n2"))))
}

// S8, P2: a provision that fails takes its node off the claim. The plan is given up, and another node is free to try.
func TestPlanAfterAFailedProvision(t *testing.T) {
	c := newPlanCluster(t, bindingtest.Claim("default", "logs", "1Gi", ofClaimClass("dirs")))
	c.storage.Use(bindingtest.FailStorage(1, bindingtest.OnStorage(bindingtest.StorageProvision), errors.New("no space left")))
	pod := bindingtest.Pod("default", "web", "", "logs")
	plan := c.plan(pod, hostNode("n1"))
	index := c.view().Index()
	assumption, ok := c.assumed.Assume(index, plan)
	require.True(t, ok)
	assert.Equal(t, []decision.ActionKind{decision.UpdateClaim, decision.Wait}, c.steps(plan))
	c.settle()
	step := c.step(plan)
	require.Equal(t, scheduling.GiveUp, step.Kind)
	assert.Equal(t, scheduling.CauseDeselected, step.Reasons[0].Cause)
	assert.Equal(t, "logs ProvisionedElsewhere", planText(c.plan(pod, hostNode("n2"))), "S4: still assumed for n1")
	assumption.Revert()
	second := c.plan(pod, hostNode("n2"))
	require.Equal(t, "logs provision", planText(second))
	assert.Equal(t, []decision.ActionKind{decision.UpdateClaim, decision.Wait}, c.steps(second))
	c.settle()
	assert.Equal(t, []decision.ActionKind{decision.Nothing}, c.steps(second))
}

// S8: somebody binds the volume to another claim between the plan and its write.
func TestPlanThatIsTooLate(t *testing.T) {
	c := newPlanCluster(t, bindingtest.Volume("disk", "10Gi", OfClass("fast")),
		bindingtest.Claim("default", "data", "5Gi", ofClaimClass("fast")), bindingtest.Claim("default", "fast", "5Gi", ofClaimClass("fast")))
	late := c.plan(bindingtest.Pod("default", "web", "", "data"), hostNode("n1"))
	early := c.plan(bindingtest.Pod("default", "other", "", "fast"), hostNode("n1"))
	c.steps(early)
	assert.Equal(t, []decision.ActionKind{scheduling.GiveUp}, c.steps(late))
	c.settle()
	assert.Equal(t, []decision.ActionKind{decision.Nothing}, c.steps(early))
	assert.Equal(t, "disk", c.Claim("default", "fast").Spec.VolumeName)
}
