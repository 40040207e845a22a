package decision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestAVolumeThatNobodyHolds(t *testing.T) {
	available := "V1 UpdateVolumeStatus pv/a: status.phase=Available"
	offered, unnamed := "W1 Requeue pvc/default/data", []string{"Warning VolumeMismatch pv/a"}
	wanted := Knowing(KnownClaim())
	failed := func(v *corev1.PersistentVolume) {
		v.Status.Message, v.Status.Reason = "it failed", "VolumeFailedDelete"
	}
	runDecisions(t, []decisionTest{
		{name: "V1 Pending", volume: KnownVolume("a", InPhase(corev1.VolumePending)), expected: available},
		{name: "V1 without a phase", volume: KnownVolume("a", InPhase("")), expected: available},
		{name: "V1 Available", volume: KnownVolume("a"), expected: "V1 Nothing"},
		{name: "V1 Bound", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), known: listed(Knowing()), expected: available},
		{name: "V1 Bound, and a cache may not show its owner yet", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), expected: "V1 Read pvc"},
		{name: "V1 and if the UID in its claimRef was removed first", volume: KnownVolume("a", PreBound, InPhase(corev1.VolumeBound)), expected: "V1 Read pvc"},
		{name: "V1 and if its claimRef was edited before it was removed", volume: KnownVolume("a", InPhase(corev1.VolumeReleased)), expected: "V1 Read pvc"},
		{name: "V1 and then it failed", volume: KnownVolume("a", InPhase(corev1.VolumeFailed)), expected: "V1 Read pvc"},
		{name: "V1 R4 it was scrubbed just now", volume: KnownVolume("a", InPhase(corev1.VolumeReleased)), known: Answering(Knowing(), decision.Answer{Of: decision.RunRecycler, For: KnownVolume("a").UID}), expected: available},
		{name: "V1 R4 that failed", volume: KnownVolume("a", InPhase(corev1.VolumeReleased)), known: Answering(Knowing(), decision.Answer{Of: decision.RunRecycler, For: KnownVolume("a").UID, Err: ErrBroken}), expected: "V1 Read pvc"},
		{name: "V1 B2 message and reason go with the phase", volume: KnownVolume("a", InPhase(corev1.VolumeFailed), failed), known: listed(Knowing()),
			expected: "V1 UpdateVolumeStatus pv/a: -status.message status.phase=Available -status.reason"},
		{name: "V1 reserved, its claim does not exist", volume: KnownVolume("a", PreBound, InPhase(corev1.VolumePending)), expected: available},
		{name: "V1 reserved, its claim has another volume", volume: KnownVolume("a", PreBound, InPhase(corev1.VolumePending)), known: Knowing(KnownClaim(BoundTo("b"))), expected: available},
		{name: "V1 reserved and bound-by-controller: no reason to drop it", volume: KnownVolume("a", PreBound, VolumeNote(BoundBy, "yes")), expected: "V1 Nothing"},
		{name: "X7 V1 no capacity: Available all the same", volume: KnownVolume("a", InPhase(corev1.VolumePending), unsized), expected: available},
		{name: "X7 V1 no capacity: then an error", volume: KnownVolume("a", unsized), expected: "V1 Nothing", fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 V1 an unknown access mode", volume: KnownVolume("a", Offering("Sometimes")), expected: "V1 Nothing", fails: "pv/a: spec.accessModes"},
		{name: "X7 V1 an unknown volume mode", volume: KnownVolume("a", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }),
			expected: "V1 Nothing", fails: "pv/a: spec.volumeMode: unknown: Tape"},
		{name: "X7 V1 a negative capacity", volume: KnownVolume("a", Sized("-1Gi")), expected: "V1 Nothing", fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 V1 a malformed claim waits for nothing", volume: KnownVolume("a", InPhase(corev1.VolumePending)), known: Knowing(KnownClaim(MalformedSelector)), expected: available},
		{name: "X7 W1 and keeps no other from it", volume: KnownVolume("a"), known: Knowing(KnownClaim(MalformedSelector, Named("aaa")), KnownClaim()), expected: offered},

		{name: "V1 X3 made for a claim that exists, and somebody removed the claimRef", volume: KnownVolume("pvc-uid-1", InPhase(corev1.VolumeReleased)), known: Proving(Knowing(KnownClaim(Naming("b"))), obj.ClaimsKey(), DataKey),
			expected: "V1 UpdateVolume pv/pvc-uid-1: spec.claimRef={default/data}", events: []string{"Warning VolumeMismatch pv/pvc-uid-1"}, says: []string{"made for claim default/data"}},
		{name: "V1 X3 which is read live before", volume: KnownVolume("pvc-uid-1", InPhase(corev1.VolumeReleased)), known: Proving(Knowing(KnownClaim(Naming("b"))), obj.ClaimsKey()), expected: "V1 Read pvc/default/data"},
		{name: "V1 Available, though its claimRef was removed", volume: KnownVolume("a", VolumeNote(BoundBy, "yes")), expected: "V1 Nothing"},
		{name: "M2 V1 it lost its claimRef: back to its claim", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"), Named("other")), KnownClaim()),
			expected: "V1 Requeue pvc/default/other"},
		{name: "M2 V1 so it is where only namespace and name went from its claimRef", volume: KnownVolume("a", RefersTo("", "", "uid-1"), InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"))), expected: "V1 Requeue pvc/default/data"},
		{name: "M2 V1 C7 and the claim is Lost by that", volume: KnownVolume("a", RefersTo("", "", "uid-1"), InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), expected: "V1 Requeue pvc/default/data"},
		{name: "V1 X3 X10 its claim is gone: it is nobody's, and told", volume: KnownVolume("a", RefersTo("", "", "uid-1"), InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"), Named("other"))),
			expected: "V1 Wait", events: unnamed, says: []string{`"a"`, `UID "uid-1"`, "no claim can have that name"}},
		{name: "V1 C11 C12 its claim is Bound and being deleted: that writes it again", volume: KnownVolume("a", RefersTo("", "", "uid-1"), InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"), ClaimBeingDeleted)), expected: "V1 Requeue pvc/default/data"},
		{name: "V1 C12 X10 its claim is being deleted, and was not bound: told", volume: KnownVolume("a", RefersTo("", "", "uid-1")), known: Knowing(KnownClaim(Naming("a"), ClaimBeingDeleted)), expected: "V1 Wait", events: unnamed},
		{name: "V1 C7 its claim is Pending and names it: that writes it again", volume: KnownVolume("a", RefersTo("", "", "uid-1")), known: Knowing(KnownClaim(Naming("a"))), expected: "V1 Requeue pvc/default/data"},
		{name: "V1 C7 X10 unless it does not fit any more: told on the volume too", volume: KnownVolume("a", RefersTo("", "", "uid-1")), known: Knowing(KnownClaim(Naming("a"), Requesting("50Gi"))), expected: "V1 Wait", events: unnamed},
		{name: "V1 X10 no claim can have such a name", volume: KnownVolume("a", RefersTo("default", "default/data", "uid-1"), InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"))),
			expected: "V1 Wait", events: unnamed, says: []string{`"default/data"`}},
		{name: "V1 C9 X10 nor is it mended where another claim has it by its status", volume: KnownVolume("a", RefersTo("", "", "uid-1"), InPhase(corev1.VolumeBound)),
			known: Knowing(KnownClaim(BoundTo("a")), KnownClaim(Naming("a"), Named("other"), ClaimPhase(corev1.ClaimBound))), expected: "V1 Wait", events: unnamed},
		{name: "V1 X9 nor one that long", volume: KnownVolume("a", RefersTo("default", longest+"nn", "uid-1"), InPhase(corev1.VolumeBound)), expected: "V1 Wait", events: unnamed, says: []string{`"` + longest + `…"`}},
		{name: "V1 X10 nor is it reserved for one", volume: KnownVolume("a", RefersTo("default", "", "")), expected: "V1 Wait", events: unnamed},
		{name: "M2 V1 an annotation is no proof", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), known: listed(Knowing(KnownClaim(Naming("a"), ClaimNote(Completed, "yes"), Requesting("50Gi")))), expected: available},
		{name: "M2 V1 nor is a Lost claim", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), known: listed(Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost), Requesting("50Gi")))), expected: available},
		{name: "M2 V1 status is, without the annotation too", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"), WithoutNote(Completed))), expected: "V1 Requeue pvc/default/data"},
		{name: "M2 V1 two claims are bound to it: nobody gets it", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"), Named("other")), KnownClaim(BoundTo("a")), KnownClaim(Named("more"))),
			expected: "V1 Wait", events: []string{"Warning FailedBinding pv/a"}, says: []string{`"a"`, "no claimRef", "default/data with UID uid-1", "default/other with UID uid-2"}},
		{name: "M2 V1 though it is Available", volume: KnownVolume("a"), known: Knowing(KnownClaim(BoundTo("a"))), expected: "V1 Requeue pvc/default/data"},
		{name: "V1 X3 reserved for another, and a claim is Bound to it: that is Lost first", volume: KnownVolume("a", RefersTo("default", "new", ""), InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"))),
			expected: "V1 Requeue pvc/default/data", events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "V1 X3 the same where only the UID was removed", volume: KnownVolume("a", PreBound, InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"))),
			expected: "V1 Requeue pvc/default/data", events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "V1 X3 the same where it was made again with such a claimRef", volume: KnownVolume("a", RefersTo("default", "new", ""), InPhase(corev1.VolumePending)), known: Knowing(KnownClaim(BoundTo("a"))),
			expected: "V1 Requeue pvc/default/data", events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "V1 C10 and then it is Available", volume: KnownVolume("a", RefersTo("default", "new", ""), InPhase(corev1.VolumeBound)), known: listed(Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost)))), expected: available},
		{name: "V1 W1 whom a person gives it to has it, though another is Bound to it", volume: KnownVolume("a", RefersTo("default", "new", ""), InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a")), KnownClaim(Named("new"))),
			expected: "W1 Requeue pvc/default/new"},
		{name: "M2 V1 not if the claimRef is reserved for somebody else", volume: KnownVolume("a", RefersTo("default", "new", "")), known: Knowing(KnownClaim(BoundTo("a"))), expected: "V1 Nothing"},

		{name: "W1 a claim waits: it goes first, without a write", volume: KnownVolume("a", InPhase(corev1.VolumePending)), known: wanted, expected: offered},
		{name: "W1 the same once Available", volume: KnownVolume("a"), known: wanted, expected: offered},
		{name: "W1 M9 one that cannot be had is made Available first", volume: KnownVolume("a", InPhase(corev1.VolumeReleased)), known: listed(wanted), expected: available},
		{name: "W1 M9 the same for Bound", volume: KnownVolume("a", InPhase(corev1.VolumeBound)), known: listed(wanted), expected: available},
		{name: "W1 M12 no matter if it is reserved", volume: KnownVolume("a", PreBound, InPhase(corev1.VolumeReleased)), known: wanted, expected: offered},
		{name: "W1 reserved: nobody else's", volume: KnownVolume("a", RefersTo("default", "new", "")), known: wanted, expected: "V1 Nothing"},
		{name: "W1 too small for it", volume: KnownVolume("a", Sized("1Gi")), known: wanted, expected: "V1 Nothing"},
		{name: "W1 of another class", volume: KnownVolume("a", OfClass("fast")), known: wanted, expected: "V1 Nothing"},
		{name: "W1 the claim waits for a pod", volume: KnownVolume("a", OfClass("local")), known: Knowing(KnownClaim(RequestingClass(new("local"))), ClassOf("local", "csi.example.com", WaitsForFirstConsumer)), expected: "V1 Nothing"},
		{name: "W1 C12 the claim is being deleted", volume: KnownVolume("a"), known: Knowing(KnownClaim(ClaimBeingDeleted)), expected: "V1 Nothing"},
		{name: "W1 the claim has a volume", volume: KnownVolume("a"), known: Knowing(KnownClaim(BoundTo("b"))), expected: "V1 Nothing"},
		{name: "W1 the claim names another", volume: KnownVolume("a"), known: Knowing(KnownClaim(Naming("b"))), expected: "V1 Nothing"},
		{name: "W1 M1 it is being deleted", volume: KnownVolume("a", BeingDeleted), known: wanted, expected: "V1 Nothing"},

		{name: "W1 who names it goes first", volume: KnownVolume("a", Sized("50Gi")), expected: "W1 Requeue pvc/default/names",
			known: Knowing(KnownClaim(Requesting("50Gi")), KnownClaim(Named("names"), Naming("a"), Requesting("1Gi")))},
		{name: "W1 then the largest request", volume: KnownVolume("a", Sized("50Gi")), expected: "W1 Requeue pvc/default/large",
			known: Knowing(KnownClaim(Requesting("10Gi")), KnownClaim(Named("large"), Requesting("20Gi")), KnownClaim(Named("huge"), Requesting("60Gi")))},
		{name: "W1 then by name", volume: KnownVolume("a"), expected: "W1 Requeue pvc/default/first",
			known: Knowing(KnownClaim(Named("second")), KnownClaim(Named("first")), KnownClaim(Named("third")))},
		{name: "W1 by namespace before the name", volume: KnownVolume("a"), expected: "W1 Requeue pvc/apart/z",
			known: Knowing(KnownClaim(Named("first")), KnownClaim(Named("z"), in("apart")))},
		{name: "W1 who names it and could not have it is passed over", volume: KnownVolume("a"), expected: "W1 Requeue pvc/default/data",
			known: Knowing(KnownClaim(), KnownClaim(Named("names"), Naming("a"), Requesting("50Gi")))},
		{name: "W1 C7 who names it needs no matching selector", volume: KnownVolume("a"), expected: "W1 Requeue pvc/default/data",
			known: Knowing(KnownClaim(Naming("a"), RequestingLabel("tier", "gold")))},
		{name: "W1 C8 who names it and has it reserved needs nothing", volume: KnownVolume("a", PreBound, Sized("1Gi")), expected: "W1 Requeue pvc/default/data",
			known: Knowing(KnownClaim(Naming("a")))},
	})
}

func in(namespace string) ClaimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Namespace = namespace }
}

