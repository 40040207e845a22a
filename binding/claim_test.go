package binding_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

// Of what a row reads: "C1 …" is the rule that the row is about, want begins with the rule that the action
// gives as its own.

func TestAClaimThatNamesNoVolume(t *testing.T) {
	takes := func(name string) string {
		return "B1 UpdateVolume pv/" + name + ": spec.claimRef={default/data uid-1} +annotation " + boundBy
	}
	runDecisions(t, []decision{
		{name: "C1 a volume fits", claim: knownClaim(), known: knowing(knownVolume("a")), want: takes("a")},
		{name: "C1 M13 the best of those that fit", claim: knownClaim(),
			known: knowing(knownVolume("big", sized("20Gi")), knownVolume("b"), knownVolume("a"), knownVolume("small", sized("1Gi"))), want: takes("a")},
		{name: "C1 before C2: no class is set where a volume fits without", claim: knownClaim(askingClass(nil)),
			known: knowing(knownVolume("a"), classOf("standard", "csi.example.com", defaultClass)), want: takes("a")},
		{name: "C1 a class that does not exist does not matter to a volume that fits", claim: knownClaim(askingClass(new("fast"))),
			known: knowing(knownVolume("a", ofClass("fast"))), want: takes("a")},
		{name: "C1 M9 a volume that has not got its phase yet", claim: knownClaim(),
			known: knowing(knownVolume("a", inPhase(corev1.VolumePending))), want: takes("a")},
		{name: "C1 M13 reserved before free", claim: knownClaim(),
			known: knowing(knownVolume("a"), knownVolume("z", reserved, sized("50Gi"))), want: "B1 UpdateVolume pv/z: spec.claimRef={default/data uid-1}"},
		{name: "C1 M12 one that is reserved and does not fit is passed over, and both are told", claim: knownClaim(),
			known:  knowing(knownVolume("a"), knownVolume("r", reserved, sized("1Gi"))),
			want:   takes("a"),
			events: []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/r"}},
		{name: "C5 M12 the same where no other fits", claim: knownClaim(),
			known:  knowing(knownVolume("r", reserved, sized("1Gi"))),
			want:   "C5 Wait",
			events: []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/r", "Normal FailedBinding pvc/default/data"},
			says:   []string{"1Gi", "asks 10Gi"}},
		{name: "C5 M12 one that it holds and that does not fit", claim: knownClaim(),
			known:  knowing(knownVolume("h", held, sized("1Gi"))),
			want:   "C5 Wait",
			events: []string{"Warning VolumeMismatch pvc/default/data", "Warning VolumeMismatch pv/h", "Normal FailedBinding pvc/default/data"}},
		{name: "C5 none fits, no class", claim: knownClaim(), known: knowing(knownVolume("a", sized("5Gi"))),
			want: "C5 Wait", events: []string{"Normal FailedBinding pvc/default/data"},
			says: []string{"no volume fits", "no storage class", "0/1 volumes fit", "its size: 5Gi, the claim asks 10Gi"}},
		{name: "C5 there are no volumes", claim: knownClaim(),
			want: "C5 Wait", events: []string{"Normal FailedBinding pvc/default/data"}, says: []string{"0/0 volumes fit"}},
		{name: "C5 and it was not Pending", claim: knownClaim(boundTo(""), withoutNote(completed)),
			want:   "C5 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Pending",
			events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "X7 a malformed selector", claim: knownClaim(malformedSelector), known: knowing(knownVolume("a")), fails: "pvc/default/data: spec.selector"},
		{name: "X7 a negative request", claim: knownClaim(asking("-1Gi")), known: knowing(knownVolume("a")), fails: "pvc/default/data: spec.resources.requests.storage"},
		{name: "X7 an unknown access mode", claim: knownClaim(askingModes("Sometimes")), fails: "pvc/default/data: spec.accessModes"},
		{name: "X7 another volume that is malformed does not matter", claim: knownClaim(),
			known: knowing(knownVolume("a"), knownVolume("negative", sized("-1Gi")), knownVolume("empty", unsized)), want: takes("a")},
		{name: "X7 a class without a mode", claim: knownClaim(askingClass(new("fast"))),
			known: knowing(classOf("fast", "csi.example.com", modeless)), fails: "storageclass/fast: volumeBindingMode"},
	})
}

func withoutNote(annotation string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, annotation) }
}

func malformedSelector(c *corev1.PersistentVolumeClaim) {
	c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Perhaps"}}}
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
	classless := knownClaim(askingClass(nil))
	gets := func(name string) string { return "C2 UpdateClaim pvc/default/data: spec.storageClassName=" + name }
	runDecisions(t, []decision{
		{name: "C2 the one there is", claim: classless, known: knowing(classOf("plain", "csi.example.com"), classOf("standard", "csi.example.com", defaultClass)), want: gets("standard")},
		{name: "C2 marked by the beta annotation", claim: classless, known: knowing(classOf("old", "csi.example.com", betaDefaultClass)), want: gets("old")},
		{name: "C2 of several the newest", claim: classless, want: gets("new"),
			known: knowing(classOf("a", "csi.example.com", defaultClass, createdAt(1)), classOf("new", "csi.example.com", defaultClass, createdAt(2)))},
		{name: "C2 of the newest the first by name", claim: classless, want: gets("b"),
			known: knowing(classOf("c", "csi.example.com", defaultClass, createdAt(2)), classOf("b", "csi.example.com", betaDefaultClass, createdAt(2)), classOf("a", "csi.example.com", defaultClass, createdAt(1)))},
		{name: "C2 one that no volume fits, though another class would", claim: classless, want: gets("standard"),
			known: knowing(knownVolume("a", ofClass("fast")), classOf("standard", "csi.example.com", defaultClass))},
		{name: "C2 not for one that asks for no class", claim: knownClaim(askingClass(new(""))), want: "C5 Wait",
			known: knowing(classOf("standard", "csi.example.com", defaultClass)), events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "C2 not for one that says so by the beta annotation", claim: knownClaim(askingClass(nil), claimNote(betaClass, "")), want: "C5 Wait",
			known: knowing(classOf("standard", "csi.example.com", defaultClass)), events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "C2 no default", claim: classless, want: "C5 Wait",
			known: knowing(classOf("plain", "csi.example.com")), events: []string{"Normal FailedBinding pvc/default/data"}},
		{name: "C2 not for one being deleted (C12)", claim: knownClaim(askingClass(nil), claimBeingDeleted), want: "C12 Nothing",
			known: knowing(classOf("standard", "csi.example.com", defaultClass))},
	})
}

