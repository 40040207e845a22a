package accessmode_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
)

func Example() {
	offered, _ := accessmode.Of(corev1.ReadOnlyMany, corev1.ReadWriteOnce)
	asked, _ := accessmode.Of(corev1.ReadWriteMany, corev1.ReadWriteOnce)

	fmt.Println("asked:  ", asked)
	fmt.Println("offered:", offered)
	fmt.Println("serves: ", offered.Contains(asked))
	fmt.Println("missing:", asked.Minus(offered))
	// Output:
	// asked:   RWO,RWX
	// offered: RWO,ROX
	// serves:  false
	// missing: RWX
}

func ExampleOf() {
	_, err := accessmode.Of("ReadWriteTwice")
	fmt.Println(err)
	// Output:
	// unknown access mode "ReadWriteTwice"
}

func ExampleCompare() {
	narrow := accessmode.ReadWriteOnce
	wide := accessmode.ReadWriteOnce | accessmode.ReadOnlyMany
	fmt.Println(accessmode.Compare(narrow, wide) < 0)
	// Output:
	// true
}
