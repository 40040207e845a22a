package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pvbind/pvbind/binding/obj"
)

func slotKeys(names ...string) []obj.Key {
	var keys []obj.Key
	for _, name := range names {
		keys = append(keys, obj.VolumeKey(name))
	}
	return keys
}

// next returns whom slots are promised to after a sync has ended, or one of that key was not needed while another runs.
func next(s *slots, ended obj.Key) (keys []obj.Key) {
	if _, running := s.running[ended]; !running {
		s.release(ended)
	}
	for {
		key, _, ok := s.promise(anybody)
		if !ok {
			return keys
		}
		keys = append(keys, key)
	}
}

func TestRhHowManyHooksRunAtOnce(t *testing.T) {
	a, b, c, d := obj.VolumeKey("a"), obj.VolumeKey("b"), obj.VolumeKey("c"), obj.VolumeKey("d")
	t.Run("Rh no more than the bound", func(t *testing.T) {
		for limit, want := range map[int]int{1: 1, 3: 3} {
			hooks, taken := &slots{limit: limit}, 0
			for i := range 20 {
				if hooks.acquire(obj.VolumeKey(fmt.Sprint(i)), fmt.Sprint(i)) {
					taken++
				}
			}
			assert.Equal(t, want, taken)
		}
	})
	t.Run("Rh who found none goes when there is one, in order", func(t *testing.T) {
		hooks := &slots{limit: 1}
		require.True(t, hooks.acquire(a, ""))
		for _, key := range []obj.Key{b, c, b} {
			require.False(t, hooks.acquire(key, ""))
			assert.Empty(t, next(hooks, key), "there is no room yet")
		}
		hooks.release(a)
		assert.Equal(t, slotKeys("b"), next(hooks, a))
		assert.Empty(t, next(hooks, d), "it is promised to b")
		assert.True(t, hooks.acquire(b, ""))
		hooks.release(b)
		assert.Equal(t, slotKeys("c"), next(hooks, b), "b was queued once")
	})
	t.Run("Rh a promised slot is nobody else's", func(t *testing.T) {
		hooks := &slots{limit: 1}
		hooks.acquire(a, "")
		hooks.acquire(b, "")
		hooks.release(a)
		next(hooks, a)
		assert.False(t, hooks.acquire(c, ""))
		assert.True(t, hooks.acquire(b, ""))
	})
	t.Run("Rh a promised slot that is not needed goes to the next", func(t *testing.T) {
		hooks := &slots{limit: 1}
		hooks.acquire(a, "")
		hooks.acquire(b, "")
		hooks.acquire(c, "")
		hooks.release(a)
		require.Equal(t, slotKeys("b"), next(hooks, a))
		assert.Equal(t, slotKeys("c"), next(hooks, b))
	})
	t.Run("Rh nobody is faster than who waits, before that one is promised a slot", func(t *testing.T) {
		hooks := &slots{limit: 1}
		hooks.acquire(a, "")
		hooks.acquire(b, "")
		hooks.release(a)
		require.False(t, hooks.acquire(c, ""))
		assert.Equal(t, slotKeys("b"), next(hooks, c))
		assert.True(t, hooks.acquire(b, ""))
		hooks.release(b)
		assert.Equal(t, slotKeys("c"), next(hooks, b))
	})
	t.Run("Rh a copy has slots of its own", func(t *testing.T) {
		hooks := &slots{limit: 1}
		copied := hooks.clone()
		require.True(t, hooks.acquire(a, ""))
		assert.True(t, copied.acquire(b, ""))
		waits := hooks.clone()
		require.False(t, waits.acquire(c, ""))
		hooks.release(a)
		assert.Empty(t, next(hooks, a))
		again := waits.clone()
		require.False(t, again.acquire(d, ""))
		waits.release(a)
		assert.Equal(t, slotKeys("c"), next(&waits, a))
	})
}

