package decision_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
)

// Why is it Pending?
func ExampleExplainClaim() {
	claim := ExampleClaim("8Gi")
	slow := ExampleVolume("pv-a", "10Gi")
	slow.Spec.StorageClassName = "slow"
	known := decision.Snapshot{Volumes: []*corev1.PersistentVolume{slow, ExampleVolume("pv-b", "5Gi")}}

	explanation, err := decision.ExplainClaim(claim, known, decision.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(explanation.State)
	fmt.Println(explanation.Message)
	fmt.Println(explanation.Search)
	// Output:
	// NoProvisioner
	// no volume fits, and the storage class "fast" that could provision one does not exist
	// 0/2 volumes fit: 1 TooSmall (largest 5Gi), 1 StorageClass; pv-a would fit but for its class: "slow", the claim requests "fast"
}

func ExampleReport_Table() {
	slow := ExampleVolume("pv-b", "20Gi")
	slow.Spec.StorageClassName = "slow"
	report, _ := match.Explain(match.Request{
		Claim:   ExampleClaim("8Gi"),
		Volumes: []*corev1.PersistentVolume{ExampleVolume("pv-a", "5Gi"), slow, ExampleVolume("pv-c", "4Gi")},
	})
	fmt.Print(report.Table())
	// Output:
	// VOLUMES   NEAREST   WHY NOT
	// 2         pv-a      its size: 5Gi, the claim requests 8Gi
	// 1         pv-b      its class: "slow", the claim requests "fast"
}

// A claim and its volume come back from a backup, and the claim has another UID than the volume remembers.
func ExampleCheckPair() {
	claim, volume := ExampleClaim("8Gi"), ExampleVolume("pv-a", "10Gi")
	claim.Spec.VolumeName = volume.Name
	volume.ResourceVersion = "71"
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "77ab"}
	known := decision.Snapshot{Volumes: []*corev1.PersistentVolume{volume}, Claims: []*corev1.PersistentVolumeClaim{claim}}

	report, err := decision.CheckPair(decision.PairRequest{Claim: claim, Volume: volume, View: known})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, violation := range report.Violations {
		fmt.Println(violation)
	}
	repair := report.Repair
	fmt.Println("by a", repair.By, "who writes", repair.Action.Target(), "on version", repair.Action.Volume.ResourceVersion, "with UID", repair.Action.Volume.Spec.ClaimRef.UID)
	fmt.Println("risk:", repair.Risk)
	// Output:
	// UIDDiffers: expected claimRef.uid 0c2f, actual 77ab
	// by a Person who writes pv/pv-a on version 71 with UID 0c2f
	// risk: the volume has the data of the claim with UID 77ab; if this claim is not its restored copy, it gets another's data
}
