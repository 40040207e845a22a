package binding_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding"
)

// FuzzPlanPod holds a plan to the best there is (S6), and to leaving its input alone (X6). To look for more:
//
//	go test ./binding -run '^$' -fuzz FuzzPlanPod -fuzztime 10m
func FuzzPlanPod(f *testing.F) {
	addSeeds(f, 300)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		w := newPlanWorld(newChoices(bytes))
		before := w.view
		before.Snapshot, before.Capacities = copyOf(w.view.Snapshot), copies(w.view.Capacities)
		for _, node := range w.nodes {
			plan, err := binding.PlanPod(w.request(), node)
			require.NoError(t, err)
			o := w.options(t, node)
			w.requireBest(t, plan, o, map[string]int{}, node.Name)
			w.requireNoWorse(t, plan, o, w.upstreams(t, node), map[string]int{}, node.Name)
		}
		w.requireUnmodified(t, before, "")
	})
}
