package binding_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestAVolumeThatNobodyHolds(t *testing.T) {
	available := "V1 UpdateVolumeStatus pv/a: status.phase=Available"
	offered := "W1 HandOver pvc/default/data"
	wanted := knowing(knownClaim())
	failed := func(v *corev1.PersistentVolume) {
		v.Status.Message, v.Status.Reason = "it failed", "VolumeFailedDelete"
	}
	runDecisions(t, []decision{
		{name: "V1 Pending", volume: knownVolume("a", inPhase(corev1.VolumePending)), want: available},
		{name: "V1 without a phase", volume: knownVolume("a", inPhase("")), want: available},
		{name: "V1 Available", volume: knownVolume("a"), want: "V1 Nothing"},
		{name: "V1 Bound", volume: knownVolume("a", inPhase(corev1.VolumeBound)), want: available},
		{name: "V1 B2 message and reason go with the phase", volume: knownVolume("a", inPhase(corev1.VolumeFailed), failed),
			want: "V1 UpdateVolumeStatus pv/a: -status.message status.phase=Available -status.reason"},
		{name: "V1 reserved, its claim does not exist", volume: knownVolume("a", reserved, inPhase(corev1.VolumePending)), want: available},
		{name: "V1 reserved, its claim has another volume", volume: knownVolume("a", reserved, inPhase(corev1.VolumePending)), known: knowing(knownClaim(boundTo("b"))), want: available},
		{name: "V1 reserved and bound-by-controller: no reason to drop it", volume: knownVolume("a", reserved, volumeNote(boundBy, "yes")), want: "V1 Nothing"},
		{name: "X7 V1 no capacity: Available all the same", volume: knownVolume("a", inPhase(corev1.VolumePending), unsized), want: available},
		{name: "X7 V1 no capacity: then an error", volume: knownVolume("a", unsized), want: "V1 Nothing", fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 V1 an unknown access mode", volume: knownVolume("a", offering("Sometimes")), want: "V1 Nothing", fails: "pv/a: spec.accessModes"},
		{name: "X7 V1 an unknown volume mode", volume: knownVolume("a", func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }),
			want: "V1 Nothing", fails: "pv/a: spec.volumeMode: unknown: Tape"},
		{name: "X7 V1 a negative capacity", volume: knownVolume("a", sized("-1Gi")), want: "V1 Nothing", fails: "pv/a: spec.capacity[storage]"},
		{name: "X7 V1 a malformed claim waits for nothing", volume: knownVolume("a", inPhase(corev1.VolumePending)), known: knowing(knownClaim(malformedSelector)), want: available},
		{name: "X7 W1 and keeps no other from it", volume: knownVolume("a"), known: knowing(knownClaim(malformedSelector, named("aaa")), knownClaim()), want: offered},

		{name: "M2 V1 it lost its claimRef: back to its claim", volume: knownVolume("a", inPhase(corev1.VolumeBound)), known: knowing(knownClaim(boundTo("a"), named("other")), knownClaim()),
			want: "V1 HandOver pvc/default/other"},
		{name: "M2 V1 an annotation is no proof", volume: knownVolume("a", inPhase(corev1.VolumeBound)), known: knowing(knownClaim(naming("a"), claimNote(completed, "yes"), asking("50Gi"))), want: available},
		{name: "M2 V1 nor is a Lost claim", volume: knownVolume("a", inPhase(corev1.VolumeBound)), known: knowing(knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost), asking("50Gi"))), want: available},
		{name: "M2 V1 status is, without the annotation too", volume: knownVolume("a", inPhase(corev1.VolumeBound)), known: knowing(knownClaim(boundTo("a"), withoutNote(completed))), want: "V1 HandOver pvc/default/data"},
		{name: "M2 V1 two claims are bound to it: nobody gets it", volume: knownVolume("a", inPhase(corev1.VolumeBound)), known: knowing(knownClaim(boundTo("a"), named("other")), knownClaim(boundTo("a")), knownClaim(named("more"))),
			want: "V1 Wait", events: []string{"Warning FailedBinding pv/a"}, says: []string{`"a"`, "no claimRef", "default/data with UID uid-1", "default/other with UID uid-2"}},
		{name: "M2 V1 though it is Available", volume: knownVolume("a"), known: knowing(knownClaim(boundTo("a"))), want: "V1 HandOver pvc/default/data"},
		{name: "M2 V1 not if the claimRef is reserved for somebody else", volume: knownVolume("a", refersTo("default", "new", "")), known: knowing(knownClaim(boundTo("a"))), want: "V1 Nothing"},

		{name: "W1 a claim waits: it goes first, without a write", volume: knownVolume("a", inPhase(corev1.VolumePending)), known: wanted, want: offered},
		{name: "W1 the same once Available", volume: knownVolume("a"), known: wanted, want: offered},
		{name: "W1 M9 one that cannot be had is made Available first", volume: knownVolume("a", inPhase(corev1.VolumeReleased)), known: wanted, want: available},
		{name: "W1 M9 the same for Bound", volume: knownVolume("a", inPhase(corev1.VolumeBound)), known: wanted, want: available},
		{name: "W1 M12 no matter if it is reserved", volume: knownVolume("a", reserved, inPhase(corev1.VolumeReleased)), known: wanted, want: offered},
		{name: "W1 reserved: nobody else's", volume: knownVolume("a", refersTo("default", "new", "")), known: wanted, want: "V1 Nothing"},
		{name: "W1 too small for it", volume: knownVolume("a", sized("1Gi")), known: wanted, want: "V1 Nothing"},
		{name: "W1 of another class", volume: knownVolume("a", ofClass("fast")), known: wanted, want: "V1 Nothing"},
		{name: "W1 the claim waits for a pod", volume: knownVolume("a", ofClass("local")), known: knowing(knownClaim(askingClass(new("local"))), classOf("local", "csi.example.com", delayedClass)), want: "V1 Nothing"},
		{name: "W1 C12 the claim is being deleted", volume: knownVolume("a"), known: knowing(knownClaim(claimBeingDeleted)), want: "V1 Nothing"},
		{name: "W1 the claim has a volume", volume: knownVolume("a"), known: knowing(knownClaim(boundTo("b"))), want: "V1 Nothing"},
		{name: "W1 the claim names another", volume: knownVolume("a"), known: knowing(knownClaim(naming("b"))), want: "V1 Nothing"},
		{name: "W1 M1 it is being deleted", volume: knownVolume("a", beingDeleted), known: wanted, want: "V1 Nothing"},

		{name: "W1 who names it goes first", volume: knownVolume("a", sized("50Gi")), want: "W1 HandOver pvc/default/names",
			known: knowing(knownClaim(asking("50Gi")), knownClaim(named("names"), naming("a"), asking("1Gi")))},
		{name: "W1 then the largest request", volume: knownVolume("a", sized("50Gi")), want: "W1 HandOver pvc/default/large",
			known: knowing(knownClaim(asking("10Gi")), knownClaim(named("large"), asking("20Gi")), knownClaim(named("huge"), asking("60Gi")))},
		{name: "W1 then by name", volume: knownVolume("a"), want: "W1 HandOver pvc/default/first",
			known: knowing(knownClaim(named("second")), knownClaim(named("first")), knownClaim(named("third")))},
		{name: "W1 by namespace before the name", volume: knownVolume("a"), want: "W1 HandOver pvc/apart/z",
			known: knowing(knownClaim(named("first")), knownClaim(named("z"), in("apart")))},
		{name: "W1 who names it and could not have it is passed over", volume: knownVolume("a"), want: "W1 HandOver pvc/default/data",
			known: knowing(knownClaim(), knownClaim(named("names"), naming("a"), asking("50Gi")))},
		{name: "W1 C7 who names it needs no matching selector", volume: knownVolume("a"), want: "W1 HandOver pvc/default/data",
			known: knowing(knownClaim(naming("a"), askingLabel("tier", "gold")))},
		{name: "W1 C8 who names it and has it reserved needs nothing", volume: knownVolume("a", reserved, sized("1Gi")), want: "W1 HandOver pvc/default/data",
			known: knowing(knownClaim(naming("a")))},
	})
}

