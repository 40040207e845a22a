package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/obj"
)

// shared returns a state that only shares out hooks and workers.
func shared(hooks, workers int) *State {
	return &State{hooks: slots{limit: hooks}, workers: slots{limit: workers}}
}

// begins has syncs of a namespace begin, by number, and returns their keys.
func (s *State) begins(t *testing.T, namespace string, numbers ...int) (keys []obj.Key) {
	t.Helper()
	for _, n := range numbers {
		key := obj.ClaimKey(namespace, fmt.Sprint(n))
		require.True(t, s.workers.acquire(key, namespace), "%s", key)
		keys = append(keys, key)
	}
	return keys
}

// waitsForAHook has a sync begin, find no slot for its hook, and end.
func (s *State) waitsForAHook(t *testing.T, namespace string, n int) obj.Key {
	t.Helper()
	key := s.begins(t, namespace, n)[0]
	require.False(t, s.hooks.acquire(key, namespace))
	require.Empty(t, s.release(key))
	return key
}

func TestRhW9WhoIsNext(t *testing.T) {
	t.Run("Rh W9 a slot is promised to who has a worker", func(t *testing.T) {
		state := shared(1, 6)
		holder := state.begins(t, "c", 0)[0]
		require.True(t, state.hooks.acquire(holder, "c"))
		first, second := state.waitsForAHook(t, "a", 0), state.waitsForAHook(t, "b", 0)
		slow := state.begins(t, "a", 1, 2, 3)

		assert.Equal(t, []obj.Key{second}, state.release(holder), "all workers of a are busy")
		state.begins(t, "b", 0)
		require.True(t, state.hooks.acquire(second, "b"))
		over := obj.ClaimKey("a", "4")
		require.False(t, state.workers.acquire(over, "a"))
		require.Empty(t, state.refuse(over).Next)

		state.begins(t, "c", 1)
		require.False(t, state.hooks.acquire(obj.ClaimKey("c", "1"), "c"))
		assert.Empty(t, state.release(obj.ClaimKey("c", "1")))
		assert.Equal(t, []obj.Key{over}, state.release(slow[0]), "no slot is free")
		assert.Equal(t, []obj.Key{obj.ClaimKey("c", "1")}, state.release(second), "the worker is promised already")
		assert.Empty(t, state.release(slow[1]))
		assert.Equal(t, []obj.Key{first}, state.release(obj.ClaimKey("c", "1")), "whose turn it was")
		assert.Equal(t, first, state.begins(t, "a", 0)[0], "the worker came with the slot")
		assert.True(t, state.hooks.acquire(first, "a"))
	})
	t.Run("Rh W9 what is promised to a sync that cannot begin goes to others", func(t *testing.T) {
		state := shared(1, 4)
		volume, other := obj.VolumeKey("disk"), obj.ClaimKey("b", "0")
		holder := state.begins(t, "c", 0)[0]
		require.True(t, state.hooks.acquire(holder, "c"))
		require.True(t, state.workers.acquire(volume, "a"))
		require.False(t, state.hooks.acquire(volume, "a"))
		require.Empty(t, state.release(volume))
		require.Equal(t, other, state.waitsForAHook(t, "b", 0))
		require.Equal(t, []obj.Key{volume}, state.release(holder))

		state.locks = map[obj.Key]obj.Key{volume: obj.ClaimKey("a", "binds it")}
		assert.Equal(t, []obj.Key{other}, state.StartDraft(volume).Next)
		assert.Equal(t, []obj.Key{other}, slices.Collect(maps.Keys(state.hooks.promised)))
		assert.Equal(t, []obj.Key{other}, slices.Collect(maps.Keys(state.workers.promised)))
	})
	t.Run("W9 namespaces that wait are served in turn", func(t *testing.T) {
		state := shared(1, 2)
		running := append(state.begins(t, "a", 0), state.begins(t, "b", 0)...)
		for _, namespace := range []string{"a", "b", "c", "d", ""} {
			for n := 1; n < 4; n++ {
				require.False(t, state.workers.acquire(obj.ClaimKey(namespace, fmt.Sprint(n)), namespace))
			}
		}
		var served []string
		for range 10 {
			next := state.release(running[0])
			require.Len(t, next, 1)
			require.True(t, state.workers.acquire(next[0], next[0].Namespace))
			running = append(running[1:], next[0])
			served = append(served, next[0].Namespace+next[0].Name)
		}
		assert.Equal(t, []string{"a1", "b1", "c1", "d1", "1", "a2", "b2", "c2", "d2", "2"}, served, "W9")
	})
}

