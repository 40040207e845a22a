package index_test

import (
	"fmt"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
)

// Two claims that see the same volume: one gets it, and the other gets another.
func ExampleIndex() {
	var volumes index.Index
	volumes.Load(bindingtest.Volume("pv-5Gi", "5Gi"), bindingtest.Volume("pv-20Gi", "20Gi"), bindingtest.Volume("pv-100Gi", "100Gi"))

	take := func(name, size string) {
		claim := bindingtest.Claim("default", name, size)
		found, err := volumes.Find(claim, match.Terms{})
		if err != nil {
			fmt.Println(err)
			return
		}
		if found.Volume == nil {
			line, _ := volumes.Summary(claim, match.Terms{})
			fmt.Println(name, "gets nothing:", line)
			return
		}
		if volumes.Reserve(found.Volume.Name, found.Volume.ResourceVersion, obj.KeyOf(claim)) {
			fmt.Println(name, "gets", found.Volume.Name)
			// Write the claimRef now, and pass what the server returns to Set.
		}
	}
	take("orders", "10Gi")
	take("logs", "10Gi")
	take("media", "10Gi")

	// The write for orders failed.
	volumes.Release("pv-20Gi", obj.ClaimKey("default", "orders"))
	take("media", "10Gi")
	// Output:
	// orders gets pv-20Gi
	// logs gets pv-100Gi
	// media gets nothing: 0/3 volumes fit: 2 BoundToAnotherClaim, 1 TooSmall (largest 5Gi); pv-5Gi would fit but for its size: 5Gi, the claim requests 10Gi
	// media gets pv-20Gi
}
