package binding_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/match"
)

// exampleVolume is an available volume of class fast.
func exampleVolume(name, capacity string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)},
			StorageClassName: "fast",
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
}

// exampleClaim asks for a volume of class fast.
func exampleClaim(request string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "0c2f"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(request)}},
			StorageClassName: new("fast"),
		},
	}
}

func ExampleFind() {
	match, err := match.Find(match.Request{
		Claim:   exampleClaim("8Gi"),
		Volumes: []*corev1.PersistentVolume{exampleVolume("pv-a", "5Gi"), exampleVolume("pv-b", "20Gi"), exampleVolume("pv-c", "10Gi")},
	})
	fmt.Println(match.Volume.Name, err)
	// Output: pv-c <nil>
}

// A volume that somebody set aside for the claim is taken before any other, but not if it does not fit.
func ExampleFind_reserved() {
	reserved := exampleVolume("pv-a", "5Gi")
	reserved.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
	match, err := match.Find(match.Request{
		Claim:   exampleClaim("8Gi"),
		Volumes: []*corev1.PersistentVolume{reserved, exampleVolume("pv-b", "20Gi")},
	})
	fmt.Println(match.Volume.Name, err)
	for _, refused := range match.Refused {
		fmt.Println(refused.Volume.Name, "refused:", refused.Mismatches)
	}
	// Output:
	// pv-b <nil>
	// pv-a refused: TooSmall: asks 8Gi, has 5Gi
}

func ExampleExplain() {
	slow := exampleVolume("pv-b", "20Gi")
	slow.Spec.StorageClassName = "slow"
	taken := exampleVolume("pv-c", "10Gi")
	taken.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "orders", UID: "77ab"}
	report, err := match.Explain(match.Request{
		Claim:   exampleClaim("8Gi"),
		Volumes: []*corev1.PersistentVolume{exampleVolume("pv-a", "5Gi"), slow, taken},
	})
	fmt.Println(report, err)
	for _, verdict := range report.Verdicts {
		fmt.Println(verdict.Volume.Name, verdict.Link, verdict.Mismatches)
	}
	// Output:
	// 0/3 volumes fit: 1 Claimed, 1 TooSmall (largest 5Gi), 1 StorageClass; pv-b would fit but for its class: "slow", the claim asks "fast" <nil>
	// pv-a Unclaimed TooSmall: asks 8Gi, has 5Gi
	// pv-b Unclaimed StorageClass: asks fast, has slow
	// pv-c Other Claimed: asks an unclaimed volume, has claimRef to pvc/shop/orders
}

func ExampleCheck() {
	mismatches, err := match.Check(exampleClaim("8Gi"), exampleVolume("pv-a", "5Gi"), match.Terms{})
	fmt.Println(mismatches, err)
	// Output: TooSmall: asks 8Gi, has 5Gi <nil>
}
