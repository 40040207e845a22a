package bindingtest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// A claim binds, and every write that took is in the log.
func Example() {
	ctx := context.Background()
	cluster := bindingtest.NewCluster(
		bindingtest.Volume("small", "1Gi"),
		bindingtest.Volume("large", "10Gi"),
		bindingtest.Claim("default", "data", "5Gi"),
	)
	if _, err := cluster.Settle(ctx); err != nil {
		fmt.Println(err)
	}
	claim := cluster.Claim("default", "data")
	fmt.Println(claim.Status.Phase, claim.Spec.VolumeName)
	for _, call := range cluster.Calls() {
		if call.Actor == "controller" && call.Key == obj.VolumeKey("large") {
			fmt.Println(call)
		}
	}
	// Output:
	// Bound large
	// update pv/large: spec.claimRef={default/data uid-3} +annotation pv.kubernetes.io/bound-by-controller
	// update status pv/large: status.phase=Bound
}

// A claim that a pod uses stays until the pod is gone.
func ExampleCluster_Settle() {
	ctx := context.Background()
	cluster := bindingtest.NewCluster(
		bindingtest.Volume("a", "10Gi"),
		bindingtest.Claim("default", "data", "5Gi"),
		bindingtest.Pod("default", "web", "node-1", "data"),
	)
	show := func(err error) {
		if _, settled := cluster.Settle(ctx); err != nil || settled != nil {
			fmt.Println(err, settled)
		}
		fmt.Println("claim exists:", cluster.Claim("default", "data") != nil, "- volume:", cluster.Volume("a").Status.Phase)
	}
	show(nil)
	show(cluster.Delete(ctx, obj.ClaimKey("default", "data"), metav1.DeleteOptions{}))
	show(cluster.FinishPod(ctx, "default", "web"))
	// Output:
	// claim exists: true - volume: Bound
	// claim exists: true - volume: Bound
	// claim exists: false - volume: Released
}

// The answer to one write is lost, then the controller crashes; what it does next is the same bind.
func ExampleClient() {
	ctx := context.Background()
	server := bindingtest.NewServer(bindingtest.Volume("a", "1Gi"), bindingtest.Claim("default", "data", "1Gi"))
	driver := bindingtest.NewDriver(server, bindingtest.DriverOptions{})
	driver.Client.Use(bindingtest.LoseAnswer(1, bindingtest.AnyWrite))
	driver.Client.CrashAfter(2)
	fmt.Println(driver.Settle(ctx))

	driver.Restart()
	fmt.Println(driver.Settle(ctx))
	fmt.Println(server.Claim("default", "data").Status.Phase == corev1.ClaimBound)
	// Output:
	// bindingtest: the client has crashed
	// <nil>
	// true
}
