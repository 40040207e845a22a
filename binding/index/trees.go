package index

import (
	"math/bits"
	"slices"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
)

// modeTrees keeps items by their set of access modes, each set in a B-tree of its own. The zero value is
// empty.
type modeTrees[T ranked] struct {
	used  modeMask
	trees []btree[T] // of the sets in used, in that order
}

// modeMask is a set of sets of access modes. The bits are in the order of narrowest.
type modeMask uint16

// narrowest are all sets of access modes, the smaller ones first.
var narrowest = [...]accessmode.Set{0, 1, 2, 4, 8, 3, 5, 6, 9, 10, 12, 7, 11, 13, 14, 15}

func slotOf(modes accessmode.Set) int {
	for slot, set := range narrowest {
		if set == modes {
			return slot
		}
	}
	panic("unreachable: narrowest has every set")
}

// serving are the sets that have all the modes asked for.
func serving(asked accessmode.Set) modeMask {
	var serving modeMask
	for slot, set := range narrowest {
		if set.Contains(asked) {
			serving |= 1 << slot
		}
	}
	return serving
}

// servedBy are the sets that ask for no mode but those offered.
func servedBy(offered accessmode.Set) modeMask {
	var served modeMask
	for slot, set := range narrowest {
		if offered.Contains(set) {
			served |= 1 << slot
		}
	}
	return served
}

// next is the lowest slot of the set, and the set without it.
func (s modeMask) next() (int, modeMask) { return bits.TrailingZeros16(uint16(s)), s & (s - 1) }

// in is the tree of a slot; nil if it is empty.
func (k *modeTrees[T]) in(slot int) *btree[T] {
	if k == nil || k.used>>slot&1 == 0 {
		return nil
	}
	return &k.trees[k.position(slot)]
}

func (k *modeTrees[T]) position(slot int) int {
	return bits.OnesCount16(uint16(k.used & (1<<slot - 1)))
}

func (k *modeTrees[T]) len() int {
	if k == nil {
		return 0
	}
	count := 0
	for i := range k.trees {
		count += k.trees[i].len()
	}
	return count
}

func (k *modeTrees[T]) insert(modes accessmode.Set, r rank, item T) {
	slot := slotOf(modes)
	at := k.position(slot)
	if k.used>>slot&1 == 0 {
		k.trees = slices.Insert(k.trees, at, btree[T]{})
		k.used |= 1 << slot
	}
	k.trees[at].insert(r, item)
}

func (k *modeTrees[T]) remove(modes accessmode.Set, r rank) {
	slot := slotOf(modes)
	at := k.position(slot)
	if k.used>>slot&1 == 0 {
		return
	}
	k.trees[at].remove(r)
	if k.trees[at].len() == 0 {
		k.trees = slices.Delete(k.trees, at, at+1)
		k.used &^= 1 << slot
	}
}

// labelTrees are modeTrees by a label.
type labelTrees[T ranked] map[label]*modeTrees[T]

// label is a label, of a volume or a node, with its value.
type label struct{ key, value string }

func (r *labelTrees[T]) insert(by label, modes accessmode.Set, place rank, item T) {
	if (*r)[by] == nil {
		zeromap.Put(r, by, &modeTrees[T]{})
	}
	(*r)[by].insert(modes, place, item)
}

func (r labelTrees[T]) remove(by label, modes accessmode.Set, place rank) {
	if trees := r[by]; trees != nil {
		if trees.remove(modes, place); trees.used == 0 {
			delete(r, by)
		}
	}
}
