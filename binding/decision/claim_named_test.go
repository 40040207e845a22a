package decision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
)

func TestAClaimThatNamesAVolumeItNeverHad(t *testing.T) {
	asks := KnownClaim(Naming("a"))
	begins := "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy
	finishes := "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1}"
	refused := []string{"Warning VolumeMismatch pvc/default/data"}
	block := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	attributes := func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("gold") }
	mismatch := func(name, says string, edits ...VolumeEdit) decisionTest {
		return decisionTest{name: name, claim: asks, known: Knowing(KnownVolume("a", edits...)),
			expected: "C7 Wait", events: refused, says: []string{`"a"`, says}}
	}
	runDecisions(t, []decisionTest{
		{name: "C6 it does not exist", claim: asks, expected: "C6 Wait"},
		{name: "C6 nor does one with the longest name", claim: KnownClaim(Naming(longest)), expected: "C6 Wait"},
		{name: "C6 X9 X10 none can have a longer one: told", claim: KnownClaim(Naming(longest + "nn")), expected: "C6 Wait",
			events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{`"` + longest + `…"`, "no volume can have a name of more than 253 bytes"}},
		{name: "C6 X9 and it was Lost", claim: KnownClaim(Naming(longest+"nn"), ClaimPhase(corev1.ClaimLost)), expected: "C6 UpdateClaimStatus pvc/default/data: status.phase=Pending",
			events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{longest + "…"}},
		{name: "C6 others do not matter", claim: asks, known: Knowing(KnownVolume("b")), expected: "C6 Wait"},
		{name: "C6 it was Lost", claim: KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimLost)), expected: "C6 UpdateClaimStatus pvc/default/data: status.phase=Pending"},
		{name: "C6 Pending keeps nothing of a volume", claim: KnownClaim(Naming("a"), BoundTo("a"), WithoutNote(Completed), ClaimPhase(corev1.ClaimPending)),
			expected: "C6 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage"},

		{name: "C7 it fits", claim: asks, known: Proving(Knowing(KnownVolume("a")), DataKey), expected: begins},
		{name: "B1 X2 which is read live before: its cache may be late, and the volume has the data of a name", claim: asks, known: Knowing(KnownVolume("a")), expected: "B1 Read pvc/default/data"},
		{name: "C7 it need not be the best", claim: asks, known: Proving(Knowing(KnownVolume("a", Sized("99Gi")), KnownVolume("b")), DataKey), expected: begins},
		{name: "C7 the selector does not count", claim: KnownClaim(Naming("a"), RequestingLabel("tier", "gold")), known: Proving(Knowing(KnownVolume("a")), DataKey), expected: begins},
		{name: "C7 M2 it is Bound, and a cache may not show whose it is", claim: asks, known: Knowing(KnownVolume("a", InPhase(corev1.VolumeBound))), expected: "V1 Read pvc"},
		{name: "C7 M2 all claims were listed, and it is nobody's", claim: asks, known: listed(Proving(Knowing(KnownVolume("a", InPhase(corev1.VolumeBound))), DataKey)), expected: begins},
		{name: "C7 M2 it is Failed, and somebody removed its claimRef", claim: asks, known: Knowing(KnownVolume("a", InPhase(corev1.VolumeFailed))), expected: "V1 Read pvc"},
		{name: "C7 X3 it is Available, and a provisioner of ours has made it", claim: asks, known: Knowing(KnownVolume("a", VolumeNote(ProvisionedBy, Own))), options: Hooked(), expected: "V1 Read pvc"},
		{name: "C7 M2 it is Available, and somebody removed its claimRef", claim: asks, known: Knowing(KnownVolume("a", VolumeNote(BoundBy, "yes"))), expected: "V1 Read pvc"},
		{name: "C7 nor the phase", claim: asks, known: listed(Proving(Knowing(KnownVolume("a", InPhase(corev1.VolumeFailed))), DataKey)), expected: begins},
		{name: "C7 nor a class that waits", claim: KnownClaim(Naming("a"), RequestingClass(new("local"))),
			known: Proving(Knowing(KnownVolume("a", OfClass("local")), ClassOf("local", "csi.example.com", WaitsForFirstConsumer)), DataKey), expected: begins},
		mismatch("C7 M1", "Deleting", BeingDeleted),
		mismatch("C7 M3", "TooSmall: requested 10Gi, actual 9Gi", Sized("9Gi")),
		mismatch("C7 M3 without a capacity", "Malformed", unsized),
		mismatch("C7 M4", "AccessModes: requested RWO, actual ROX", Offering(corev1.ReadOnlyMany)),
		mismatch("C7 M5", "VolumeMode: requested Filesystem, actual Block", block),
		mismatch("C7 M6", "StorageClass", OfClass("fast")),
		mismatch("C7 M7", "AttributesClass", attributes),
		{name: "C7 every reason", claim: asks, known: Knowing(KnownVolume("a", BeingDeleted, Sized("9Gi"), Offering(corev1.ReadOnlyMany), block, OfClass("fast"), attributes)),
			expected: "C7 Wait", events: refused, says: []string{"Deleting", "TooSmall", "AccessModes", "VolumeMode", "StorageClass", "AttributesClass"}},
		{name: "C7 and it was Lost", claim: KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimLost)), known: Knowing(KnownVolume("a", Sized("9Gi"))),
			expected: "C7 UpdateClaimStatus pvc/default/data: status.phase=Pending", events: refused},
		{name: "C7 M2 another claim owns it", claim: asks, known: Knowing(KnownVolume("a"), FitClaim(BoundTo("a"), Named("other"))),
			expected: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{`"a"`, "default/other"}},
		{name: "C7 M2 two claims own it", claim: asks, known: Knowing(KnownVolume("a"), FitClaim(BoundTo("a"), Named("other")), FitClaim(BoundTo("a"), Named("another"))),
			expected: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{"default/another", "default/other"}},
		{name: "C7 M2 a claim with a forged annotation does not", claim: asks, known: Proving(Knowing(KnownVolume("a"), KnownClaim(Naming("a"), Named("aaa"), ClaimNote(Completed, "yes"))), DataKey), expected: begins},
		{name: "X7 C7 a malformed claim", claim: KnownClaim(Naming("a"), Requesting("-1")), known: Knowing(KnownVolume("a")), fails: "spec.resources.requests.storage"},

		{name: "C8 it is reserved for it", claim: asks, known: Proving(Knowing(KnownVolume("a", PreBound)), DataKey), expected: finishes},
		{name: "B1 X2 which is read live before: had it, and were it gone, the volume would be reclaimed for it", claim: asks, known: Knowing(KnownVolume("a", PreBound)), expected: "B1 Read pvc/default/data"},
		{name: "C8 it holds it", claim: asks, known: Knowing(KnownVolume("a", BoundToClaim)), expected: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "C8 no M check: nothing fits", claim: asks,
			known: Proving(Knowing(KnownVolume("a", PreBound, BeingDeleted, Sized("1Gi"), Offering(corev1.ReadOnlyMany), block, OfClass("fast"), attributes, InPhase(corev1.VolumeReleased))), DataKey), expected: finishes},
		{name: "C8 no M check of one that it holds", claim: asks,
			known: Knowing(KnownVolume("a", BoundToClaim, BeingDeleted, Sized("1Gi"), block)), expected: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "C8 not even a malformed claim stops it", claim: KnownClaim(Naming("a"), RequestingModes("Sometimes")), known: Proving(Knowing(KnownVolume("a", PreBound)), DataKey), expected: finishes},

		{name: "C9 L5 another claim's", claim: asks, known: Knowing(KnownVolume("a", RefersToOther)),
			expected: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{`"a"`, "another claim", "default/other"}},
		{name: "C9 L4 an earlier claim's of its name", claim: asks, known: Knowing(KnownVolume("a", RefersToStale)),
			expected: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{`"a"`, "another claim"}},
		{name: "C9 L5 reserved for another claim", claim: asks, known: Knowing(KnownVolume("a", RefersTo("default", "other", ""))),
			expected: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}},
		{name: "C9 it was Lost", claim: KnownClaim(Naming("a"), ClaimPhase(corev1.ClaimLost)), known: Knowing(KnownVolume("a", RefersToOther)),
			expected: "C9 UpdateClaimStatus pvc/default/data: status.phase=Pending", events: []string{"Warning FailedBinding pvc/default/data"}},
		{name: "C9 bound by a controller: an error, its status untouched", claim: KnownClaim(BoundTo("a"), WithoutNote(Completed), ClaimNote(BoundBy, "yes")),
			known:    Knowing(KnownVolume("a", RefersToOther)),
			expected: "C9 Wait", fails: "pvc/default/data", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{"another claim"}},
		{name: "C9 the same for L4", claim: KnownClaim(Naming("a"), ClaimNote(BoundBy, "yes"), ClaimPhase(corev1.ClaimLost)),
			known:    Knowing(KnownVolume("a", RefersToStale)),
			expected: "C9 Wait", fails: "pvc/default/data", events: []string{"Warning FailedBinding pvc/default/data"}},
	})
}

