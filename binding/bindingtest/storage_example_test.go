package bindingtest_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// A claim is provisioned and used. Then it is deleted, and its storage with it.
func ExampleStorage() {
	ctx := context.Background()
	cluster := bindingtest.NewCluster(
		bindingtest.Class("fast", func(class sc) { class.Provisioner = "example.com/dirs" }),
		bindingtest.Claim("default", "data", "5Gi", func(claim pvc) { claim.Spec.StorageClassName = new("fast") }),
	)
	settle := func() {
		if _, err := cluster.Settle(ctx); err != nil {
			fmt.Println(err)
		}
	}
	settle()
	claim := cluster.Claim("default", "data")
	fmt.Println(claim.Status.Phase, claim.Spec.VolumeName)
	storage := cluster.Storage
	storage.Write(claim.Spec.VolumeName)
	for _, kept := range storage.Kept() {
		fmt.Println(kept.Volume, kept.Size.String(), kept.Content)
	}

	if err := cluster.Delete(ctx, obj.ClaimKey("default", "data"), metav1.DeleteOptions{}); err != nil {
		fmt.Println(err)
	}
	settle()
	for _, call := range storage.Calls() {
		fmt.Println(call)
	}
	fmt.Println("left:", storage.Kept(), "problems:", storage.Problems())
	// Output:
	// Bound pvc-uid-2
	// pvc-uid-2 5Gi Written
	// provision pvc-uid-2: made
	// delete pvc-uid-2: deleted
	// left: [] problems: []
}
