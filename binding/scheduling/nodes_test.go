package scheduling_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// withoutDetail leaves out what PlanPod alone tells, and kube-scheduler's reasons.
func withoutDetail(plan scheduling.Plan) scheduling.Plan {
	reasons := plan.Reasons
	plan = scheduling.Plan{Pod: plan.Pod, PodUID: plan.PodUID, Node: plan.Node, Bindings: plan.Bindings, Provisions: plan.Provisions, Refused: plan.Refused}
	for _, reason := range reasons {
		reason.Detail = ""
		plan.Reasons = append(plan.Reasons, reason)
	}
	return plan
}

// All nodes at once are planned for as each alone, whatever the order of the lists, and nothing is modified (X6).
func TestPlanPodOnNodesIsPlanPodOnEach(t *testing.T) {
	t.Parallel()
	source := rand.NewPCG(SeedOf(t), 7)
	for n := range Worlds(10_000) {
		w := newPlanWorld(source)
		before := w.view
		before.Snapshot, before.Capacities = CopyOf(w.view.Snapshot), Copies(w.view.Capacities)
		plans, err := scheduling.PlanPodOnNodes(w.request(), w.nodes)
		require.NoError(t, err)
		require.Len(t, plans.Plans, len(w.nodes))
		w.ShuffleVolumes(w.view.Volumes)
		w.Shuffle(len(w.view.Capacities), func(i, j int) {
			w.view.Capacities[i], w.view.Capacities[j] = w.view.Capacities[j], w.view.Capacities[i]
		})
		if reordered := n%2 == 0; reordered {
			w.Shuffle(len(w.pod.Spec.Volumes), func(i, j int) {
				w.pod.Spec.Volumes[i], w.pod.Spec.Volumes[j] = w.pod.Spec.Volumes[j], w.pod.Spec.Volumes[i]
			})
		}
		for i, node := range w.nodes {
			plan, err := scheduling.PlanPod(w.request(), node)
			require.NoError(t, err)
			if n%2 == 1 { // S9: kube-scheduler's reasons depend on the order in which the pod names its claims
				require.Equal(t, plan.NodeReasons(), plans.Plans[i].NodeReasons(), "world %d", n)
			}
			require.Equal(t, withoutDetail(plan), withoutDetail(plans.Plans[i]), "world %d", n)
		}
		w.requireUnmodified(t, before, "world "+strconv.Itoa(n))
	}
}

func (w *planWorld) requireUnmodified(t *testing.T, before scheduling.Snapshot, where string) {
	for _, volume := range before.Volumes {
		now, _ := w.view.Volume(volume.Name)
		require.True(t, equality.Semantic.DeepEqual(volume, now), where)
	}
	require.True(t, equality.Semantic.DeepEqual(before.Claims, w.view.Claims), where)
	require.True(t, equality.Semantic.DeepEqual(before.Classes, w.view.Classes), where)
	for _, capacity := range before.Capacities {
		require.Contains(t, w.view.Capacities, capacity, where)
	}
}

// S9: the line is kube-scheduler's: sorted as text, a node counted under each of its reasons.
func TestPlansString(t *testing.T) {
	nodes := []*corev1.Node{NodeIn("a"), NodeIn("b"), NodeIn("c")}
	claim, immediate := claimNamed("data"), ClassOf("fast", csiDriver)
	both := planning{podWith("data", "logs"), []obj.Object{claimNamed("data", BoundTo("pv-a")), claimNamed("logs"), manualClass(),
		storedVolume("pv-a", OnlyIn("a")), storedVolume("pv-b", OnlyIn("b"))}}
	for name, c := range map[string]struct {
		planning
		want string
	}{
		"no claims":  {planning{pod: podWith()}, "3/3 nodes are available."},
		"S4 on one":  {podPlanning(claim, manualClass(), storedVolume("pv-a", OnlyIn("a"))), "1/3 nodes are available: 2 node(s) didn't find available persistent volumes to bind."},
		"S3 on none": {podPlanning(claimNamed("data", BoundTo("pv-a")), storedVolume("pv-a", OnlyIn("z"))), "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity."},
		"S3 S4": {both, "0/3 nodes are available: 2 node(s) didn't find available persistent volumes to bind, " +
			"2 node(s) didn't match PersistentVolume's node affinity."},
		"S5": {podPlanning(claim, csiClass(), capacityDriver(true), capacityIn("c", "10Gi")), "1/3 nodes are available: 2 node(s) did not have enough free storage."},
		"S3 absent": {podPlanning(claimNamed("data", BoundTo("pv-a"))),
			"0/3 nodes are available: 3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."},
		"S2": {planning{podWith("data", "logs"), []obj.Object{claim, claimNamed("logs"), immediate}}, "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
		"S1": {podPlanning(claimNamed("data", ClaimPhase(corev1.ClaimLost), Naming("pv-a"))),
			"0/3 nodes are available: pvc/default/data, pv/pv-a: ClaimLost: the claim has lost its volume."},
	} {
		t.Run(name, func(t *testing.T) {
			plans, err := scheduling.PlanPodOnNodes(c.request(), nodes)
			require.NoError(t, err)
			assert.Equal(t, c.want, plans.String())
		})
	}
}

func TestPlansBest(t *testing.T) {
	claim := claimNamed("data")
	p := podPlanning(claim, manualClass(), storedVolume("pv-a", OnlyIn("a"), Sized("40Gi")), storedVolume("pv-b", OnlyIn("b"), Sized("20Gi")), storedVolume("pv-c", OnlyIn("c"), Sized("20Gi")))
	plans, err := scheduling.PlanPodOnNodes(p.request(), []*corev1.Node{NodeIn("c"), NodeIn("a"), NodeIn("d"), NodeIn("b")})
	require.NoError(t, err)
	best := func(score func(scheduling.Plan) int) string {
		plan, ok := plans.Best(score)
		require.True(t, ok)
		return plan.Node.Name
	}
	assert.Equal(t, "node-b", best(scheduling.PackingShape().Score), "the least waste, then by name")
	assert.Equal(t, "node-a", best(scheduling.DefaultShape().Score), "kube-scheduler's")
	assert.Equal(t, "node-a", best(func(scheduling.Plan) int { return 0 }), "by name alone")
	assert.Len(t, plans.Fitting(), 3)

	none, err := scheduling.PlanPodOnNodes(podPlanning(claim, manualClass()).request(), []*corev1.Node{NodeIn("a")})
	require.NoError(t, err)
	_, ok := none.Best(scheduling.PackingShape().Score)
	assert.False(t, ok)
}

// A hundred claims that all fit nearly everything, where the last volume decides.
func TestPlanPodManyClaims(t *testing.T) {
	const many = 100
	var names []string
	p := planning{objects: []obj.Object{manualClass()}}
	for i := range many {
		name := "c-" + strconv.Itoa(i)
		names = append(names, name)
		p.objects = append(p.objects, claimNamed(name, Requesting(strconv.Itoa(1+i)+"Gi")), storedVolume("pv-"+strconv.Itoa(i), Sized(strconv.Itoa(1+i)+"Gi")),
			storedVolume("large-"+strconv.Itoa(i), Sized(strconv.Itoa(200+i)+"Gi")))
	}
	p.pod = podWith(names...)
	plan := p.on(t, NodeIn("a"))
	require.Len(t, plan.Bindings, many)
	for _, b := range plan.Bindings {
		assert.Equal(t, "pv"+b.Claim.Name[1:], b.Volume.Name, "each has the only one of its size")
	}
}
