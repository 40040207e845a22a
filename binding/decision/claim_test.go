package decision_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

// Of what a row reads: "C1 …" is the rule that the row is about, expected begins with the rule that the action
// gives as its own.

func TestAClaimThatNamesNoVolume(t *testing.T) {
	takes := func(name string) string {
		return "B1 UpdateVolume pv/" + name + ": spec.claimRef={default/data uid-1} +annotation " + BoundBy
	}
	runDecisions(t, []decisionTest{
		{name: "C1 a volume fits", claim: KnownClaim(), known: Knowing(KnownVolume("a")), expected: takes("a")},
		{name: "C1 M13 the best of those that fit", claim: KnownClaim(),
			known: Knowing(KnownVolume("big", Sized("20Gi")), KnownVolume("b"), KnownVolume("a"), KnownVolume("small", Sized("1Gi"))), expected: takes("a")},
		{name: "C1 before C2: no class is set where a volume fits without", claim: KnownClaim(RequestingClass(nil)),
			known: Knowing(KnownVolume("a"), ClassOf("standard", "csi.example.com", DefaultClass)), expected: takes("a")},
		{name: "C1 a class that does not exist does not matter to a volume that fits", claim: KnownClaim(RequestingClass(new("fast"))),
			known: Knowing(KnownVolume("a", OfClass("fast"))), expected: takes("a")},
		{name: "C1 M9 a volume that has not got its phase yet", claim: KnownClaim(),
			known: Knowing(KnownVolume("a", InPhase(corev1.VolumePending))), expected: takes("a")},
		{name: "C1 M13 reserved before free", claim: KnownClaim(),
			known: Proving(Knowing(KnownVolume("a"), KnownVolume("z", PreBound, Sized("50Gi"))), DataKey), expected: "B1 UpdateVolume pv/z: spec.claimRef={default/data uid-1}"},
		{name: "C1 M12 one that is reserved and does not fit is passed over, and both are told", claim: KnownClaim(),
			known:    Knowing(KnownVolume("a"), KnownVolume("r", PreBound, Sized("1Gi"))),
			expected: takes("a"),
			events:   []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/r"}},
		{name: "C5 M12 the same where no other fits", claim: KnownClaim(),
			known:    Knowing(KnownVolume("r", PreBound, Sized("1Gi"))),
			expected: "C5 Wait",
			events:   []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/r", "Normal FailedBinding pvc/default/data"},
			says:     []string{"TooSmall", "1Gi", "10Gi"}},
		{name: "C5 M12 one that it holds and that does not fit", claim: KnownClaim(),
			known:    Knowing(KnownVolume("h", BoundToClaim, Sized("1Gi"))),
			expected: "C5 Wait",
			events:   []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/h", "Normal FailedBinding pvc/default/data"}},
		{name: "C5 none fits, no class", claim: KnownClaim(), known: Knowing(KnownVolume("a", Sized("5Gi"))),
			expected: "C5 Wait", events: []string{"Normal FailedBinding pvc/default/data"},
			says: []string{"no volume fits", "no storage class", "0/1 volumes fit", "its size: 5Gi, the claim requests 10Gi"}},
		{name: "C5 there are no volumes", claim: KnownClaim(),
			expected: "C5 Wait", events: []string{"Normal FailedBinding pvc/default/data"}, says: []string{"0/0 volumes fit"}},
		{name: "C5 and it was not Pending", claim: KnownClaim(BoundTo(""), WithoutNote(Completed)),
			expected: "C5 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Pending",
			events:   []string{"Normal FailedBinding pvc/default/data"}},
		{name: "X7 a malformed selector", claim: KnownClaim(MalformedSelector), known: Knowing(KnownVolume("a")), fails: "pvc/default/data: spec.selector"},
		{name: "X7 a negative request", claim: KnownClaim(Requesting("-1Gi")), known: Knowing(KnownVolume("a")), fails: "pvc/default/data: spec.resources.requests.storage"},
		{name: "X7 an unknown access mode", claim: KnownClaim(RequestingModes("Sometimes")), fails: "pvc/default/data: spec.accessModes"},
		{name: "X7 another volume that is malformed does not matter", claim: KnownClaim(),
			known: Knowing(KnownVolume("a"), KnownVolume("negative", Sized("-1Gi")), KnownVolume("empty", unsized)), expected: takes("a")},
		{name: "X7 a class without a mode", claim: KnownClaim(RequestingClass(new("fast"))),
			known: Knowing(ClassOf("fast", "csi.example.com", modeless)), fails: "storageclass/fast: volumeBindingMode"},
	})
}

func unsized(v *corev1.PersistentVolume) { v.Spec.Capacity = nil }

func modeless(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }

func createdAt(seconds int64) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) { c.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0)) }
}

