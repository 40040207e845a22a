package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/examples/cluster/controlplane"
)

const (
	benchPairs = 2000
	// patience is for a binder that leaves claims Pending: kube-controller-manager looks at all again every 15 s.
	patience = 20 * time.Second
)

// result is what one binder did with the pairs, from its start on.
type result struct {
	bound    int
	first    time.Duration // until the first one was
	took     time.Duration // until the last one was
	requests requests
	memory   int64 // bytes at most, of the process; 0 if it is none
	cpu      time.Duration
}

func (r result) rate() float64 { return float64(r.bound) / r.took.Seconds() }

func (r result) String() string {
	line := fmt.Sprintf("%4.0f claims/s: %d bound in %.1f s, the first after %.1f s, %d left Pending, %.2f writes a claim, %d conflicts",
		r.rate(), r.bound, r.took.Seconds(), r.first.Seconds(), benchPairs-r.bound, float64(r.requests.starting("update"))/benchPairs, r.requests.starting("conflict"))
	if r.memory > 0 {
		line += fmt.Sprintf(", %d MB, %.1f s of processor time", r.memory>>20, r.cpu.Seconds())
	}
	return line + "\n" + r.requests.String()
}

// rounds is how often each has its turn; medians count. Rates are compared round by round, for what else the machine does
// changes from one to the next.
const rounds = 5

// turns are the results of one binder.
type turns []result

// BenchmarkBinding has kube-controller-manager, pvbinder and something that decides nothing bind the same claims, each
// started on a cluster that is full of them.
func BenchmarkBinding(b *testing.B) {
	_, err := pvbinder() // building it takes longer than starting it
	require.NoError(b, err)
	for b.Loop() {
		var managers, binders, ceilings turns
		for range rounds {
			managers.add(b, "kube-controller-manager", bindAll(b, func() *controlplane.Process { return startManager(b, controlplane.Binder) }))
			turn := bindAll(b, func() *controlplane.Process { return startBinder(b, "pvbinder") })
			assertFourWrites(b, turn)
			binders.add(b, "pvbinder", turn)
			ceilings.add(b, "ceiling", bindAll(b, func() *controlplane.Process {
				require.NoError(b, bindBlindly(b.Context(), connect(b, plane.Config())))
				return nil
			}))
		}
		b.ReportMetric(managers.rate(), "manager-claims/s")
		b.ReportMetric(binders.rate(), "pvbinder-claims/s")
		b.ReportMetric(ceilings.rate(), "ceiling-claims/s")
		xManager, xCeiling := binders.over(managers), binders.over(ceilings)
		b.ReportMetric(xManager, "x-manager")
		b.ReportMetric(xCeiling, "x-ceiling")
		assert.GreaterOrEqual(b, xManager, 3.5, "times kube-controller-manager")
		assert.GreaterOrEqual(b, xCeiling, 0.8, "of the ceiling")
	}
}

// add tells what came of a turn.
func (t *turns) add(b *testing.B, name string, turn result) {
	b.Helper()
	b.Logf("%s: %s", name, turn)
	require.Positive(b, turn.bound, name)
	*t = append(*t, turn)
}

// rate is the median.
func (t turns) rate() float64 {
	rates := make([]float64, len(t))
	for i := range t {
		rates[i] = t[i].rate()
	}
	return median(rates)
}

// over is the median of how many times as fast as the others these were in the same round.
func (t turns) over(others turns) float64 {
	ratios := make([]float64, len(t))
	for i := range t {
		ratios[i] = t[i].rate() / others[i].rate()
	}
	return median(ratios)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// assertFourWrites holds a binder to B6: none left, four writes a claim, no conflict with itself.
func assertFourWrites(t testing.TB, r result) {
	t.Helper()
	assert.Equal(t, benchPairs, r.bound)
	assert.Zero(t, r.requests.starting("conflict"))
	for _, of := range []string{"persistentvolumes", "persistentvolumes/status", "persistentvolumeclaims", "persistentvolumeclaims/status"} {
		assert.Equal(t, benchPairs, r.requests["update "+of], "B6 W1 %s", of)
	}
}

// bindAll starts a binder on a cluster with all claims and volumes, and stops it when it is done.
func bindAll(b *testing.B, start func() *controlplane.Process) result {
	b.Helper()
	a := newAPI(b)
	require.NoError(b, createAll(b.Context(), a, pairsOf(benchPairs)))
	wait := watchBound(b, a, benchPairs, patience)
	before, err := countRequests(b.Context(), a)
	require.NoError(b, err)

	began := time.Now()
	process := start()
	seen := wait()
	r := result{bound: len(seen.bound), first: seen.first.Sub(began), took: seen.last.Sub(began)}
	if process != nil {
		r.memory = process.PeakMemory()
		process.Kill()
		r.cpu = process.CPU()
	}
	after, err := countRequests(b.Context(), a)
	require.NoError(b, err)
	r.requests = after.since(before)
	return r
}
