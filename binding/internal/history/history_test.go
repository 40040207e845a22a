package history

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
)

// TestHistories plays random histories and holds each to the X rules: X2, X3, X5 and X6 at every moment, the others
// when it has settled. PVBIND_SEED replays one and prints all of it; PVBIND_MODEL=long plays many more.
func TestHistories(t *testing.T) { playMany(t, small, 100, 4000, 400_000) }

// TestLargeHistories plays the same with more objects than all interleavings of which could be tried.
func TestLargeHistories(t *testing.T) { playMany(t, large, 5, 100, 10_000) }

func playMany(t *testing.T, of extent, short, usual, long uint64) {
	t.Parallel()
	if seed := os.Getenv("PVBIND_SEED"); seed != "" {
		number, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err, "PVBIND_SEED")
		h := play(rand.NewPCG(number, 0), of)
		t.Log(strings.Join(h.log, "\n"))
		require.Empty(t, h.Broken)
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
		require.Empty(t, h.Broken, "replay with PVBIND_SEED=%d go test ./binding/internal/history -run '^%s$' -v", seed, t.Name())
		steps += len(h.log)
	}
	t.Logf("%d histories, %d things that happened", histories, steps)
}

func play(source rand.Source, of extent) *History {
	h := newRandom(source, of)
	for range 1 + h.IntN(2) {
		for range h.steps/4 + h.IntN(h.steps*3/4) {
			h.step()
		}
		if !h.Settle() {
			h.Broke("X8: it does not settle")
			return h
		}
		h.JudgeEnd()
		h.PassAgain()
	}
	return h
}

// The fuzz targets make their input of the choices that the bytes stand for, so that a mutated input is a
// changed world and not one that cannot be read. To look for more:
//
//	go test ./binding/internal/history -run '^$' -fuzz FuzzHistory -fuzztime 10m

// FuzzHistory plays the history that the bytes stand for and holds it to the X rules; see TestHistories.
func FuzzHistory(f *testing.F) {
	AddSeeds(f, 1000)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		h := play(NewChoices(bytes), small)
		require.Empty(t, h.Broken, "%v", h.log)
	})
}
