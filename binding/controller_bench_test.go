package binding_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/bindingtest"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
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
			// The first round is not measured: it is the one that asks the system for memory.
			coldStartRound(b, test.pairs, test.workers, test.delay)
			var rounds []time.Duration
			round := func() { rounds = append(rounds, coldStartRound(b, test.pairs, test.workers, test.delay)) }
			for b.Loop() {
				round()
			}
			for len(rounds) < 3 {
				round()
			}
			slices.Sort(rounds)
			b.ReportMetric(0, "ns/op") // it would be the time of the preparations too
			perPair := rounds[len(rounds)/2].Seconds() / float64(test.pairs)
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

// coldStartRound binds n claims to n volumes, and is how long that took.
func coldStartRound(b *testing.B, pairs, workers int, delay time.Duration) time.Duration {
	driven := newDriver(coldStart(b, pairs))
	var writes, reads atomic.Int64
	driven.client.Use(func(call *bindingtest.Call, do func() error) error {
		switch {
		case call.Writes():
			writes.Add(1)
			time.Sleep(delay)
		case call.Verb != bindingtest.VerbRecord:
			reads.Add(1)
		}
		return do()
	})
	runtime.GC() // what making the objects left is not ours
	began := time.Now()
	require.Empty(b, driven.run(b.Context(), workers))
	took := time.Since(began)
	require.Equal(b, pairs, CountBound(b, driven.server, pairs))
	require.EqualValues(b, 4*pairs, writes.Load())
	require.Zero(b, reads.Load())
	return took
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