func betaDefaultClass(c *storagev1.StorageClass) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, "storageclass.beta.kubernetes.io/is-default-class", "true")
}

func TestC2TheDefaultClass(t *testing.T) {
	classless := KnownClaim(RequestingClass(nil))
	gets := func(name string) string { return "C2 UpdateClaim pvc/default/data: spec.storageClassName=" + name }
	runDecisions(t, []decisionTest{
		{name: "C2 the one there is", claim: classless, known: Knowing(ClassOf("plain", "csi.example.com"), ClassOf("standard", "csi.example.com", DefaultClass)), expected: gets("standard")},
		{name: "C2 marked by the beta annotation", claim: classless, known: Knowing(ClassOf("old", "csi.example.com", betaDefaultClass)), expected: gets("old")},
		{name: "C2 of several the newest", claim: classless, expected: gets("new"),
			known: Knowing(ClassOf("a", "csi.example.com", DefaultClass, createdAt(1)), ClassOf("new", "csi.example.com", DefaultClass, createdAt(2)))},
		{name: "C2 of the newest the first by name", claim: classless, expected: gets("b"),
			known: Knowing(ClassOf("c", "csi.example.com", DefaultClass, createdAt(2)), ClassOf("b", "csi.example.com", betaDefaultClass, createdAt(2)), ClassOf("a", "csi.example.com", DefaultClass, createdAt(1)))},
		{name: "C2 one that no volume fits, though another class would", claim: classless, expected: gets("standard"),
			known: Knowing(KnownVolume("a", OfClass("fast")), ClassOf("standard", "csi.example.com", DefaultClass))},
		{name: "C2 not for one that asks for no class", claim: KnownClaim(RequestingClass(new(""))), expected: "C5 Wait",
			known: Knowing(ClassOf("standard", "csi.example.com", DefaultClass)), events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "C2 not for one that says so by the beta annotation", claim: KnownClaim(RequestingClass(nil), ClaimNote(BetaClass, "")), expected: "C5 Wait",
			known: Knowing(ClassOf("standard", "csi.example.com", DefaultClass)), events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "C2 no default", claim: classless, expected: "C5 Wait",
			known: Knowing(ClassOf("plain", "csi.example.com")), events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "C2 not for one being deleted (C12)", claim: KnownClaim(RequestingClass(nil), ClaimBeingDeleted), expected: "C12 Nothing",
			known: Knowing(ClassOf("standard", "csi.example.com", DefaultClass))},
	})
}

