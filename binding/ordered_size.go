package binding

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

// sizeOf is a number that orders quantities: twice the quantity, or the odd number below it for one that
// is not whole. What is beyond 4 EiB, and what is negative, is all one size. So a greater quantity never
// has a smaller size, and equal sizes that are exact mean equal quantities.
func sizeOf(quantity resource.Quantity) int64 {
	whole, ok := quantity.AsInt64()
	if !ok {
		return sizeOfOdd(quantity)
	}
	switch {
	case whole < 0:
		return negative
	case whole > math.MaxInt64/2:
		return beyond
	}
	return 2 * whole
}

const (
	beyond   = math.MaxInt64
	negative = -1
)

// exact reports whether all quantities of a size are equal.
func exact(size int64) bool { return size&1 == 0 }

// sizeOfOdd is for fractions and for numbers that are not held in 64 bits.
func sizeOfOdd(quantity resource.Quantity) int64 {
	switch {
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