func TestC3AwaitingAConsumer(t *testing.T) {
	local := knownClaim(askingClass(new("local")))
	class := classOf("local", "csi.example.com", delayedClass)
	awaits := []string{"Normal WaitForFirstConsumer pvc/default/data"}
	awaitsPods := []string{"Normal WaitForPodScheduled pvc/default/data"}
	asks := "P3 UpdateClaim pvc/default/data: +annotation " + betaProvisioner + "=csi.example.com +annotation " + provisioner + "=csi.example.com"
	runDecisions(t, []decision{
		{name: "C3 no pod", claim: local, known: knowing(class), want: "C3 Wait", events: awaits, says: []string{"pod"}},
		{name: "C3 M11 though a volume is there", claim: local, known: knowing(class, knownVolume("a", ofClass("local"))), want: "C3 Wait", events: awaits},
		{name: "C3 a reserved volume does not wait", claim: local, known: knowing(class, knownVolume("a", ofClass("local"), reserved)),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1}"},
		{name: "C3 pods that are not scheduled, by name", claim: local, known: knowing(class, podUsing("web-0"), podUsing("web-1")),
			want: "C3 Wait", events: awaitsPods, says: []string{"web-0", "web-1"}},
		{name: "C3 a scheduled pod does not count", claim: local, known: knowing(class, podUsing("web-0", scheduled)), want: "C3 Wait", events: awaits},
		{name: "C3 nor a finished one", claim: local, known: knowing(class, podUsing("web-0", podPhase(corev1.PodSucceeded)), podUsing("web-1", podPhase(corev1.PodFailed))),
			want: "C3 Wait", events: awaits},
		{name: "C3 nor another claim's", claim: local, known: knowing(class, podOf("other")), want: "C3 Wait", events: awaits},
		{name: "C3 it was Lost", claim: knownClaim(askingClass(new("local")), claimPhase(corev1.ClaimLost)), known: knowing(class),
			want: "C3 UpdateClaimStatus pvc/default/data: status.phase=Pending", events: awaits},
		{name: "C3 a selected node means: provision", claim: knownClaim(askingClass(new("local")), claimNote(selectedNode, "node")), known: knowing(class), want: asks},
		{name: "C3 the annotation counts, not its value", claim: knownClaim(askingClass(new("local")), claimNote(selectedNode, "")), known: knowing(class), want: asks},
		{name: "C3 M11 a missing class means Immediate", claim: local, known: knowing(knownVolume("a", ofClass("local"))),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
	})
}

func podOf(claim string) *corev1.Pod {
	return podUsing("stranger", func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = claim })
}

func TestC12AClaimBeingDeleted(t *testing.T) {
	class := classOf("fast", "csi.example.com")
	runDecisions(t, []decision{
		{name: "C12 no match (C1)", claim: knownClaim(claimBeingDeleted), known: knowing(knownVolume("a")), want: "C12 Nothing"},
		{name: "C12 no binding to the volume it names (C7)", claim: knownClaim(claimBeingDeleted, naming("a")), known: knowing(knownVolume("a")), want: "C12 Nothing"},
		{name: "C12 no finishing of a reservation (C8)", claim: knownClaim(claimBeingDeleted, naming("a")), known: knowing(knownVolume("a", reserved)), want: "C12 Nothing"},
		{name: "C12 no provisioning (C4)", claim: knownClaim(claimBeingDeleted, askingClass(new("fast"))), known: knowing(class), want: "C12 Nothing"},
		{name: "C12 no finishing of a bind begun", claim: knownClaim(claimBeingDeleted), known: knowing(knownVolume("a", held, volumeNote(boundBy, "yes"))), want: "C12 Nothing"},
		{name: "C12 nor of one that is nearly done", claim: knownClaim(claimBeingDeleted, naming("a")), known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound))), want: "C12 Nothing"},
		{name: "C12 it is not refused (C9)", claim: knownClaim(claimBeingDeleted, naming("a")), known: knowing(knownVolume("a", refersToOther)), want: "C12 Nothing"},
		{name: "C12 once bound it is repaired (C11)", claim: knownClaim(claimBeingDeleted, boundTo("a"), claimPhase(corev1.ClaimPending)),
			known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound))), want: "B4 UpdateClaimStatus pvc/default/data: status.phase=Bound"},
		{name: "C12 once bound it can be Lost (C10)", claim: knownClaim(claimBeingDeleted, boundTo("a")),
			known:  proving(binding.Snapshot{}, obj.VolumeKey("a")),
			want:   "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Lost",
			events: []string{"Warning ClaimLost pvc/default/data"}},
	})
}