func TestC3AwaitingAConsumer(t *testing.T) {
	local := KnownClaim(RequestingClass(new("local")))
	class := ClassOf("local", "csi.example.com", WaitsForFirstConsumer)
	awaits := []string{"Normal WaitForFirstConsumer pvc/default/data"}
	awaitsPods := []string{"Normal WaitForPodScheduled pvc/default/data"}
	var thousands []obj.Object
	for i := range 3000 {
		thousands = append(thousands, PodUsing(fmt.Sprint("web-", 3999-i)))
	}
	asks := "P3 UpdateClaim pvc/default/data: +annotation " + BetaProvisioner + "=csi.example.com +annotation " + Provisioner + "=csi.example.com"
	runDecisions(t, []decisionTest{
		{name: "C3 no pod", claim: local, known: Knowing(class), expected: "C3 Wait", events: awaits, says: []string{"pod"}},
		{name: "C3 M11 though a volume is there", claim: local, known: Knowing(class, KnownVolume("a", OfClass("local"))), expected: "C3 Wait", events: awaits},
		{name: "C3 a reserved volume does not wait", claim: local, known: Proving(Knowing(class, KnownVolume("a", OfClass("local"), PreBound)), DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1}"},
		{name: "C3 pods that are not scheduled, by name", claim: local, known: Knowing(class, PodUsing("web-0"), PodUsing("web-1")),
			expected: "C3 Wait", events: awaitsPods, says: []string{"web-0", "web-1"}},
		{name: "C3 X9 of very many pods the first ones", claim: local, known: Knowing(append([]obj.Object{class}, thousands...)...),
			expected: "C3 Wait", events: awaitsPods, says: []string{"web-1000, web-1001, web-1002, web-1003, web-1004, web-1005, web-1006, web-1007, web-1008, web-1009 and 2990 more"}},
		{name: "C3 a scheduled pod does not count", claim: local, known: Knowing(class, PodUsing("web-0", Scheduled)), expected: "C3 Wait", events: awaits},
		{name: "C3 nor a finished one", claim: local, known: Knowing(class, PodUsing("web-0", PodPhase(corev1.PodSucceeded)), PodUsing("web-1", PodPhase(corev1.PodFailed))),
			expected: "C3 Wait", events: awaits},
		{name: "C3 nor another claim's", claim: local, known: Knowing(class, podOf("other")), expected: "C3 Wait", events: awaits},
		{name: "C3 it was Lost", claim: KnownClaim(RequestingClass(new("local")), ClaimPhase(corev1.ClaimLost)), known: Knowing(class),
			expected: "C3 UpdateClaimStatus pvc/default/data: status.phase=Pending", events: awaits},
		{name: "C3 a selected node means: provision", claim: KnownClaim(RequestingClass(new("local")), ClaimNote(SelectedNode, "node")), known: Knowing(class), expected: asks},
		{name: "C3 the annotation counts, not its value", claim: KnownClaim(RequestingClass(new("local")), ClaimNote(SelectedNode, "")), known: Knowing(class), expected: asks},
		{name: "C3 M11 a missing class means Immediate", claim: local, known: Knowing(KnownVolume("a", OfClass("local"))),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
	})
}

func podOf(claim string) *corev1.Pod {
	return PodUsing("stranger", func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = claim })
}

func TestC12AClaimBeingDeleted(t *testing.T) {
	class := ClassOf("fast", "csi.example.com")
	runDecisions(t, []decisionTest{
		{name: "C12 no match (C1)", claim: KnownClaim(ClaimBeingDeleted), known: Knowing(KnownVolume("a")), expected: "C12 Nothing"},
		{name: "C12 no binding to the volume it names (C7)", claim: KnownClaim(ClaimBeingDeleted, Naming("a")), known: Knowing(KnownVolume("a")), expected: "C12 Nothing"},
		{name: "C12 no finishing of a reservation (C8)", claim: KnownClaim(ClaimBeingDeleted, Naming("a")), known: Knowing(KnownVolume("a", PreBound)), expected: "C12 Nothing"},
		{name: "C12 no provisioning (C4)", claim: KnownClaim(ClaimBeingDeleted, RequestingClass(new("fast"))), known: Knowing(class), expected: "C12 Nothing"},
		{name: "C12 no finishing of a bind begun", claim: KnownClaim(ClaimBeingDeleted), known: Knowing(KnownVolume("a", BoundToClaim, VolumeNote(BoundBy, "yes"))), expected: "C12 Nothing"},
		{name: "C12 nor of one that is nearly done", claim: KnownClaim(ClaimBeingDeleted, Naming("a")), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), expected: "C12 Nothing"},
		{name: "C12 it is not refused (C9)", claim: KnownClaim(ClaimBeingDeleted, Naming("a")), known: Knowing(KnownVolume("a", RefersToOther)), expected: "C12 Nothing"},
		{name: "C12 once bound it is repaired (C11)", claim: KnownClaim(ClaimBeingDeleted, BoundTo("a"), ClaimPhase(corev1.ClaimPending)),
			known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), expected: "B4 UpdateClaimStatus pvc/default/data: status.phase=Bound"},
		{name: "C12 once bound it can be Lost (C10)", claim: KnownClaim(ClaimBeingDeleted, BoundTo("a")),
			known:    Proving(decision.Snapshot{}, obj.VolumeKey("a")),
			expected: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Lost",
			events:   []string{"Warning ClaimLost pvc/default/data"}},
	})
}