func in(namespace string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Namespace = namespace }
}

func TestAVolumeThatAClaimHolds(t *testing.T) {
	bound := inPhase(corev1.VolumeBound)
	block := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	ours, made := volumeNote(boundBy, "yes"), volumeNote(provisionedBy, "csi.example.com")
	elsewhere := proving(knowing(knownClaim(boundTo("b")), knownVolume("b", held)), obj.VolumeKey("b"))
	retain, remove := withPolicy(corev1.PersistentVolumeReclaimRetain), withPolicy(corev1.PersistentVolumeReclaimDelete)
	frees := "V4 UpdateVolume pv/a: -spec.claimRef -annotation " + boundBy
	readsOther, told := "V2 Read pv/b", []string{"Warning VolumeMismatch pv/a", "Warning VolumeMismatch pvc/default/data"}
	lacking := func(other ...obj.Object) binding.Snapshot {
		return proving(knowing(append(other, knownClaim(boundTo("b")))...), obj.VolumeKey("b"))
	}
	runDecisions(t, []decision{
		{name: "V2 the claim names none yet: it goes on", volume: knownVolume("a", held), known: knowing(knownClaim()), want: "V2 HandOver pvc/default/data"},
		{name: "V2 the claim waits for a pod: it goes on all the same", volume: knownVolume("a", held), known: knowing(knownClaim(askingClass(new("local")))), want: "V2 HandOver pvc/default/data"},
		{name: "V2 the volume modes differ: both are told", volume: knownVolume("a", held, block), known: knowing(knownClaim()),
			want: "V2 Wait", events: []string{"Warning VolumeMismatch pv/a", "Warning VolumeMismatch pvc/default/data"}, says: []string{`"a"`, "default/data", "Block", "Filesystem"}},
		{name: "V2 no mode means Filesystem", volume: knownVolume("a", held, func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem) }), known: knowing(knownClaim()),
			want: "V2 HandOver pvc/default/data"},
		{name: "V2 C12 the claim is being deleted: neither finished nor rolled back", volume: knownVolume("a", held, ours), known: knowing(knownClaim(claimBeingDeleted)), want: "V2 Wait"},
		{name: "V2 M1 the volume is being deleted", volume: knownVolume("a", held, ours, beingDeleted), known: knowing(knownClaim()), want: "V2 Wait"},
		{name: "V2 the claim names it", volume: knownVolume("a", held), known: knowing(knownClaim(naming("a"))), want: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "V2 from Released back to Bound", volume: knownVolume("a", held, inPhase(corev1.VolumeReleased)), known: knowing(knownClaim(boundTo("a"))), want: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "V2 modes do not matter once the claim names it", volume: knownVolume("a", held, block), known: knowing(knownClaim(naming("a"))), want: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "V2 all is well", volume: knownVolume("a", held, bound), known: knowing(knownClaim(boundTo("a"))), want: "V2 Nothing"},
		{name: "V2 all is well though the claim is being deleted", volume: knownVolume("a", held, bound), known: knowing(knownClaim(boundTo("a"), claimBeingDeleted)), want: "V2 Nothing"},
		{name: "V2 and though the volume has no capacity", volume: knownVolume("a", held, bound, unsized), known: knowing(knownClaim(boundTo("a"))), want: "V2 Nothing"},
		{name: "V2 X2 a Lost claim still has it", volume: knownVolume("a", held, bound), known: knowing(knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost))), want: "V2 Nothing"},

		{name: "V2 V4 the claim has another: a controller's link is dropped", volume: knownVolume("a", held, bound, ours), known: elsewhere, want: frees},
		{name: "V2 V4 a person's is theirs again", volume: knownVolume("a", held, bound), known: elsewhere, want: "V4 UpdateVolume pv/a: spec.claimRef={default/data}"},
		{name: "V2 V4 provisioned, but to be retained", volume: knownVolume("a", held, bound, ours, made, retain), known: elsewhere, want: frees},
		{name: "V2 V4 to be deleted, but not provisioned", volume: knownVolume("a", held, bound, ours, remove), known: elsewhere, want: frees},
		{name: "V2 provisioned and to be deleted: Released", volume: knownVolume("a", held, bound, ours, made, remove), known: elsewhere, want: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "V2 R3 then it is its provisioner's", volume: knownVolume("a", held, inPhase(corev1.VolumeReleased), ours, made, remove), known: elsewhere, want: "R3 Wait"},

		{name: "V2 that it has it is read live first", volume: knownVolume("a", held, bound, ours), known: knowing(knownClaim(boundTo("b")), knownVolume("b", held)), want: readsOther},
		{name: "V2 before the Released write too", volume: knownVolume("a", held, bound, made, remove), known: knowing(knownClaim(boundTo("b")), knownVolume("b", held)), want: readsOther},
		{name: "V2 nothing to write, nothing to read", volume: knownVolume("a", held, inPhase(corev1.VolumeReleased), made, remove), known: knowing(knownClaim(boundTo("b")), knownVolume("b", held)), want: "R3 Wait"},
		{name: "V2 that it does not exist is read live first", volume: knownVolume("a", held, bound, ours), known: knowing(knownClaim(boundTo("b"))), want: readsOther},
		{name: "V2 it does not exist: left as it is", volume: knownVolume("a", held, bound, ours), known: lacking(), want: "V2 Wait", events: told, says: []string{`"b"`, "does not exist"}},
		{name: "V2 the same, to be deleted", volume: knownVolume("a", held, bound, made, remove), known: lacking(), want: "V2 Wait", events: told, says: []string{`"b"`, "does not exist"}},
		{name: "V2 the same, Released already", volume: knownVolume("a", held, inPhase(corev1.VolumeReleased), made, remove), known: lacking(), want: "V2 Wait", events: told},
		{name: "V2 the same, and the claim never bound", volume: knownVolume("a", held, bound, ours), known: proving(knowing(knownClaim(naming("b"))), obj.VolumeKey("b")), want: "V2 Wait", events: told},
		{name: "V2 another has it", volume: knownVolume("a", held, bound, ours), known: lacking(knownVolume("b", refersToOther)), want: "V2 Wait", events: told, says: []string{"belongs to claim default/other with UID uid-2"}},
		{name: "V2 an earlier claim of the name has it", volume: knownVolume("a", held, bound, made, remove), known: lacking(knownVolume("b", refersToGone)), want: "V2 Wait", events: told, says: []string{"UID uid-0"}},
		{name: "V2 it is reserved for the claim's name only", volume: knownVolume("a", held, bound, made, remove), known: lacking(knownVolume("b", reserved)), want: "V2 Wait", events: told, says: []string{"without a UID"}},
		{name: "V2 nobody has it", volume: knownVolume("a", held, bound, made, remove), known: lacking(knownVolume("b")), want: "V2 Wait", events: told, says: []string{"is not bound to it"}},
		{name: "V4 then Available", volume: knownVolume("a", bound), known: elsewhere, want: "V1 UpdateVolumeStatus pv/a: status.phase=Available"},
		{name: "V4 the same for what a person reserved", volume: knownVolume("a", reserved, bound), known: elsewhere, want: "V1 UpdateVolumeStatus pv/a: status.phase=Available"},
	})
}