// TestRhW9AgainstAModel has workers sync keys in any order, each key so often; some syncs want a hook, and run it or end. The model
// is that no bound is exceeded, that no slot is kept for a sync without a worker, and that nothing is left when all that was
// returned to be begun was begun.
func TestRhW9AgainstAModel(t *testing.T) {
	t.Run("Rh W9", func(t *testing.T) {
		seeds := uint64(500)
		if testing.Short() {
			seeds = 50
		}
		for seed := range seeds {
			random := rand.New(rand.NewPCG(seed, 2))
			state, wants := shared(1+random.IntN(4), 1+random.IntN(6)), map[obj.Key]int{}
			var queue, running []obj.Key
			add := func(keys ...obj.Key) {
				for _, key := range keys {
					if !slices.Contains(queue, key) {
						queue = append(queue, key)
					}
				}
			}
			for i := range 2 + random.IntN(20) {
				key := obj.ClaimKey(fmt.Sprint("in-", random.IntN(1+i/4)), fmt.Sprint(i))
				wants[key] = random.IntN(3)
				add(key)
			}
			take := func(keys *[]obj.Key) (key obj.Key) {
				i := random.IntN(len(*keys))
				key = (*keys)[i]
				*keys = slices.Delete(*keys, i, i+1)
				return key
			}
			for len(queue)+len(running) > 0 {
				checkShares(t, state, seed)
				if len(queue) > 0 && random.IntN(2) > 0 {
					switch key := take(&queue); {
					case slices.Contains(running, key):
						add(key) // as a queue does whose key is being worked on
					case !state.workers.acquire(key, key.Namespace):
						add(state.refuse(key).Next...)
					default:
						running = append(running, key)
					}
					continue
				}
				if len(running) == 0 {
					continue
				}
				switch key := take(&running); {
				case random.IntN(4) == 0: // it ends for another reason, which runs it again
					add(append(state.release(key), key)...)
				case wants[key] > 0 && !state.hooks.acquire(key, key.Namespace):
					add(state.release(key)...)
				default:
					if wants[key]--; wants[key] > 0 {
						add(key)
					}
					add(state.release(key)...)
				}
			}
			for key, left := range wants {
				require.LessOrEqual(t, left, 0, "%s is never run again, seed %d", key, seed)
			}
			require.Empty(t, append(state.hooks.turns, state.workers.turns...), "seed %d", seed)
			require.Empty(t, state.hooks.held, "a slot is lost, seed %d", seed)
			require.Empty(t, state.workers.held, "a worker is lost, seed %d", seed)
		}
	})
}

func checkShares(t *testing.T, state *State, seed uint64) {
	t.Helper()
	for _, of := range []*slots{&state.hooks, &state.workers} {
		held := map[string]int{}
		for _, those := range []map[obj.Key]string{of.running, of.promised} {
			for _, namespace := range those {
				held[namespace]++
			}
		}
		require.Equal(t, len(held), len(of.held), "seed %d", seed)
		for namespace, count := range held {
			require.Equal(t, count, of.held[namespace], "seed %d", seed)
			require.LessOrEqual(t, count, (of.limit+1)/2, "Rh W9, seed %d", seed)
		}
		require.GreaterOrEqual(t, of.free(), 0, "Rh W9, seed %d", seed)
		require.Negative(t, state.workers.turn(anybody), "W9 a worker lies idle, seed %d", seed)
		require.Negative(t, state.hooks.turn(state.workers.hasRoom), "Rh a slot lies idle, seed %d", seed)
	}
	for key := range state.hooks.promised {
		_, runs := state.workers.running[key]
		_, begins := state.workers.promised[key]
		require.True(t, runs || begins, "Rh W9 %s waits for a worker, seed %d", key, seed)
	}
}
