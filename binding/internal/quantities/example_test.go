package quantities_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/binding/internal/quantities"
)

func ExampleCompare() {
	fmt.Println(quantities.Compare(resource.MustParse("1e10000000"), resource.MustParse("5Gi")))
	_, err := quantities.Parse("1e10000000")
	fmt.Println(err)
	// Output:
	// 1
	// its exponent is too long: 1e10000000
}
