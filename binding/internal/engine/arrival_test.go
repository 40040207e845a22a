package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
)

// TestW1VolumesOfAnySizesArriveOneByOne lets n volumes come one after another to n claims that wait for them, of
// every mix of sizes. Each is bound as it comes, to the neediest claim that it fits; a claim is synced when a
// volume is offered to it, and not when one is offered to another.
func TestW1VolumesOfAnySizesArriveOneByOne(t *testing.T) {
	t.Parallel()
	n := 300
	if testing.Short() {
		n = 30
	}
	for _, sizes := range []int{1, 7, n} {
		t.Run(fmt.Sprintf("%d sizes", sizes), func(t *testing.T) {
			cluster := NewDriven()
			for i := range n {
				_, err := cluster.Create(t.Context(), bindingtest.Claim("default", fmt.Sprintf("c-%03d", i), fmt.Sprintf("%dGi", 1+i%sizes)))
				require.NoError(t, err)
			}
			require.NoError(t, cluster.Settle(t.Context()))
			waiting := cluster.CallsSince(0)

			for i, at := range rand.New(rand.NewPCG(1, uint64(sizes))).Perm(n) {
				_, err := cluster.Create(t.Context(), bindingtest.Volume(fmt.Sprintf("pv-%03d", at), fmt.Sprintf("%dGi", 1+at%sizes)))
				require.NoError(t, err)
				require.NoError(t, cluster.Settle(t.Context()))
				require.Equal(t, i+1, CountBound(t, cluster.Server, n), "every volume serves somebody")
			}

			assert.Len(t, waiting, 2*n, "each claim is created, and gets one event that it waits")
			writes, reads := ControllerCalls(cluster.Server)
			assert.Len(t, writes, 4*n)
			assert.Empty(t, reads)
		})
	}
}

// TestM9ColdStartBindsAllInAnyOrder starts with n volumes Pending and n claims of the same sizes.
func TestM9ColdStartBindsAllInAnyOrder(t *testing.T) {
	const n = 40
	for seed := range uint64(max(2, Worlds(20))) {
		random := rand.New(rand.NewPCG(seed, seed))
		w := newStepped()
		for i := range n {
			_, err := w.server.Create(t.Context(), bindingtest.Volume(fmt.Sprintf("pv-%03d", i), fmt.Sprintf("%dGi", 1+i/3)))
			require.NoError(t, err)
			_, err = w.server.Create(t.Context(), bindingtest.Claim("default", fmt.Sprintf("c-%03d", i), fmt.Sprintf("%dGi", 1+i/3)))
			require.NoError(t, err)
		}
		w.restart()
		for choices := w.choices(); len(choices) > 0; choices = w.choices() {
			w.step(choices[random.IntN(len(choices))])
		}
		require.Equal(t, n, CountBound(t, w.server, n), "seed %d", seed)
		require.Equal(t, 4*n, w.writes(), "seed %d", seed)
	}
}
