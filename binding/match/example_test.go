package match_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/match"
)

func ExampleFind() {
	found, err := match.Find(match.Request{
		Claim:   bindingtest.Claim("default", "data", "8Gi"),
		Volumes: []*corev1.PersistentVolume{bindingtest.Volume("pv-a", "5Gi"), bindingtest.Volume("pv-b", "20Gi"), bindingtest.Volume("pv-c", "10Gi")},
	})
	fmt.Println(found.Volume.Name, err)
	// Output: pv-c <nil>
}

// A volume that is pre-bound to the claim is chosen before any other, but not if it does not fit.
func ExampleFind_preBound() {
	preBound := bindingtest.Volume("pv-a", "5Gi")
	preBound.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
	found, err := match.Find(match.Request{
		Claim:   bindingtest.Claim("default", "data", "8Gi"),
		Volumes: []*corev1.PersistentVolume{preBound, bindingtest.Volume("pv-b", "20Gi")},
	})
	fmt.Println(found.Volume.Name, err)
	for _, rejected := range found.Rejected {
		fmt.Println(rejected.Volume.Name, "rejected:", rejected.Mismatches)
	}
	// Output:
	// pv-b <nil>
	// pv-a rejected: TooSmall: requested 8Gi, actual 5Gi
}

func ExampleExplain() {
	slow := bindingtest.Volume("pv-b", "20Gi")
	slow.Spec.StorageClassName = "slow"
	taken := bindingtest.Volume("pv-c", "10Gi")
	taken.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "orders", UID: "77ab"}
	report, err := match.Explain(match.Request{
		Claim:   bindingtest.Claim("default", "data", "8Gi"),
		Volumes: []*corev1.PersistentVolume{bindingtest.Volume("pv-a", "5Gi"), slow, taken},
	})
	fmt.Println(report, err)
	for _, verdict := range report.Verdicts {
		fmt.Println(verdict.Volume.Name, verdict.ClaimRef, verdict.Mismatches)
	}
	// Output:
	// 0/3 volumes fit: 1 BoundToAnotherClaim, 1 TooSmall (largest 5Gi), 1 StorageClass; pv-b would fit but for its class: "slow", the claim requests none <nil>
	// pv-a None TooSmall: requested 8Gi, actual 5Gi
	// pv-b None StorageClass: requested none, actual slow
	// pv-c Other BoundToAnotherClaim: requested an unclaimed volume, actual claimRef to pvc/shop/orders
}

func ExampleCheck() {
	mismatches, err := match.Check(bindingtest.Claim("default", "data", "8Gi"), bindingtest.Volume("pv-a", "5Gi"), match.Terms{})
	fmt.Println(mismatches, err)
	// Output: TooSmall: requested 8Gi, actual 5Gi <nil>
}
