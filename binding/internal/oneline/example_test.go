package oneline_test

import (
	"fmt"
	"strconv"

	"github.com/pvbind/pvbind/binding/internal/oneline"
)

func ExampleText() {
	fmt.Println(oneline.Text("two\nlines", 20))
	fmt.Println(oneline.Text("what is too long is cut", 14))
	fmt.Println(oneline.OrNone(""))
	// Output:
	// two lines
	// what is too…
	// none
}

func ExampleJoin() {
	fmt.Println(oneline.Join([]bool{true, false}, ", ", strconv.FormatBool))
	// Output: true, false
}
