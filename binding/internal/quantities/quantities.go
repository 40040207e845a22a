// Package quantities compares and parses quantities, in time that does not depend on how large they are.
//
// Anybody who may create a claim can request "1e10000000", and the methods of resource.Quantity take seconds over that.
package quantities

import (
	"cmp"
	"fmt"
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
