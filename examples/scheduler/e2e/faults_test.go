package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/examples/cluster/clustertest"
	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

// Schedulers, binders and API servers are killed while many pods are scheduled. Then every pod is on a node that can use its
// volumes, no volume has two claims, and no claim has a node selected that is not its pod's.
func TestKilledWhilePodsAreScheduled(t *testing.T) {
	pods := 60
	if long() {
		pods = 500
	}
	for _, seed := range seedsOf(t, 10, 100) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { kill(t, rand.New(rand.NewPCG(seed, 17)), fmt.Sprintf("faults-%d", seed), pods) })
		if t.Failed() {
			t.Logf("PVBIND_SEED=%d", seed)
			return
		}
	}
}

func kill(t *testing.T, random *rand.Rand, name string, pods int) {
	startBinder := binders[[]string{"kube-controller-manager", "pvbinder"}[random.IntN(2)]]
	s := withPlugin(t, name)
	w := newWorld(t, shared, name, name)
	w.provision()
	w.Create(fleetOf(w, 10, pods)...)
	binder, process := startBinder(t, shared), s.start(t, shared)
	restart := func(killed **controlplane.Process, start func(testing.TB, cluster) *controlplane.Process) {
		(*killed).Kill()
		*killed = start(t, shared)
	}
	for step := range 3 {
		enough := step*pods/3 + random.IntN(pods/3)
		var placed int
		clustertest.Eventually(t, func() bool {
			placed = pods - len(w.state().pending())
			return placed >= enough
		}, "%d pods are placed", enough)
		switch random.IntN(6) {
		case 0, 1:
			restart(&binder, startBinder)
		case 2:
			shared.plane.Server().Kill()
			assert.NoError(t, shared.plane.StartServer())
		}
		t.Logf("the scheduler is killed with %d of %d pods placed", placed, pods)
		restart(&process, s.start)
	}
	clustertest.Eventually(t, func() bool {
		now := w.state()
		return len(now.pending()) == 0 && now.settled()
	}, "all pods run")
	assert.Empty(t, w.state().crimes())
}

// fleetOf returns nodes, volumes, and pods with one claim, with two, and with one more whose volume is made: as many volumes as there
// are claims, and some more.
func fleetOf(w *world, nodes, pods int) []obj.Object {
	objects := []obj.Object{w.Class("local"), w.Class("made", w.Provisioned)}
	for n := range nodes {
		objects = append(objects, w.Node(fmt.Sprintf("n%d", n)))
		for d := range 2*pods/nodes + 2 {
			objects = append(objects, w.Disk(fmt.Sprintf("d%d-%d", n, d), "10Gi", fmt.Sprintf("n%d", n)))
		}
	}
	for p := range pods {
		claims := []string{fmt.Sprintf("data-%d", p)}
		objects = append(objects, w.Claim(claims[0], "1Gi", "local"))
		switch p % 3 {
		case 1:
			claims = append(claims, fmt.Sprintf("more-%d", p))
			objects = append(objects, w.Claim(claims[1], "2Gi", "local"))
		case 2:
			claims = append(claims, fmt.Sprintf("made-%d", p))
			objects = append(objects, w.Claim(claims[1], "2Gi", "made"))
		}
		objects = append(objects, w.Pod(fmt.Sprintf("pod-%d", p), claims...))
	}
	return objects
}
