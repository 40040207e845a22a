package binding_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModelStoriesCanBeToldAgain walks at random through the worlds of the model and writes each path down as a
// scenario. Told again, on bindingtest.Server, it reads the same and breaks nothing: so a counterexample can be
// dropped into testdata. And after every move both servers have the same objects.
func TestModelStoriesCanBeToldAgain(t *testing.T) {
	t.Parallel()
	const seed, length = 1, 60
	walks := 30
	if testing.Short() {
		walks = 1
	}
	for _, world := range modelWorlds() {
		t.Run(world.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, seed))
			for range walks {
				m := newModel(world)
				m.faults++
				text := m.story("X8: a walk.", m.walk(random, length))
				require.NotContains(t, text, "# but:")
				again, violations, err := told(t, text)
				require.NoError(t, err, text)
				require.Empty(t, violations, text)
				require.Equal(t, text, again)
			}
		})
	}
}

// walk takes moves at random.
func (m *model) walk(random *rand.Rand, length int) (path []move) {
	now := m.beginning()
	for range length {
		moves := m.moves(now)
		if len(moves) == 0 {
			break
		}
		mv := moves[random.IntN(len(moves))]
		if next := m.apply(now, mv); next != nil {
			path, now = append(path, mv), next
		}
	}
	return path
}
