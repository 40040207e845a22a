package accessmode_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
)

func Example() {
	offered, _ := accessmode.Of(corev1.ReadOnlyMany, corev1.ReadWriteOnce)
	requested, _ := accessmode.Of(corev1.ReadWriteMany, corev1.ReadWriteOnce)

	fmt.Println("requested:", requested)
	fmt.Println("offered:  ", offered)
	fmt.Println("serves:   ", offered.Contains(requested))
	fmt.Println("missing:  ", requested&^offered)
	// Output:
	// requested: RWO,RWX
	// offered:   RWO,ROX
	// serves:    false
	// missing:   RWX
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

// A claim in use by one pod: which modes let a second one have it too?
func ExampleSet_AllowsPod() {
	for _, modes := range []accessmode.Set{accessmode.ReadWriteOnce, accessmode.ReadWriteOncePod} {
		fmt.Println(modes, modes.AllowsPod("web-1", "web-0"))
	}
	// Output:
	// RWO true
	// RWOP false
}
