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

func TestRhHowManyHooksRunAtOnce(t *testing.T) {
	a, b, c, d := obj.VolumeKey("a"), obj.VolumeKey("b"), obj.VolumeKey("c"), obj.VolumeKey("d")
	t.Run("Rh no more than the bound", func(t *testing.T) {
		for limit, want := range map[int]int{1: 1, 3: 3} {
			slots, taken := &hookSlots{limit: limit}, 0
			for i := range 20 {
				if slots.acquire(obj.VolumeKey(fmt.Sprint(i))) {
					taken++
				}
			}
			assert.Equal(t, want, taken)
		}
	})
	t.Run("Rh who found none goes when there is one, in order", func(t *testing.T) {
		slots := &hookSlots{limit: 1}
		require.True(t, slots.acquire(a))
		for _, key := range []obj.Key{b, c, b} {
			require.False(t, slots.acquire(key))
			assert.Empty(t, slots.next(key), "there is no room yet")
		}
		slots.release(a)
		assert.Equal(t, slotKeys("b"), slots.next(a))
		assert.Empty(t, slots.next(d), "it is promised to b")
		assert.True(t, slots.acquire(b))
		slots.release(b)
		assert.Equal(t, slotKeys("c"), slots.next(b), "b was queued once")
	})
	t.Run("Rh a promised slot is nobody else's", func(t *testing.T) {
		slots := &hookSlots{limit: 1}
		slots.acquire(a)
		slots.acquire(b)
		slots.release(a)
		slots.next(a)
		assert.False(t, slots.acquire(c))
		assert.True(t, slots.acquire(b))
	})
	t.Run("Rh a promised slot that is not needed goes to the next", func(t *testing.T) {
		slots := &hookSlots{limit: 1}
		slots.acquire(a)
		slots.acquire(b)
		slots.acquire(c)
		slots.release(a)
		require.Equal(t, slotKeys("b"), slots.next(a))
		assert.Equal(t, slotKeys("c"), slots.next(b))
	})
	t.Run("Rh who came by itself while it waited does not take a second one for good", func(t *testing.T) {
		slots := &hookSlots{limit: 1}
		slots.acquire(a)
		slots.acquire(b)
		slots.release(a)
		require.True(t, slots.acquire(b), "there is room, and nobody was promised it")
		slots.release(b)
		require.Equal(t, slotKeys("b"), slots.next(b), "it is in the queue still")
		assert.Empty(t, slots.next(b))
		assert.True(t, slots.acquire(c))
	})
	t.Run("Rh a copy has slots of its own", func(t *testing.T) {
		slots := &hookSlots{limit: 1}
		copied := slots.clone()
		require.True(t, slots.acquire(a))
		assert.True(t, copied.acquire(b))
		waits := slots.clone()
		require.False(t, waits.acquire(c))
		slots.release(a)
		assert.Empty(t, slots.next(a))
	})
}

// TestRhSlotsAgainstAModel has workers sync keys in any order, each key so often; some syncs want a hook. The model is
// that a hook runs for a key at most once, no more than the bound at a time, and that nothing is left when all
// that Next returned was synced.
func TestRhSlotsAgainstAModel(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + random.IntN(4)
		slots, wants := &hookSlots{limit: limit}, map[obj.Key]int{}
		var queue, running []obj.Key
		for i := range 2 + random.IntN(12) {
			key := obj.VolumeKey(fmt.Sprint(i))
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
			if len(queue) == 0 || len(running) > 0 && random.IntN(2) == 0 {
				i := random.IntN(len(running))
				key := running[i]
				running = slices.Delete(running, i, i+1)
				slots.release(key)
				add(slots.next(key))
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
				if slots.acquire(key) {
					running = append(running, key)
				} else {
					add(slots.next(key))
				}
			case wants[key] > 0: // ends for another reason, which runs it again
				add(slots.next(key))
				add([]obj.Key{key})
			default:
				add(slots.next(key))
			}
		}
		for key, left := range wants {
			require.LessOrEqual(t, left, 0, "Rh: %s is never run again, seed %d", key, seed)
		}
		free := 0
		for slots.acquire(obj.VolumeKey(fmt.Sprint("new", free))) {
			free++
		}
		require.Equal(t, limit, free, "Rh: a slot is lost, seed %d", seed)
	}
}