func TestRhNoNamespaceHasMoreThanHalfOfTheHooks(t *testing.T) {
	claim := func(namespace string, n int) obj.Key { return obj.ClaimKey(namespace, fmt.Sprint(n)) }
	for limit, share := range map[int]int{1: 1, 2: 1, 3: 2, 10: 5} {
		t.Run(fmt.Sprintf("Rh of %d", limit), func(t *testing.T) {
			hooks, taken := &slots{limit: limit}, 0
			for n := range 20 {
				if hooks.acquire(claim("greedy", n), "greedy") {
					taken++
				}
				assert.Empty(t, next(hooks, claim("greedy", n)))
			}
			assert.Equal(t, share, taken)
			assert.Equal(t, limit > 1, hooks.acquire(claim("other", 0), "other"))
		})
	}
}

func TestRhNamespacesThatWaitAreServedInTurn(t *testing.T) {
	hooks := &slots{limit: 1}
	at := func(namespace string, n int) obj.Key { return obj.ClaimKey(namespace, fmt.Sprint(n)) }
	running := at("a", 0)
	require.True(t, hooks.acquire(running, "a"))
	for _, key := range []obj.Key{at("a", 1), at("a", 2), at("a", 3), at("b", 1), at("b", 2), at("c", 1)} {
		require.False(t, hooks.acquire(key, key.Namespace))
	}
	var served []string
	for range 6 {
		hooks.release(running)
		next := next(hooks, running)
		require.Len(t, next, 1)
		running = next[0]
		require.True(t, hooks.acquire(running, running.Namespace))
		served = append(served, running.Namespace+running.Name)
	}
	assert.Equal(t, []string{"a1", "b1", "c1", "a2", "b2", "a3"}, served, "Rh")
}

// TestRhSlotsAgainstAModel has workers sync keys in any order, each key so often; some syncs want a hook. The model is
// that a hook runs for a key at most once, no more than the bound at a time, half of that for a namespace, and that nothing is
// left when all that Next returned was synced.
func TestRhSlotsAgainstAModel(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + random.IntN(4)
		hooks, wants := &slots{limit: limit}, map[obj.Key]int{}
		var queue, running []obj.Key
		for i := range 2 + random.IntN(12) {
			key := obj.ClaimKey(fmt.Sprint("in-", random.IntN(1+i/4)), fmt.Sprint(i))
			wants[key] = random.IntN(3)
			queue = append(queue, key)
		}
		add := func(keys []obj.Key) {
			for _, key := range keys {
				if !slices.Contains(queue, key) {
					queue = append(queue, key)
				}
			}
		}
		for len(queue)+len(running) > 0 {
			require.LessOrEqual(t, len(running), limit, "Rh, seed %d", seed)
			for _, one := range running {
				same := slices.DeleteFunc(slices.Clone(running), func(key obj.Key) bool { return key.Namespace != one.Namespace })
				require.LessOrEqual(t, len(same), (limit+1)/2, "Rh, seed %d", seed)
			}
			if len(queue) == 0 || len(running) > 0 && random.IntN(2) == 0 {
				i := random.IntN(len(running))
				key := running[i]
				running = slices.Delete(running, i, i+1)
				hooks.release(key)
				add(next(hooks, key))
				if wants[key]--; wants[key] > 0 {
					add([]obj.Key{key})
				}
				continue
			}
			i := random.IntN(len(queue))
			key := queue[i]
			queue = slices.Delete(queue, i, i+1)
			switch {
			case slices.Contains(running, key): // the sync that runs sees to it
			case wants[key] > 0 && random.IntN(4) > 0:
				if hooks.acquire(key, key.Namespace) {
					running = append(running, key)
				} else {
					add(next(hooks, key))
				}
			case wants[key] > 0: // ends for another reason, which runs it again
				add(next(hooks, key))
				add([]obj.Key{key})
			default:
				add(next(hooks, key))
			}
		}
		for key, left := range wants {
			require.LessOrEqual(t, left, 0, "Rh: %s is never run again, seed %d", key, seed)
		}
		free := 0
		for hooks.acquire(obj.VolumeKey(fmt.Sprint("new", free)), fmt.Sprint("new", free)) {
			free++
		}
		require.Equal(t, limit, free, "Rh: a slot is lost, seed %d", seed)
	}
}
