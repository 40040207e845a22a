package scheduling_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// pattern is which claim could have which volume: any at all, made with labels and selectors.
type pattern struct {
	planning
	could     [8][8]bool // claim, volume
	blocked   [8]bool    // no volume can be provisioned for the claim
	capacity  [8]int
	claimedBy [8]bool // claims that the pod has
}

func newPattern(r *rand.Rand) pattern {
	w := pattern{planning: planning{objects: []obj.Object{csiClass()}}}
	likely := 1 + r.IntN(4)
	labels := [8]map[string]string{}
	var names []string
	for v := range 8 {
		labels[v] = map[string]string{}
		w.capacity[v] = 10 + r.IntN(6)
	}
	for c := range 8 {
		if w.claimedBy[c] = r.IntN(6) > 0; !w.claimedBy[c] {
			continue
		}
		name := fmt.Sprintf("c%d", c)
		names = append(names, name)
		for v := range 8 {
			if w.could[c][v] = r.IntN(5) < likely; w.could[c][v] {
				labels[v][name] = "yes"
			}
		}
		request := "1Gi"
		if w.blocked[c] = r.IntN(3) == 0; w.blocked[c] {
			request = "2Gi" // which is more than there is storage for
		}
		w.objects = append(w.objects, claimNamed(name, RequestingLabel(name, "yes"), Requesting(request)))
	}
	w.objects = append(w.objects, capacityDriver(true), capacityIn("a", "1Gi"))
	for v := range 8 {
		volume := storedVolume(fmt.Sprintf("v%d", v), Sized(fmt.Sprintf("%dGi", w.capacity[v])))
		volume.Labels = labels[v]
		w.objects = append(w.objects, volume)
	}
	w.pod = podWith(names...)
	return w
}

// best returns the score of the best assignment, tried claim by claim for every set of volumes taken: a thousand for
// each volume assigned, less its capacity. It is negative if there is none.
func (w pattern) best() int {
	const never = math.MinInt / 2
	var scores [256]int
	for set := range scores {
		scores[set] = never
	}
	scores[0] = 0
	for c := range 8 {
		if !w.claimedBy[c] {
			continue
		}
		var next [256]int
		for set := range next {
			next[set] = never
			if !w.blocked[c] {
				next[set] = scores[set]
			}
			for v := range 8 {
				if set>>v&1 == 1 && w.could[c][v] {
					next[set] = max(next[set], scores[set&^(1<<v)]+1000-w.capacity[v])
				}
			}
		}
		scores = next
	}
	best := never
	for _, score := range scores {
		best = max(best, score)
	}
	return best
}

// S6: for up to eight claims and any pattern of what each could have.
func TestPlanPodAssignsAnyPattern(t *testing.T) {
	r := rand.New(rand.NewPCG(SeedOf(t), 9))
	fitting := 0
	for n := range Worlds(10_000) {
		w := newPattern(r)
		plan := w.on(t, NodeIn("a"))
		best := w.best()
		require.Equal(t, best >= 0, plan.Fits(), "pattern %d", n)
		if best < 0 {
			continue
		}
		fitting++
		score := 0
		assigned := map[*corev1.PersistentVolume]bool{}
		for _, b := range plan.Bindings {
			require.False(t, assigned[b.Volume], "pattern %d", n)
			require.True(t, w.could[b.Claim.Name[1]-'0'][b.Volume.Name[1]-'0'], "pattern %d", n)
			assigned[b.Volume] = true
			score += 1000 - w.capacity[b.Volume.Name[1]-'0']
		}
		require.Equal(t, best, score, "pattern %d", n)
	}
	require.Greater(t, fitting, Worlds(10_000)/4)
}
