package zeromap_test

import (
	"fmt"

	"github.com/pvbind/pvbind/binding/internal/zeromap"
)

func ExamplePut() {
	var sizes map[string]string
	zeromap.Put(&sizes, "pv-1", "5Gi")
	fmt.Println(sizes)
	// Output:
	// map[pv-1:5Gi]
}