func TestAClaimThatWasBoundOnce(t *testing.T) {
	bound := KnownClaim(BoundTo("a"))
	absent := Proving(decision.Snapshot{}, obj.VolumeKey("a"))
	read := func(v *corev1.PersistentVolume) decision.Snapshot { return Proving(Knowing(v), obj.VolumeKey("a")) }
	lost := "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Lost"
	claimLost, misbound := []string{"Warning ClaimLost pvc/default/data"}, []string{"Warning ClaimMisbound pvc/default/data"}
	holds := KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))
	attributes := func(c *corev1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = new("gold") }
	lostBefore := KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), func(c *corev1.PersistentVolumeClaim) { c.Status.AccessModes, c.Status.Capacity = nil, nil })
	forged, bare := KnownClaim(Naming("a"), ClaimNote(Completed, "yes"), ClaimNote(BoundBy, "yes")), KnownClaim(BoundTo("a"), WithoutNote(Completed))
	byController := lostBefore.DeepCopy()
	ClaimNote(BoundBy, "yes")(byController)
	leaving, other := KnownClaim(BoundTo("a"), ClaimBeingDeleted, ClaimFinalizers(reclaim.ClaimProtection)), KnownClaim(BoundTo("a"), Named("other"))
	otherLeaving := KnownClaim(BoundTo("a"), Named("other"), ClaimBeingDeleted, ClaimFinalizers(reclaim.ClaimProtection))
	refused, mismatched := []string{"Warning FailedBinding pvc/default/data"}, []string{"Warning VolumeMismatch pvc/default/data"}
	runDecisions(t, []decisionTest{
		{name: "C7 M2 the annotation alone: it must fit", claim: forged, known: Knowing(KnownVolume("a", Sized("9Gi"))), expected: "C7 Wait", events: mismatched, says: []string{"TooSmall"}},
		{name: "C7 M2 and it must not be another's", claim: forged, known: Knowing(KnownVolume("a"), KnownClaim(BoundTo("a"), Named("other"))), expected: "C9 Wait", events: refused, says: []string{"default/other"}},
		{name: "C7 M2 if it fits, it is bound", claim: forged, known: Proving(Knowing(KnownVolume("a")), DataKey), expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C12 M2 not if it is being deleted", claim: KnownClaim(Naming("a"), ClaimNote(Completed, "yes"), ClaimBeingDeleted), known: Knowing(KnownVolume("a")), expected: "C12 Nothing"},
		{name: "C7 a Lost one stays Lost if the volume comes back too small", claim: lostBefore, known: Knowing(KnownVolume("a", Sized("9Gi"))), expected: "C7 Wait", events: mismatched},
		{name: "C9 M2 a Lost one stays Lost if it is another's", claim: byController, known: Knowing(KnownVolume("a"), KnownClaim(BoundTo("a"), Named("other"))), expected: "C9 Wait", events: refused},
		{name: "C11 M2 two claims are bound to it: its status is untouched", claim: bound, known: Knowing(KnownVolume("a"), bound, KnownClaim(BoundTo("a"), Named("other"))), expected: "C11 Wait", events: refused,
			says: []string{`"a"`, "no claimRef", "default/data with UID uid-1", "Lost: default/other"}},
		{name: "C11 M2 the same without the annotation", claim: bare, known: Knowing(KnownVolume("a"), bare, KnownClaim(BoundTo("a"), Named("other"))), expected: "C11 Wait", events: refused},
		{name: "C11 M2 whoever holds it has it", claim: bound, known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound)), bound, KnownClaim(BoundTo("a"), Named("other"))), expected: "C11 Nothing"},
		{name: "C11 M2 one whose annotation somebody took off is bound again, whether it fits or not", claim: bare, known: Proving(Knowing(KnownVolume("a", Sized("9Gi")), bare), DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C11 only namespace and name went from its claimRef", claim: bound, known: Proving(Knowing(KnownVolume("a", RefersTo("", "", "uid-1"))), DataKey), expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C11 C12 M2 so it is while it is being deleted", claim: leaving, known: Proving(Knowing(KnownVolume("a", RefersTo("", "", "uid-1")), leaving), DataKey), expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C11 G2 F1 before it is written itself, which may be refused for long", claim: KnownClaim(BoundTo("a"), ClaimNote(Provisioner, "kubernetes.io/cinder")), known: Proving(Knowing(KnownVolume("a")), DataKey),
			options: decision.Options{Protection: decision.ProtectionOn}, expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C11 B1 which is read live before", claim: bound, known: Knowing(KnownVolume("a", RefersTo("", "", "uid-1"))), expected: "B1 Read pvc/default/data"},
		{name: "C11 C12 M2 also while it is being deleted", claim: KnownClaim(BoundTo("a"), WithoutNote(Completed), ClaimBeingDeleted), known: Proving(Knowing(KnownVolume("a")), DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C11 C12 of several owners the others are read before it is let go", claim: leaving, known: Knowing(KnownVolume("a"), leaving, other), expected: "C11 Read pvc/default/other"},
		{name: "C11 F2 another stays: it is let go", claim: leaving, known: Proving(Knowing(KnownVolume("a"), leaving, other), obj.ClaimKey("default", "other"), obj.VolumeKey("a")), options: decision.Options{Protection: decision.ProtectionOn}, expected: "F2 Read pods/default"},
		{name: "C11 F2 all are being deleted, and another is the last", claim: leaving, known: Proving(Knowing(KnownVolume("a"), leaving, otherLeaving), obj.ClaimKey("default", "other"), obj.VolumeKey("a")), options: decision.Options{Protection: decision.ProtectionOn}, expected: "F2 Read pods/default"},
		{name: "C11 C12 all are being deleted, and it is the last: it stays", claim: otherLeaving, known: Proving(Knowing(KnownVolume("a"), leaving, otherLeaving), DataKey), options: decision.Options{Protection: decision.ProtectionOn}, expected: "C11 Wait",
			events: []string{"Warning FailedBinding pvc/default/other"}, says: []string{`"a"`, "no claimRef"}},
		{name: "C11 C12 and then it writes the claimRef", claim: otherLeaving, known: Proving(Knowing(KnownVolume("a"), otherLeaving), obj.ClaimKey("default", "other")),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/other uid-2} +annotation " + BoundBy},
		{name: "C10 it names none: no proof is needed", claim: KnownClaim(BoundTo("")), expected: lost, events: claimLost, says: []string{"names no volume", "lost"}},
		{name: "C10 unknown: read it first", claim: bound, expected: "C10 Read pv/a"},
		{name: "C10 so is one with the longest name", claim: KnownClaim(BoundTo(longest)), expected: "C10 Read pv/" + longest},
		{name: "C10 X9 none can have a longer one: no read", claim: KnownClaim(BoundTo(longest + "nn")), expected: lost, events: claimLost, says: []string{`"` + longest + `…"`, "does not exist"}},
		{name: "F2 X9 nor is one read before the claim is let go", claim: KnownClaim(BoundTo(longest+"nn"), ClaimBeingDeleted, ClaimFinalizers(reclaim.ClaimProtection)),
			options: decision.Options{Protection: decision.ProtectionOn}, expected: "F2 Read pods/default"},
		{name: "C10 known to be absent", claim: bound, known: absent, expected: lost, events: claimLost, says: []string{`"a"`, "does not exist", "lost"}},
		{name: "C10 attributes class goes too", claim: KnownClaim(BoundTo("a"), attributes), known: absent,
			expected: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage -status.currentVolumeAttributesClassName status.phase=Lost",
			events:   claimLost},
		{name: "C10 L5: read it first", claim: bound, known: Knowing(KnownVolume("a", RefersToOther)), expected: "C10 Read pv/a"},
		{name: "C10 L5", claim: bound, known: read(KnownVolume("a", RefersToOther)), expected: lost, events: misbound, says: []string{`"a"`, "default/other", "lost"}},
		{name: "C10 L4: read it first", claim: bound, known: Knowing(KnownVolume("a", RefersToStale)), expected: "C10 Read pv/a"},
		{name: "C10 L4", claim: bound, known: read(KnownVolume("a", RefersToStale)), expected: lost, events: misbound, says: []string{"uid-0"}},
		{name: "C11 reserved for it, its UID cleared: misbound", claim: bound, known: read(KnownVolume("a", PreBound)), expected: lost, events: misbound, says: []string{"without a UID"}},
		{name: "C11 the same: read it first", claim: bound, known: Knowing(KnownVolume("a", PreBound)), expected: "C10 Read pv/a"},
		{name: "C10 a read of another volume proves nothing", claim: bound, known: Proving(decision.Snapshot{}, obj.VolumeKey("b"), DataKey), expected: "C10 Read pv/a"},
		{name: "C10 Lost once, without another read", claim: lostBefore, expected: "C10 Nothing"},
		{name: "C10 Lost, and misbound now: still Lost", claim: lostBefore, known: read(KnownVolume("a", RefersToOther)), expected: "C10 Nothing"},
		{name: "C10 Lost with a status left over: cleared, no second event", claim: KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)), known: absent,
			expected: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage"},
		{name: "C10 Lost, and modes alone left over", claim: KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = nil }),
			known: absent, expected: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes"},
		{name: "C10 Lost, and an attributes class alone left over", claim: KnownClaim(BoundTo("a"), func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost, CurrentVolumeAttributesClassName: new("gold")}
		}), known: absent, expected: "C10 UpdateClaimStatus pvc/default/data: -status.currentVolumeAttributesClassName"},

		{name: "C11 all is well", claim: bound, known: Knowing(holds), expected: "C11 Nothing"},
		{name: "C11 the claimRef is gone", claim: bound, known: Proving(Knowing(KnownVolume("a", InPhase(corev1.VolumeBound))), DataKey),
			expected: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + BoundBy},
		{name: "C11 W8 the claim is read live before", claim: bound, known: Knowing(KnownVolume("a", InPhase(corev1.VolumeBound))), expected: "B1 Read pvc/default/data"},
		{name: "C11 C12 W8 also while it is being deleted", claim: leaving, known: Knowing(KnownVolume("a")), expected: "B1 Read pvc/default/data"},
		{name: "C11 the phase is wrong", claim: bound, known: Knowing(KnownVolume("a", BoundToClaim)), expected: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "C11 X4 Lost is not final, but not by a late cache", claim: lostBefore, known: Knowing(holds), expected: "C11 Read pv/a"},
		{name: "C11 X4 Lost is not final", claim: lostBefore, known: read(holds),
			expected: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "C11 M is not checked", claim: bound, known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), Sized("1Gi"), OfClass("fast"), BeingDeleted)), expected: "C11 Nothing"},
		{name: "C11 it asks for nothing that counts any more", claim: KnownClaim(BoundTo("a"), MalformedSelector), known: Knowing(holds), expected: "C11 Nothing"},
		{name: "C11 bound-by-controller on either side does not matter", claim: KnownClaim(BoundTo("a"), ClaimNote(BoundBy, "yes")),
			known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound), VolumeNote(BoundBy, "yes"))), expected: "C11 Nothing"},
		{name: "C11 an owner reference is no matter", claim: KnownClaim(BoundTo("a"), func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{Name: "web-0"}}
		}), known: Knowing(holds), expected: "C11 Nothing"},
	})
}
