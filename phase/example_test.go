package phase_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/phase"
)

// A claim is deleted and made again under its old name. The volume still has the data of the
// first one, and is not given to the second.
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
		state := phase.VolumeBindingStateOf(volume, claim)
		fmt.Printf("%s: should be %s\n", state, phase.OfVolume(volume, state))
	}
	fmt.Println("the second claim:", phase.ClaimRefStateOf(volume, second), phase.ClaimBindingStateOf(second, nil))
	// Output:
	// InUse: should be Bound
	// Orphaned: should be Released
	// Orphaned: should be Released
	// the second claim: Stale Unbound
}

func ExampleClaimBindingStateOf() {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "first"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
	}
	state := phase.ClaimBindingStateOf(claim, nil)
	fmt.Println(state)

	claim.Annotations = map[string]string{phase.BindCompletedAnnotation: "yes"}
	state = phase.ClaimBindingStateOf(claim, nil)
	fmt.Println(state)
	// Output:
	// AwaitsVolume
	// Lost
}
