package binding_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/obj"
)

// The whole binding of a claim as a loop over decisions. The objects stand for a server here: what an
// action writes takes the place of what was there.
func ExampleNextForClaim() {
	volume := bindingtest.Volume("pv-1", "5Gi")
	claim := bindingtest.Claim("default", "data", "5Gi")
	claim.UID = "1234"
	for {
		view := binding.Snapshot{Volumes: []*corev1.PersistentVolume{volume}}
		action, err := binding.NextForClaim(claim, view, binding.Rules{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(action)
		switch action.Kind {
		case binding.UpdateVolume, binding.UpdateVolumeStatus:
			volume = action.Volume
		case binding.UpdateClaim, binding.UpdateClaimStatus:
			claim = action.Claim
		default:
			return
		}
	}
	// Output:
	// B1 UpdateVolume pv/pv-1: set pv-1 aside for default/data
	// B2 UpdateVolumeStatus pv/pv-1: it is bound to default/data
	// B3 UpdateClaim pvc/default/data: it is bound to pv-1
	// B4 UpdateClaimStatus pvc/default/data: it is bound to pv-1
	// C11 Nothing: bound to pv-1
}

// A volume whose claim is missing from a cache is not released on that word alone.
func ExampleNextForVolume() {
	volume := bindingtest.Volume("pv-1", "5Gi", func(v *corev1.PersistentVolume) {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "1234"}
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		v.Status.Phase = corev1.VolumeBound
	})

	action, _ := binding.NextForVolume(volume, binding.Snapshot{}, binding.Rules{})
	fmt.Println(action)

	gone := binding.Snapshot{Live: []obj.Key{obj.ClaimKey("default", "data")}}
	action, _ = binding.NextForVolume(volume, gone, binding.Rules{})
	fmt.Println(action, "→", action.Volume.Status.Phase)
	// Output:
	// V3 Read pvc/default/data: before the volume is released
	// V3 UpdateVolumeStatus pv/pv-1: its claim is gone → Released
}
