package testkit

import (
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// RunMode is how much of its histories and small worlds a run plays.
type RunMode string

const (
	// RunShort means a few of each, with -short.
	RunShort RunMode = "Short"
	// RunUsual means a sample of what Full plays.
	RunUsual RunMode = "Usual"
	// RunFull means enough to see each row of each table at least once: PVBIND_MODE=full, as CI runs it.
	RunFull RunMode = "Full"
	// RunLong means hours of it, run by hand: PVBIND_MODE=long.
	RunLong RunMode = "Long"
)

// ModeOfRun returns the mode of this run. It panics if PVBIND_MODE has another value.
func ModeOfRun() RunMode {
	switch text := os.Getenv("PVBIND_MODE"); text {
	case "long":
		return RunLong
	case "full":
		return RunFull
	case "":
		if testing.Short() {
			return RunShort
		}
		return RunUsual
	default:
		panic("PVBIND_MODE is " + text + ": it can be full or long")
	}
}

// Counts are how many histories are played in runs of each mode.
type Counts struct {
	Short, Usual, Full, Long uint64
}

// Seeds yields the seeds of the random histories that this run plays: the first ones, as many as its mode says. In CI
// it adds as many as Usual says, of those that a long run plays, from a place that changes from run to run and is
// logged. PVBIND_SEED replays one alone.
func Seeds(t testing.TB, counts Counts) iter.Seq[uint64] {
	t.Helper()
	if seed, ok := fixedSeed(t); ok {
		return between(seed, seed+1)
	}
	switch ModeOfRun() {
	case RunShort:
		return between(0, counts.Short)
	case RunUsual:
		return between(0, counts.Usual)
	case RunLong:
		return between(0, counts.Long)
	}
	if os.Getenv("CI") == "" {
		return between(0, counts.Full)
	}
	more := counts.Full + rand.Uint64N(counts.Long-counts.Full-counts.Usual)
	t.Logf("%d histories from seed 0, and %d from seed %d", counts.Full, counts.Usual, more)
	return func(yield func(uint64) bool) {
		for seed := range between(0, counts.Full) {
			if !yield(seed) {
				return
			}
		}
		between(more, more+counts.Usual)(yield)
	}
}

func between(first, end uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for seed := first; seed < end && yield(seed); seed++ {
		}
	}
}

// SeedOf returns the seed of a random test: PVBIND_SEED if that is set, to repeat a failure or try another.
func SeedOf(t testing.TB) uint64 {
	t.Helper()
	seed, ok := fixedSeed(t)
	if !ok {
		seed = 1
	}
	t.Logf("PVBIND_SEED=%d", seed)
	return seed
}

func fixedSeed(t testing.TB) (seed uint64, ok bool) {
	t.Helper()
	text := os.Getenv("PVBIND_SEED")
	if text == "" {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, "PVBIND_SEED")
	return seed, true
}

// Worlds returns how many random worlds a test tries: full, half of that in the usual run, or a hundredth under -short.
func Worlds(full int) int {
	switch ModeOfRun() {
	case RunShort:
		return full / 100
	case RunUsual:
		return (full + 1) / 2
	}
	return full
}