func TestAVolumeThatAClaimHolds(t *testing.T) {
	bound := InPhase(corev1.VolumeBound)
	block := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	ours, made := VolumeNote(BoundBy, "yes"), VolumeNote(ProvisionedBy, "csi.example.com")
	elsewhere := Proving(Knowing(KnownClaim(BoundTo("b")), KnownVolume("b", BoundToClaim)), DataKey, obj.VolumeKey("b"))
	retain, remove := WithPolicy(corev1.PersistentVolumeReclaimRetain), WithPolicy(corev1.PersistentVolumeReclaimDelete)
	created := func(v *corev1.PersistentVolume) { v.CreationTimestamp = metav1.Unix(1, 0) }
	later := func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.Unix(2, 0) }
	elsewhereLater := Proving(Knowing(KnownClaim(BoundTo("b"), later), KnownVolume("b", BoundToClaim)), DataKey, obj.VolumeKey("b"))
	chosen := func(v *corev1.PersistentVolume) {
		ours(v)
		v.Spec.ClaimRef.ResourceVersion = "7" // of the claim, as B1 writes it
	}
	frees, reserves := "V4 UpdateVolume pv/a: -spec.claimRef -annotation "+BoundBy, "V4 UpdateVolume pv/a: spec.claimRef={default/data} -annotation "+BoundBy
	readsOther, told := "V2 Read pv/b", []string{"Warning VolumeMismatch pv/a", "Warning VolumeMismatch pvc/default/data"}
	lacking := func(other ...obj.Object) decision.Snapshot {
		return Proving(Knowing(append(other, KnownClaim(BoundTo("b")))...), obj.VolumeKey("b"))
	}
	runDecisions(t, []decisionTest{
		{name: "V2 the claim names none yet: it goes on", volume: KnownVolume("a", BoundToClaim), known: Knowing(KnownClaim()), expected: "V2 Requeue pvc/default/data"},
		{name: "V2 the claim waits for a pod: it goes on all the same", volume: KnownVolume("a", BoundToClaim), known: Knowing(KnownClaim(RequestingClass(new("local")))), expected: "V2 Requeue pvc/default/data"},
		{name: "V2 the volume modes differ: both are told", volume: KnownVolume("a", BoundToClaim, block), known: Knowing(KnownClaim()),
			expected: "V2 Wait", events: []string{"Warning VolumeMismatch pv/a", "Warning VolumeMismatch pvc/default/data"}, says: []string{`"a"`, "default/data", "Block", "Filesystem"}},
		{name: "V2 no mode means Filesystem", volume: KnownVolume("a", BoundToClaim, func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem) }), known: Knowing(KnownClaim()),
			expected: "V2 Requeue pvc/default/data"},
		{name: "V2 W6 it does not fit, of which the claim's own sync tells: no sync of that is begun", volume: KnownVolume("a", BoundToClaim, Sized("1Gi")), known: Knowing(KnownClaim()), expected: "V2 Wait"},
		{name: "V2 X7 its claim is malformed, of which that tells", volume: KnownVolume("a", BoundToClaim), known: Knowing(KnownClaim(MalformedSelector)), expected: "V2 Wait"},
		{name: "V2 M12 class and selector are whoever bound it's choice", volume: KnownVolume("a", BoundToClaim, OfClass("fast")), known: Knowing(KnownClaim(RequestingLabel("tier", "gold"))), expected: "V2 Requeue pvc/default/data"},
		{name: "V2 C12 the claim is being deleted: neither finished nor rolled back", volume: KnownVolume("a", BoundToClaim, ours), known: Knowing(KnownClaim(ClaimBeingDeleted)), expected: "V2 Wait"},
		{name: "V2 M1 the volume is being deleted", volume: KnownVolume("a", BoundToClaim, ours, BeingDeleted), known: Knowing(KnownClaim()), expected: "V2 Wait"},
		{name: "V2 C10 X10 the volume is being deleted, and its claim names none any more: told", volume: KnownVolume("a", BoundToClaim, ours, BeingDeleted), known: Knowing(KnownClaim(ClaimNote(Completed, "yes"))), expected: "V2 Wait",
			events: []string{"Warning VolumeFailedDelete pv/a"}},
		{name: "V2 C12 X10 the volume is being deleted, and so is its claim: told", volume: KnownVolume("a", BoundToClaim, ours, BeingDeleted), known: Knowing(KnownClaim(ClaimBeingDeleted)), expected: "V2 Wait",
			events: []string{"Warning VolumeFailedDelete pv/a"}},
		{name: "V2 C10 X10 its claim is Lost, for somebody has written bind-completed onto it: told", volume: KnownVolume("a", BoundToClaim, ours), known: Knowing(KnownClaim(ClaimNote(Completed, "yes"))), expected: "V2 Wait",
			events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"default/data", Completed}},
		{name: "V2 the claim names it", volume: KnownVolume("a", BoundToClaim), known: Knowing(KnownClaim(Naming("a"))), expected: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "V2 from Released back to Bound: not by a late cache", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased)), known: Knowing(KnownClaim(BoundTo("a"))), expected: "V2 Read pvc/default/data"},
		{name: "V2 from Failed back to Bound: not by a late cache", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeFailed)), known: Knowing(KnownClaim(BoundTo("a"))), expected: "V2 Read pvc/default/data"},
		{name: "V2 but where its claim is there", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased)), known: Proving(Knowing(KnownClaim(BoundTo("a"))), DataKey), expected: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "V2 modes do not matter once the claim names it", volume: KnownVolume("a", BoundToClaim, block), known: Knowing(KnownClaim(Naming("a"))), expected: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "V2 all is well", volume: KnownVolume("a", BoundToClaim, bound), known: Knowing(KnownClaim(BoundTo("a"))), expected: "V2 Nothing"},
		{name: "V2 all is well though the claim is being deleted", volume: KnownVolume("a", BoundToClaim, bound), known: Knowing(KnownClaim(BoundTo("a"), ClaimBeingDeleted)), expected: "V2 Nothing"},
		{name: "V2 and though the volume has no capacity", volume: KnownVolume("a", BoundToClaim, bound, unsized), known: Knowing(KnownClaim(BoundTo("a"))), expected: "V2 Nothing"},
		{name: "V2 X2 a Lost claim still has it", volume: KnownVolume("a", BoundToClaim, bound), known: Knowing(KnownClaim(BoundTo("a"), ClaimPhase(corev1.ClaimLost))), expected: "V2 Nothing"},

		{name: "V2 V4 the claim has another: a controller's link is dropped", volume: KnownVolume("a", BoundToClaim, bound, chosen), known: elsewhere, expected: frees},
		{name: "V4 X3 but not what a person wrote, over that of an earlier binding: the data may be another's", volume: KnownVolume("a", BoundToClaim, bound, ours), known: elsewhere, expected: reserves,
			events: []string{"Warning VolumeMismatch pv/a"}, says: []string{`volume "a" was given`, "default/data with UID uid-1", `"b"`, "reserved"}},
		{name: "V2 V4 a person's is theirs again", volume: KnownVolume("a", BoundToClaim, bound), known: elsewhere, expected: "V4 UpdateVolume pv/a: spec.claimRef={default/data}", events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "V2 V4 provisioned, but to be retained", volume: KnownVolume("a", BoundToClaim, bound, chosen, made, retain), known: elsewhere, expected: frees},
		{name: "V2 V4 to be deleted, but not provisioned", volume: KnownVolume("a", BoundToClaim, bound, chosen, remove), known: elsewhere, expected: frees},
		{name: "V4 X3 made for the claim: no other's while that exists", volume: KnownVolume("pvc-uid-1", BoundToClaim, bound, ours, made, retain), known: elsewhere, expected: "V4 UpdateVolume pv/pvc-uid-1: spec.claimRef={default/data} -annotation " + BoundBy},
		{name: "V2 provisioned and to be deleted: Released", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumePending), ours, made, remove), known: elsewhere, expected: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "V2 X2 it was Bound: a person gave it to the claim, with another's data", volume: KnownVolume("a", BoundToClaim, bound, made, remove), known: elsewhere, expected: "V4 UpdateVolume pv/a: spec.claimRef={default/data}", events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "V4 X3 the same, by a patch that leaves what a controller wrote: the data may be another's", volume: KnownVolume("a", BoundToClaim, bound, chosen, made, remove), known: elsewhere, expected: reserves, events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "V2 X2 it was Available: a person gave it to the claim, with what is on it", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), made, remove), known: elsewhere, expected: "V4 UpdateVolume pv/a: spec.claimRef={default/data}"},
		{name: "V2 X2 the same, named for the claim", volume: KnownVolume(OwnKey.Name, BoundToClaim, InPhase(corev1.VolumeAvailable), made, remove), known: elsewhere, expected: "V4 UpdateVolume pv/pvc-uid-1: spec.claimRef={default/data}"},
		{name: "V2 V4 the same, but older than the claim, and reserved by a person", volume: KnownVolume("a", BoundToClaim, bound, made, remove, created), known: elsewhereLater, expected: "V4 UpdateVolume pv/a: spec.claimRef={default/data}", events: []string{"Warning VolumeMismatch pv/a"}},
		{name: "V2 V4 the same, and chosen by a controller: free again", volume: KnownVolume("a", BoundToClaim, bound, made, remove, created, chosen), known: elsewhereLater, expected: frees},
		{name: "V4 a person has written the claim's UID into the claimRef of one that was Released: theirs again", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), ours), known: elsewhere, expected: reserves},
		{name: "V2 the same, named for the claim: Released", volume: KnownVolume(OwnKey.Name, BoundToClaim, bound, made, remove, created), known: elsewhereLater, expected: "V3 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Released"},
		{name: "V2 R3 then it is its provisioner's", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), ours, made, remove), known: elsewhere, expected: "R3 Wait"},

		{name: "V2 that it has it is read live first", volume: KnownVolume("a", BoundToClaim, bound, ours), known: Knowing(KnownClaim(BoundTo("b")), KnownVolume("b", BoundToClaim)), expected: readsOther},
		{name: "V2 W8 that the claim names it is read live too", volume: KnownVolume("a", BoundToClaim, bound, ours), known: Proving(Knowing(KnownClaim(BoundTo("b")), KnownVolume("b", BoundToClaim)), obj.VolumeKey("b")), expected: "V2 Read pvc/default/data"},
		{name: "V2 before the Released write too", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumePending), made, remove), known: Knowing(KnownClaim(BoundTo("b")), KnownVolume("b", BoundToClaim)), expected: readsOther},
		{name: "V2 nothing to write, nothing to read", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), made, remove), known: Knowing(KnownClaim(BoundTo("b")), KnownVolume("b", BoundToClaim)), expected: "R3 Wait"},
		{name: "V2 that it does not exist is read live first", volume: KnownVolume("a", BoundToClaim, bound, ours), known: Knowing(KnownClaim(BoundTo("b"))), expected: readsOther},
		{name: "V2 X9 unless none can have so long a name", volume: KnownVolume("a", BoundToClaim, bound, ours), known: Knowing(KnownClaim(BoundTo(longest + "nn"))), expected: "V2 Wait", events: told, says: []string{`"` + longest + `…"`, "does not exist"}},
		{name: "V2 it does not exist: left as it is", volume: KnownVolume("a", BoundToClaim, bound, ours), known: lacking(), expected: "V2 Wait", events: told, says: []string{`"b"`, "does not exist"}},
		{name: "V2 the same, to be deleted", volume: KnownVolume("a", BoundToClaim, bound, made, remove), known: lacking(), expected: "V2 Wait", events: told, says: []string{`"b"`, "does not exist"}},
		{name: "V2 the same, Released already", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), made, remove), known: lacking(), expected: "V2 Wait", events: told},
		{name: "V2 the same, and the claim never bound", volume: KnownVolume("a", BoundToClaim, bound, ours), known: Proving(Knowing(KnownClaim(Naming("b"))), obj.VolumeKey("b")), expected: "V2 Wait", events: told},
		{name: "V2 another has it", volume: KnownVolume("a", BoundToClaim, bound, ours), known: lacking(KnownVolume("b", RefersToOther)), expected: "V2 Wait", events: told, says: []string{"belongs to claim default/other with UID uid-2"}},
		{name: "V2 an earlier claim of the name has it", volume: KnownVolume("a", BoundToClaim, bound, made, remove), known: lacking(KnownVolume("b", RefersToStale)), expected: "V2 Wait", events: told, says: []string{"UID uid-0"}},
		{name: "V2 it is reserved for the claim's name only", volume: KnownVolume("a", BoundToClaim, bound, made, remove), known: lacking(KnownVolume("b", PreBound)), expected: "V2 Wait", events: told, says: []string{"without a UID"}},
		{name: "V2 nobody has it", volume: KnownVolume("a", BoundToClaim, bound, made, remove), known: lacking(KnownVolume("b")), expected: "V2 Wait", events: told, says: []string{"is not bound to it"}},
		{name: "V4 then Available", volume: KnownVolume("a", bound), known: listed(elsewhere), expected: "V1 UpdateVolumeStatus pv/a: status.phase=Available"},
		{name: "V1 V4 X3 not before the annotation of an earlier binding is gone: a person may write the UID into the claimRef later", volume: KnownVolume("a", PreBound, bound, ours), known: listed(elsewhere), expected: "V1 UpdateVolume pv/a: -annotation " + BoundBy},
		{name: "V4 the same for what a person reserved", volume: KnownVolume("a", PreBound, bound), known: listed(elsewhere), expected: "V1 UpdateVolumeStatus pv/a: status.phase=Available"},
	})
}

