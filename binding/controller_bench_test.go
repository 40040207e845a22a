package binding_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
)

// BenchmarkController binds n claims of mixed sizes to n volumes of the same sizes, all there from the
// start and synced in random order, on the server in memory. With a delay, every write takes that long:
// what is measured is how many binds are under way at once. Without one it is the work of the controller
// and of the server in memory together.
func BenchmarkController(b *testing.B) {
	var oneWorker, smallest float64
	for _, test := range []struct {
		pairs, workers int
		delay          time.Duration
	}{
		{1e3, 1, 2 * time.Millisecond}, {1e3, 8, 2 * time.Millisecond}, {1e3, 64, 2 * time.Millisecond},
		{1e3, 1, 0}, {1e4, 1, 0}, {1e5, 1, 0}, {1e4, 64, 0},
	} {
		b.Run(fmt.Sprintf("pairs=%d/workers=%d/delay=%s", test.pairs, test.workers, test.delay), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				b.StopTimer()
				crew := newCrew(coldStart(b, test.pairs))
				crew.client.Use(func(call *bindingtest.Call, do func() error) error {
					if call.Writes() && test.delay > 0 {
						time.Sleep(test.delay)
					}
					return do()
				})
				runtime.GC() // what making the objects left is not ours
				b.StartTimer()
				began := time.Now()
				require.Empty(b, crew.run(b.Context(), test.workers))
				took += time.Since(began)
				b.StopTimer()
				require.Equal(b, test.pairs, countBound(b, crew.server, test.pairs))
				writes, reads := controllerCalls(crew.server)
				require.Len(b, writes, 4*test.pairs)
				require.Empty(b, reads)
				b.StartTimer()
			}
			perPair := took.Seconds() / float64(b.N*test.pairs)
			b.ReportMetric(1/perPair, "claims/s")
			switch {
			case test.delay > 0 && test.workers == 1:
				oneWorker = perPair
			case test.delay > 0:
				b.ReportMetric(oneWorker/perPair, "x-one-worker")
			case test.pairs == 1e3:
				smallest = perPair
			case test.workers == 1:
				b.ReportMetric(perPair/smallest, "x-cost-at-1000")
			}
		})
	}
}

// coldStart is a server with n volumes and n claims of the same multiset of sizes, created in random order.
func coldStart(tb testing.TB, n int) *bindingtest.Server {
	server := bindingtest.NewServer()
	random := rand.New(rand.NewPCG(1, 1))
	order := random.Perm(n)
	for i := range n {
		_, err := server.Create(tb.Context(), bindingtest.Volume(fmt.Sprintf("pv-%03d", i), fmt.Sprintf("%dGi", 1+i%100)))
		require.NoError(tb, err)
		_, err = server.Create(tb.Context(), bindingtest.Claim("default", fmt.Sprintf("c-%03d", order[i]), fmt.Sprintf("%dGi", 1+order[i]%100)))
		require.NoError(tb, err)
	}
	return server
}
