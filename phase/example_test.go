package phase_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/phase"
)

// A claim is deleted and made again under its old name: the volume still holds
// the data of the first one, and is not given to the second.
func Example() {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1"},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "first"},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	first := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", UID: "first",
			Annotations: map[string]string{phase.BindCompletedAnnotation: "yes"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
	}
	second := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "second"},
	}

	for _, claim := range []*corev1.PersistentVolumeClaim{first, nil, second} {
		standing := phase.VolumeStandingOf(volume, claim)
		fmt.Printf("%s: should be %s\n", standing, phase.OfVolume(volume, standing))
	}
	fmt.Println("the second claim:", phase.LinkOf(volume, second), phase.ClaimStandingOf(second, nil))
	// Output:
	// InUse: should be Bound
	// Orphaned: should be Released
	// Orphaned: should be Released
	// the second claim: Gone Unbound
}

func ExampleClaimStandingOf() {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "first"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
	}
	standing := phase.ClaimStandingOf(claim, nil)
	fmt.Println(standing, phase.OfClaim(claim, standing))

	claim.Annotations = map[string]string{phase.BindCompletedAnnotation: "yes"}
	standing = phase.ClaimStandingOf(claim, nil)
	fmt.Println(standing, phase.OfClaim(claim, standing))
	// Output:
	// Awaiting Pending
	// Lost Lost
}
