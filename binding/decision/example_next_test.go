package decision_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/bindingtest"
	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/obj"
)

// The whole binding of a claim as a loop over decisions. The objects stand for a server here: what an
// action writes takes the place of what was there.
func ExampleNextForClaim() {
	volume := bindingtest.Volume("pv-1", "5Gi")
	claim := bindingtest.Claim("default", "data", "5Gi")
	claim.UID = "1234"
	for {
		view := decision.Snapshot{Volumes: []*corev1.PersistentVolume{volume}}
		action, err := decision.NextForClaim(claim, view, decision.Options{Protection: decision.ProtectionOff})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(action)
		switch action.Kind {
		case decision.UpdateVolume, decision.UpdateVolumeStatus:
			volume = action.Volume
		case decision.UpdateClaim, decision.UpdateClaimStatus:
			claim = action.Claim
		default:
			return
		}
	}
	// Output:
	// B1 UpdateVolume pv/pv-1: pre-bind pv-1 to default/data
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

	action, _ := decision.NextForVolume(volume, decision.Snapshot{}, decision.Options{Protection: decision.ProtectionOff})
	fmt.Println(action)

	gone := decision.Snapshot{LiveReads: []obj.Key{obj.ClaimKey("default", "data")}}
	action, _ = decision.NextForVolume(volume, gone, decision.Options{Protection: decision.ProtectionOff})
	fmt.Println(action, "→", action.Volume.Status.Phase)
	// Output:
	// V3 Read pvc/default/data: before the volume is released
	// V3 UpdateVolumeStatus pv/pv-1: its claim is gone → Released
}
