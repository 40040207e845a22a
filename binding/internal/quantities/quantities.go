// Package quantities compares, adds, writes and parses quantities, in time that does not depend on how large they are.
//
// Anybody who may create a claim can request "1e10000000", and the methods of resource.Quantity take seconds over that (X9).
package quantities

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/oneline"
)

// Compare orders quantities as their method Cmp does. That one scales both to the same power of ten, which takes seconds
// where they are millions of digits apart (X7). It may also change how its receiver is held, which here is a copy (X6).
func Compare(a, b resource.Quantity) int {
	_, wholeA := a.AsInt64()
	_, wholeB := b.AsInt64()
	if wholeA && wholeB {
		return a.Cmp(b)
	}
	sign := a.Sign()
	if order := cmp.Compare(sign, b.Sign()); order != 0 || sign == 0 {
		return order
	}
	if apart := digits(a) - digits(b); apart < -2 || apart > 2 {
		return sign * cmp.Compare(apart, 0)
	}
	return a.Cmp(b)
}

// Sum returns the sum of two quantities. Of two that are so far apart that the smaller one does not count in 20 digits, it is
// the larger one: their method Add would write out all digits between them.
func Sum(a, b resource.Quantity) resource.Quantity {
	switch {
	case a.IsZero():
		return b.DeepCopy()
	case b.IsZero() || digits(a)-digits(b) > farApart:
		return a.DeepCopy()
	case digits(b)-digits(a) > farApart:
		return b.DeepCopy()
	}
	sum := a.DeepCopy()
	sum.Add(b)
	return sum
}

// farApart is in decimal digits.
const farApart = 20

// Share returns the part of the whole, from 0 to 1; all of it if there is nothing.
func Share(part, whole resource.Quantity) float64 {
	switch {
	case whole.Sign() <= 0 || Compare(part, whole) >= 0:
		return 1
	case part.Sign() <= 0:
		return 0
	}
	a, b := part.AsApproximateFloat64(), whole.AsApproximateFloat64()
	if a == 0 || math.IsInf(b, 1) {
		return math.Pow(10, logarithm(part)-logarithm(whole))
	}
	return a / b
}

// Percent returns the part of the whole in percent, from 0 to 100, rounded down; 100 if there is nothing. It is exact for
// whole numbers of 64 bits.
func Percent(part, whole resource.Quantity) int {
	a, wholeA := part.AsInt64()
	b, wholeB := whole.AsInt64()
	if !wholeA || !wholeB || a < 0 || b <= 0 || a >= b {
		return int(100 * Share(part, whole))
	}
	high, low := bits.Mul64(uint64(a), 100)
	percent, _ := bits.Div64(high, low, uint64(b)) // cannot overflow, for a < b
	return int(percent)
}

// logarithm returns the decimal logarithm of a positive quantity.
func logarithm(quantity resource.Quantity) float64 {
	decimal := quantity.AsDec()
	mantissa, exponent := new(big.Float), 0
	exponent = new(big.Float).SetInt(decimal.UnscaledBig()).MantExp(mantissa)
	value, _ := mantissa.Float64()
	return math.Log10(value) + float64(exponent)*math.Log10(2) - float64(decimal.Scale())
}

// Text returns the quantity in its usual form, or about how large it is if it has more digits than anybody reads. To write
// out a hundred thousand digits takes their method String many seconds.
func Text(quantity resource.Quantity) string {
	if _, whole := quantity.AsInt64(); whole || quantity.AsDec().UnscaledBig().BitLen() <= mostBits {
		return quantity.String()
	}
	sign := ""
	if quantity.Sign() < 0 {
		sign = "-"
	}
	return fmt.Sprintf("about %s1e%d", sign, digits(quantity))
}

// mostBits are those of 77 decimal digits.
const mostBits = 256

// digits estimates how many decimal digits a quantity that is not zero has before its point: off by less than two.
func digits(quantity resource.Quantity) int64 {
	decimal := quantity.AsDec()
	unscaled := int64(float64(decimal.UnscaledBig().BitLen()) * 0.30103) // the logarithm of 2
	return unscaled - int64(decimal.Scale())
}

// maxExponent is the length that an exponent of a quantity may have, with its letter and sign.
const maxExponent = len("e-999")

// Parse parses a quantity that no API server has validated. It fails for an exponent longer than that of e-999, which
// could take minutes.
func Parse(text string) (resource.Quantity, error) {
	if at := strings.LastIndexAny(text, "eE"); at >= 0 && len(text)-at > maxExponent {
		return resource.Quantity{}, fmt.Errorf("its exponent is too long: %s", oneline.Text(text, len("1e10000000")*4))
	}
	return resource.ParseQuantity(text)
}
