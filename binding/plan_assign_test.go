package binding_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
)

// wishes is who could have what: any pattern at all, made with labels and selectors.
type wishes struct {
	planning
	could     [8][8]bool // claim, volume
	must      [8]bool
	capacity  [8]int
	claimedBy [8]bool // claims that the pod has
}

func newWishes(r *rand.Rand) wishes {
	w := wishes{planning: planning{objects: []obj.Object{csiClass()}}}
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
		if w.must[c] = r.IntN(3) == 0; w.must[c] {
			request = "2Gi" // which is more than there is storage for
		}
		w.objects = append(w.objects, claimNamed(name, askingLabel(name, "yes"), asking(request)))
	}
	w.objects = append(w.objects, capacityDriver(true), capacityIn("a", "1Gi"))
	for v := range 8 {
		volume := storedVolume(fmt.Sprintf("v%d", v), sized(fmt.Sprintf("%dGi", w.capacity[v])))
		volume.Labels = labels[v]
		w.objects = append(w.objects, volume)
	}
	w.pod = podWith(names...)
	return w
}

// best is the score of the best assignment, tried claim by claim for every set of volumes taken: a thousand for
// each volume given away, less its capacity. It is negative if there is none.
func (w wishes) best() int {
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
			if !w.must[c] {
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
	r := rand.New(rand.NewPCG(seedOf(t), 9))
	fitting := 0
	for n := range worlds(10_000) {
		w := newWishes(r)
		plan := w.on(t, nodeIn("a"))
		best := w.best()
		require.Equal(t, best >= 0, plan.Fits(), "pattern %d", n)
		if best < 0 {
			continue
		}
		fitting++
		score := 0
		given := map[*corev1.PersistentVolume]bool{}
		for _, b := range plan.Bindings {
			require.False(t, given[b.Volume], "pattern %d", n)
			require.True(t, w.could[b.Claim.Name[1]-'0'][b.Volume.Name[1]-'0'], "pattern %d", n)
			given[b.Volume] = true
			score += 1000 - w.capacity[b.Volume.Name[1]-'0']
		}
		require.Equal(t, best, score, "pattern %d", n)
	}
	require.Greater(t, fitting, worlds(10_000)/4)
}
