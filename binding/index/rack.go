package index

import (
	"math/bits"
	"slices"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
)

// rack keeps items by their set of access modes, each set in an order of its own. The zero value is
// empty.
type rack[T ranked] struct {
	used   slots
	orders []ordered[T] // of the used slots
}

// slots is a set of sets of access modes. The bits are in the order of narrowest.
type slots uint16

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
func serving(asked accessmode.Set) slots {
	var serving slots
	for slot, set := range narrowest {
		if set.Contains(asked) {
			serving |= 1 << slot
		}
	}
	return serving
}

// servedBy are the sets that ask for no mode but those offered.
func servedBy(offered accessmode.Set) slots {
	var served slots
	for slot, set := range narrowest {
		if offered.Contains(set) {
			served |= 1 << slot
		}
	}
	return served
}

// next is the lowest slot of the set, and the set without it.
func (s slots) next() (int, slots) { return bits.TrailingZeros16(uint16(s)), s & (s - 1) }

// in is the order of a slot; nil if it is empty.
func (k *rack[T]) in(slot int) *ordered[T] {
	if k == nil || k.used>>slot&1 == 0 {
		return nil
	}
	return &k.orders[k.position(slot)]
}

func (k *rack[T]) position(slot int) int {
	return bits.OnesCount16(uint16(k.used & (1<<slot - 1)))
}

func (k *rack[T]) len() int {
	if k == nil {
		return 0
	}
	count := 0
	for i := range k.orders {
		count += k.orders[i].len()
	}
	return count
}

func (k *rack[T]) insert(modes accessmode.Set, r rank, item T) {
	slot := slotOf(modes)
	at := k.position(slot)
	if k.used>>slot&1 == 0 {
		k.orders = slices.Insert(k.orders, at, ordered[T]{})
		k.used |= 1 << slot
	}
	k.orders[at].insert(r, item)
}

func (k *rack[T]) remove(modes accessmode.Set, r rank) {
	slot := slotOf(modes)
	at := k.position(slot)
	if k.used>>slot&1 == 0 {
		return
	}
	k.orders[at].remove(r)
	if k.orders[at].len() == 0 {
		k.orders = slices.Delete(k.orders, at, at+1)
		k.used &^= 1 << slot
	}
}

// racks are racks by a label.
type racks[T ranked] map[label]*rack[T]

// label is a label, of a volume or a node, with its value.
type label struct{ key, value string }

func (r *racks[T]) insert(by label, modes accessmode.Set, place rank, item T) {
	if (*r)[by] == nil {
		zeromap.Put(r, by, &rack[T]{})
	}
	(*r)[by].insert(modes, place, item)
}

func (r racks[T]) remove(by label, modes accessmode.Set, place rank) {
	if rack := r[by]; rack != nil {
		if rack.remove(modes, place); rack.used == 0 {
			delete(r, by)
		}
	}
}
