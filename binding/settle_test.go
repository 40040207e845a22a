package binding_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHistories plays random histories and holds each to the X rules: X2, X3, X5 and X6 at every moment, the others
// when it has settled. PVBIND_SEED replays one and tells all of it; PVBIND_MODEL=long plays many more.
func TestHistories(t *testing.T) { playMany(t, small, 100, 4000, 400_000) }

// TestLargeHistories is the same with more objects than all interleavings of which could be tried.
func TestLargeHistories(t *testing.T) { playMany(t, large, 5, 100, 10_000) }

func playMany(t *testing.T, of extent, short, usual, long uint64) {
	t.Parallel()
	if seed := os.Getenv("PVBIND_SEED"); seed != "" {
		number, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err, "PVBIND_SEED")
		h := play(rand.NewPCG(number, 0), of)
		t.Log(strings.Join(h.path, "\n"))
		require.Empty(t, h.broken)
		return
	}
	histories := usual
	switch {
	case testing.Short():
		histories = short
	case os.Getenv("PVBIND_MODEL") == "long":
		histories = long
	}
	steps := 0
	for seed := range histories {
		h := play(rand.NewPCG(seed, 0), of)
		require.Empty(t, h.broken, "replay with PVBIND_SEED=%d go test ./binding -run '^%s$' -v", seed, t.Name())
		steps += len(h.path)
	}
	t.Logf("%d histories, %d things that happened", histories, steps)
}

func play(source rand.Source, of extent) *history {
	h := newHistory(source, of)
	for range 1 + h.IntN(2) {
		for range h.steps/4 + h.IntN(h.steps*3/4) {
			h.step()
		}
		if !h.settle() {
			h.broke("X8: it does not settle")
			return h
		}
		h.judgeEnd()
		h.passAgain()
	}
	return h
}
