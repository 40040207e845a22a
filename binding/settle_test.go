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
// when it has settled. PVBIND_SEED replays one and tells all of it.
func TestHistories(t *testing.T) {
	if seed := os.Getenv("PVBIND_SEED"); seed != "" {
		number, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err, "PVBIND_SEED")
		h := play(number)
		t.Log(strings.Join(h.path, "\n"))
		require.Empty(t, h.broken)
		return
	}
	histories := uint64(4000)
	if testing.Short() {
		histories = 800
	}
	for seed := range histories {
		if h := play(seed); len(h.broken) > 0 {
			require.Fail(t, strings.Join(h.broken, "\n"), "replay with PVBIND_SEED=%d", seed)
		}
	}
}

func play(seed uint64) *history { return playFrom(rand.NewPCG(seed, 0)) }

func playFrom(source rand.Source) *history {
	h := newHistory(source)
	for range 1 + h.IntN(2) {
		for range 20 + h.IntN(60) {
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
