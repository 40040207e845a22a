// Package quantities compares and reads quantities that anybody may have written.
package quantities

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/oneline"
)

// Compare orders quantities as their Cmp does, which works out both to the same power of ten. Where those are
// millions apart that takes seconds, and anybody who may create a claim can ask for "1e10000000" (X7). Cmp may also
// change how its receiver is held, which here is a copy (X6).
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
	if apart := tens(a) - tens(b); apart < -2 || apart > 2 {
		return sign * cmp.Compare(apart, 0)
	}
	return a.Cmp(b)
}

// tens is about how many decimal digits a quantity that is not zero has before its point: off by less than two.
func tens(quantity resource.Quantity) int64 {
	decimal := quantity.AsDec()
	digits := int64(float64(decimal.UnscaledBig().BitLen()) * 0.30103) // the logarithm of 2
	return digits - int64(decimal.Scale())
}

// maxExponent is how long an exponent of a quantity may be, with its letter and sign.
const maxExponent = len("e-999")

// Parse reads a quantity that no API server has read. One with a larger exponent is refused, for it could
// take minutes to work out.
func Parse(text string) (resource.Quantity, error) {
	if at := strings.LastIndexAny(text, "eE"); at >= 0 && len(text)-at > maxExponent {
		return resource.Quantity{}, fmt.Errorf("its exponent is too long: %s", oneline.Text(text, len("1e10000000")*4))
	}
	return resource.ParseQuantity(text)
}
