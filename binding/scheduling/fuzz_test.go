package scheduling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// FuzzPlanPod holds a plan to the best there is (S6), and to leaving its input alone (X6). To look for more:
//
//	go test ./binding/scheduling -run '^$' -fuzz FuzzPlanPod -fuzztime 10m
func FuzzPlanPod(f *testing.F) {
	AddSeeds(f, 300)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		w := newPlanWorld(NewChoices(bytes))
		before := w.view
		before.Snapshot, before.Capacities = CopyOf(w.view.Snapshot), Copies(w.view.Capacities)
		for _, node := range w.nodes {
			plan, err := scheduling.PlanPod(w.request(), node)
			require.NoError(t, err)
			o := w.options(t, node)
			w.requireBest(t, plan, o, map[string]int{}, node.Name)
			w.requireNoWorse(t, plan, o, w.upstreams(t, node), map[string]int{}, node.Name)
		}
		w.requireUnmodified(t, before, "")
	})
}
