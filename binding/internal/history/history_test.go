package history

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/pvbind/pvbind/binding/internal/testkit"
)

// TestHistories plays random histories and holds each to the X rules: X2, X3, X5 and X6 at every moment, the others
// when it has settled. PVBIND_SEED replays one and prints all of it; PVBIND_MODE=full and long play more.
func TestHistories(t *testing.T) {
	playMany(t, small, Counts{Short: 12, Usual: 900, Full: 3000, Long: 400_000})
}

// TestLargeHistories plays the same with more objects than all interleavings of which could be tried.
func TestLargeHistories(t *testing.T) {
	playMany(t, large, Counts{Short: 1, Usual: 40, Full: 100, Long: 10_000})
}

// TestHistoriesOfARestore plays those in which the server is restored to before much that the controllers know. Nobody gets by that what
// is on a volume which all of them know to be a claim's (W8).
func TestHistoriesOfARestore(t *testing.T) {
	given := 0
	t.Cleanup(func() { t.Logf("%d volumes were a claim's before the restore, and free after it", given) })
	playAll(t, Counts{Short: 5, Usual: 500, Full: 2000, Long: 300_000}, func(source rand.Source) *History {
		h := playRestored(source)
		given += h.lost
		return h
	})
}

func playRestored(source rand.Source) *History {
	h := newRandom(source, small)
	h.followsData = true
	steps := func(atMost int) {
		for range h.IntN(atMost) {
			h.step()
		}
	}
	steps(60)
	if !h.backedUp {
		h.travel(h.Controllers[0])
	}
	steps(120)
	if h.oneIn(2) && !h.Settle() {
		h.Broke("X8: it does not settle")
	}
	if h.backup != nil {
		h.travel(h.Controllers[0])
	}
	steps(150)
	if !h.Settle() {
		h.Broke("X8: it does not settle")
		return h
	}
	h.JudgeEnd()
	return h
}

func playMany(t *testing.T, of extent, counts Counts) {
	playAll(t, counts, func(source rand.Source) *History { return play(source, of) })
}

func playAll(t *testing.T, counts Counts, play func(rand.Source) *History) {
	t.Parallel()
	histories, steps, restores, noticed := 0, 0, 0, 0
	for seed := range Seeds(t, counts) {
		h := play(rand.NewPCG(seed, 0))
		if os.Getenv("PVBIND_SEED") != "" {
			t.Log(strings.Join(h.log, "\n"))
		}
		require.Empty(t, h.Broken, "replay with PVBIND_SEED=%d go test ./binding/internal/history -run '^%s$' -v", seed, t.Name())
		histories, steps, restores = histories+1, steps+len(h.log), restores+h.restores
		for _, c := range h.Controllers {
			noticed += c.restores
		}
	}
	t.Logf("%d histories, %d things that happened, %d restores, noticed %d times", histories, steps, restores, noticed)
}

func play(source rand.Source, of extent) *History {
	h := newRandom(source, of)
	h.followsData = true
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