func TestV3AVolumeWhoseClaimIsGone(t *testing.T) {
	bound := inPhase(corev1.VolumeBound)
	reads, releases := "V3 Read pvc/default/data", "V3 UpdateVolumeStatus pv/a: status.phase=Released"
	absent := proving(binding.Snapshot{}, dataKey)
	again := knownClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })
	recycle := withPolicy(corev1.PersistentVolumeReclaimRecycle)
	runDecisions(t, []decision{
		{name: "V3 not in the cache: read it first", volume: knownVolume("a", held, bound), want: reads},
		{name: "V3 in the cache with another UID: read it first", volume: knownVolume("a", held, bound), known: knowing(again), want: reads},
		{name: "V3 an older cached claim, the volume being newer: read it first", volume: knownVolume("a", refersTo("default", "data", "uid-9"), bound), known: knowing(knownClaim()), want: reads},
		{name: "V3 the read of another claim proves nothing", volume: knownVolume("a", held, bound), known: proving(binding.Snapshot{}, obj.ClaimKey("default", "other"), obj.VolumeKey("a")), want: reads},
		{name: "V3 it is gone", volume: knownVolume("a", held, bound), known: absent, want: releases},
		{name: "V3 X3 another of its name is there", volume: knownVolume("a", held, bound), known: proving(knowing(again), dataKey), want: releases},
		{name: "V3 it names this volume: X3 no matter", volume: knownVolume("a", held, bound),
			known: proving(knowing(knownClaim(naming("a"), func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })), dataKey), want: releases},
		{name: "V3 never bound by phase", volume: knownVolume("a", held, inPhase(corev1.VolumePending)), known: absent, want: releases},
		{name: "V3 a person's link", volume: knownVolume("a", held, inPhase("")), known: absent, want: releases},
		{name: "V3 Released: nothing, and no read", volume: knownVolume("a", held, inPhase(corev1.VolumeReleased)), want: "R2 Nothing"},
		{name: "V3 Failed stays, and no read", volume: knownVolume("a", held, inPhase(corev1.VolumeFailed)), want: "R2 Nothing"},
		{name: "V3 Released, to be recycled: read it before it fails", volume: knownVolume("a", held, inPhase(corev1.VolumeReleased), recycle, onHostPath), known: knowing(podUsing("done", podPhase(corev1.PodSucceeded))), want: reads},
		{name: "V3 Released by mistake, its claim is there: Bound again", volume: knownVolume("a", held, inPhase(corev1.VolumeReleased)), known: knowing(knownClaim(boundTo("a"))), want: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "V3 no capacity is no matter", volume: knownVolume("a", held, bound, unsized), known: absent, want: releases},
	})
}
