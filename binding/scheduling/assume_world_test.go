package scheduling_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/scheduling"
)

// divided is a random world with two pods, which divide the claims among them.
type divided struct {
	*planWorld
	first, second []*corev1.PersistentVolumeClaim
	request       scheduling.Request
}

func newDivided(source rand.Source) *divided {
	w := newPlanWorld(source)
	at := w.IntN(len(w.view.Claims) + 1)
	w.assumed = &scheduling.Assumptions{}
	return &divided{w, w.view.Claims[:at], w.view.Claims[at:], w.request()}
}

func (d *divided) plan(t *testing.T, claims []*corev1.PersistentVolumeClaim, node *corev1.Node) scheduling.Plan {
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	request := d.request
	request.Pod = podWith(names...)
	plan, err := scheduling.PlanPod(request, node)
	require.NoError(t, err)
	return plan
}

// leftBy is the world of the second pod if the volumes of the first one's plan were gone.
func (d *divided) leftBy(plan scheduling.Plan) *planWorld {
	w := *d.planWorld
	w.view.Claims = d.second
	w.view.Volumes = Without(w.view.Volumes, func(v *corev1.PersistentVolume) bool {
		return slices.ContainsFunc(plan.Bindings, func(b index.Binding) bool { return b.Volume == v })
	})
	return &w
}

// S8: what is assumed for one pod is not there for another, whose plan is the best of what is left. A third one that
// shares their claims can be assumed wherever its plan fits. When all is reverted, all is as before.
func TestPlanPodOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	source := rand.NewPCG(SeedOf(t), 10)
	seen := map[string]int{}
	for n := range max(250, Worlds(10_000)) {
		d := newDivided(source)
		here, there := d.nodes[0], Pick(d.World, d.nodes...)
		first, before := d.plan(t, d.first, here), d.plan(t, d.second, there)
		assumption, ok := d.assumed.Assume(d.request.Index, first)
		require.Equal(t, first.Fits(), ok)
		if !ok {
			continue
		}
		second := d.plan(t, d.second, there)
		left := d.leftBy(first)
		left.requireBest(t, second, left.options(t, there), map[string]int{}, fmt.Sprintf("world %d", n))
		if before.Fits() && !second.Fits() {
			seen["the first pod has what the second needs"]++
		}
		d.requireSharing(t, there, seen)
		assumption.Revert()
		require.Equal(t, before, d.plan(t, d.second, there))
	}
	t.Log(seen)
	for _, what := range []string{"the first pod has what the second needs", "shared", "not to be shared"} {
		assert.Positive(t, seen[what], what)
	}
}

func (d *divided) requireSharing(t *testing.T, node *corev1.Node, seen map[string]int) {
	all := d.plan(t, d.view.Claims, node)
	third, ok := d.assumed.Assume(d.request.Index, all)
	require.Equal(t, all.Fits(), ok)
	switch {
	case ok:
		seen["shared"]++
		third.Revert()
	case slices.ContainsFunc(all.Reasons, func(r scheduling.Reason) bool { return r.Cause == scheduling.CausePreBoundElsewhere }):
		seen["not to be shared"]++
	}
}
