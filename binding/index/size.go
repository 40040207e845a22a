package index

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// sizeOf returns a number that orders quantities: twice the quantity, or the odd number below it for a quantity that is
// not whole. Whatever is beyond 4 EiB is of one size, and so is whatever is negative. A greater quantity never has a
// smaller size, and equal sizes that are exact mean equal quantities.
func sizeOf(quantity resource.Quantity) int64 {
	whole, ok := quantity.AsInt64()
	switch {
	case ok && 0 <= whole && whole <= math.MaxInt64/2:
		return 2 * whole
	case quantity.Sign() < 0:
		return negative
	case quantities.Compare(quantity, *resource.NewQuantity(math.MaxInt64/2, resource.BinarySI)) > 0:
		return beyond
	}
	up := quantity.Value()
	if quantity.CmpInt64(up) == 0 {
		return 2 * up
	}
	return 2*up - 1
}

const (
	beyond   = math.MaxInt64
	negative = -1
)

// exact reports whether all quantities of a size are equal.
func exact(size int64) bool { return size&1 == 0 }

// lowest returns the key before all entries of a quantity and of greater ones.
func lowest(quantity resource.Quantity) key {
	return key{size: sizeOf(quantity), quantity: quantity}
}
