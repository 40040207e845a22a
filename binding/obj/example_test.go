package obj_test

import (
	"fmt"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

func ExampleKey() {
	claim := bindingtest.Claim("shop", "orders", "5Gi")
	claim.Spec.VolumeName = "pv-7"
	queue := map[obj.Key]bool{obj.KeyOf(claim): true, obj.NamedVolume(claim): true, obj.VolumeKey("pv-7"): true}
	fmt.Println(len(queue), obj.KeyOf(claim), obj.NamedVolume(claim))
	// Output:
	// 2 pvc/shop/orders pv/pv-7
}