func TestV3AVolumeWhoseClaimIsGone(t *testing.T) {
	bound := InPhase(corev1.VolumeBound)
	reads, releases := "V3 Read pvc/default/data", "V3 UpdateVolumeStatus pv/a: status.phase=Released"
	absent := Proving(decision.Snapshot{}, DataKey)
	again := KnownClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })
	recycle := WithPolicy(corev1.PersistentVolumeReclaimRecycle)
	const ownReleased = "V3 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Released"
	provisioned := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume(OwnKey.Name, append([]VolumeEdit{BoundToClaim, WithPolicy(corev1.PersistentVolumeReclaimDelete), VolumeNote(ProvisionedBy, Own), VolumeFinalizers(InTreeFinalizer)}, edits...)...)
	}
	boundAt := func(version string) VolumeEdit {
		return func(v *corev1.PersistentVolume) {
			BoundToClaim(v)
			v.Spec.ClaimRef.ResourceVersion = version
		}
	}
	absentAsOf := func(version string) decision.Snapshot {
		known := absent
		known.Absent = map[obj.Key]string{DataKey: version}
		return known
	}
	runDecisions(t, []decisionTest{
		{name: "V3 not in the cache: read it first", volume: KnownVolume("a", BoundToClaim, bound), expected: reads},
		{name: "V3 in the cache with another UID: read it first", volume: KnownVolume("a", BoundToClaim, bound), known: Knowing(again), expected: reads},
		{name: "V3 an older cached claim, the volume being newer: read it first", volume: KnownVolume("a", RefersTo("default", "data", "uid-9"), bound), known: Knowing(KnownClaim()), expected: reads},
		{name: "V3 the read of another claim proves nothing", volume: KnownVolume("a", BoundToClaim, bound), known: Proving(decision.Snapshot{}, obj.ClaimKey("default", "other"), obj.VolumeKey("a")), expected: reads},
		{name: "V3 it is gone", volume: KnownVolume("a", BoundToClaim, bound), known: absent, expected: releases},
		{name: "V3 there was none before it was bound: nothing is released", volume: KnownVolume("a", boundAt("50"), bound), known: absentAsOf("49"), expected: "V3 Wait",
			events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"there is none as of the older resourceVersion 49"}, retry: decision.RetryBackoff},
		{name: "V3 there is none since: it is gone", volume: KnownVolume("a", boundAt("50"), bound), known: absentAsOf("50"), expected: releases},
		{name: "V3 X3 another of its name is there", volume: KnownVolume("a", BoundToClaim, bound), known: Proving(Knowing(again), DataKey), expected: releases},
		{name: "V3 it names this volume: X3 no matter", volume: KnownVolume("a", BoundToClaim, bound),
			known: Proving(Knowing(KnownClaim(Naming("a"), func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })), DataKey), expected: releases},
		{name: "V3 never bound by phase", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumePending)), known: absent, expected: releases},
		{name: "V3 a person's link", volume: KnownVolume("a", BoundToClaim, InPhase("")), known: absent, expected: releases},
		{name: "V3 X2 B1 reserved by a person, and not Bound since: what is on it is of before", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), recycle), known: absent,
			expected: "B1 UpdateVolume pv/a: spec.persistentVolumeReclaimPolicy=Retain", events: []string{"Warning VolumeMismatch pv/a"}, says: []string{"default/data with UID uid-1"}},
		{name: "V3 X2 B1 read it first", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), recycle), expected: reads},
		{name: "R3 B1 it is kept for a claim that has the UID, under another name, and not retained", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), recycle), known: Proving(Knowing(KnownClaim(Named("other"), OfUID("uid-1"))), DataKey),
			expected: "R3 Wait", events: []string{"Warning VolumeMismatch pv/a"}, retry: decision.RetryBackoff},
		{name: "V3 X2 B1 then Released", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable)), known: absent, expected: releases},
		{name: "V3 chosen by a controller: it had nobody's data", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeAvailable), VolumeNote(BoundBy, "yes"), recycle), known: absent, expected: releases},
		{name: "V3 Released: nothing, and no read", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased)), expected: "R2 Nothing"},
		{name: "V3 Failed stays, and no read", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeFailed)), expected: "R2 Nothing"},
		{name: "V3 Released, to be recycled: read it before it fails", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased), recycle, OnHostPath), known: Knowing(PodUsing("done", PodPhase(corev1.PodSucceeded))), expected: reads},
		{name: "V3 Released by mistake, its claim is there: Bound again", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeReleased)), known: Proving(Knowing(KnownClaim(BoundTo("a"))), DataKey), expected: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "P2 it was provisioned, and never seen beside its claim: read that first", volume: provisioned(InPhase(corev1.VolumePending)), options: Hooked(), expected: reads},
		{name: "P2 where no earlier one of that name is known, nobody had what is on it", volume: provisioned(InPhase(corev1.VolumePending)), known: absent, options: Hooked(), fresh: true, expected: ownReleased},
		{name: "P2 X10 where the class says Retain, it may have no storage: told", volume: provisioned(InPhase(corev1.VolumePending), WithPolicy(corev1.PersistentVolumeReclaimRetain), VolumeFinalizers()), known: absent, options: Hooked(), expected: ownReleased,
			events: []string{"Warning VolumeMismatch pv/pvc-uid-1"}},
		{name: "P2 Bound shows that its claim was there", volume: provisioned(bound), known: absent, options: Hooked(), expected: ownReleased},
		{name: "P2 V3 no deleter reaches that of others", volume: provisioned(InPhase(corev1.VolumePending), VolumeNote(ProvisionedBy, "their.example.com"), VolumeFinalizers()), known: absent, options: Hooked(), expected: ownReleased},
		{name: "P2 V3 nor is a volume of another name made for it", volume: KnownVolume("a", BoundToClaim, InPhase(corev1.VolumePending), VolumeNote(ProvisionedBy, Own)), known: absent, options: Hooked(), expected: releases},
		{name: "V3 no capacity is no matter", volume: KnownVolume("a", BoundToClaim, bound, unsized), known: absent, expected: releases},
	})
}
