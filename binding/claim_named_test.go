package binding_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
)

func TestAClaimThatNamesAVolumeItNeverHad(t *testing.T) {
	asks := knownClaim(naming("a"))
	begins := "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy
	finishes := "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1}"
	refused := []string{"Warning VolumeMismatch pvc/default/data"}
	block := func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	attributes := func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("gold") }
	mismatch := func(name, says string, edits ...volumeEdit) decision {
		return decision{name: name, claim: asks, known: knowing(knownVolume("a", edits...)),
			want: "C7 Wait", events: refused, says: []string{`"a"`, says}}
	}
	runDecisions(t, []decision{
		{name: "C6 it does not exist", claim: asks, want: "C6 Wait"},
		{name: "C6 others do not matter", claim: asks, known: knowing(knownVolume("b")), want: "C6 Wait"},
		{name: "C6 it was Lost", claim: knownClaim(naming("a"), claimPhase(corev1.ClaimLost)), want: "C6 UpdateClaimStatus pvc/default/data: status.phase=Pending"},
		{name: "C6 Pending keeps nothing of a volume", claim: knownClaim(naming("a"), boundTo("a"), withoutNote(completed), claimPhase(corev1.ClaimPending)),
			want: "C6 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage"},

		{name: "C7 it fits", claim: asks, known: knowing(knownVolume("a")), want: begins},
		{name: "C7 it need not be the best", claim: asks, known: knowing(knownVolume("a", sized("99Gi")), knownVolume("b")), want: begins},
		{name: "C7 the selector does not count", claim: knownClaim(naming("a"), askingLabel("tier", "gold")), known: knowing(knownVolume("a")), want: begins},
		{name: "C7 nor the phase", claim: asks, known: knowing(knownVolume("a", inPhase(corev1.VolumeFailed))), want: begins},
		{name: "C7 nor a class that waits", claim: knownClaim(naming("a"), askingClass(new("local"))),
			known: knowing(knownVolume("a", ofClass("local")), classOf("local", "csi.example.com", delayedClass)), want: begins},
		mismatch("C7 M1", "Deleting", beingDeleted),
		mismatch("C7 M3", "TooSmall: asks 10Gi, has 9Gi", sized("9Gi")),
		mismatch("C7 M3 without a capacity", "Malformed", unsized),
		mismatch("C7 M4", "AccessModes: asks RWO, has ROX", offering(corev1.ReadOnlyMany)),
		mismatch("C7 M5", "VolumeMode: asks Filesystem, has Block", block),
		mismatch("C7 M6", "StorageClass", ofClass("fast")),
		mismatch("C7 M7", "AttributesClass", attributes),
		{name: "C7 every reason", claim: asks, known: knowing(knownVolume("a", beingDeleted, sized("9Gi"), offering(corev1.ReadOnlyMany), block, ofClass("fast"), attributes)),
			want: "C7 Wait", events: refused, says: []string{"Deleting", "TooSmall", "AccessModes", "VolumeMode", "StorageClass", "AttributesClass"}},
		{name: "C7 and it was Lost", claim: knownClaim(naming("a"), claimPhase(corev1.ClaimLost)), known: knowing(knownVolume("a", sized("9Gi"))),
			want: "C7 UpdateClaimStatus pvc/default/data: status.phase=Pending", events: refused},
		{name: "C7 M2 another claim owns it", claim: asks, known: knowing(knownVolume("a"), fitClaim(boundTo("a"), named("other"))),
			want: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{`"a"`, "default/other"}},
		{name: "C7 M2 two claims own it", claim: asks, known: knowing(knownVolume("a"), fitClaim(boundTo("a"), named("other")), fitClaim(boundTo("a"), named("another"))),
			want: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{"default/another", "default/other"}},
		{name: "C7 M2 a claim with a forged annotation does not", claim: asks, known: knowing(knownVolume("a"), knownClaim(naming("a"), named("aaa"), claimNote(completed, "yes"))), want: begins},
		{name: "X7 C7 a malformed claim", claim: knownClaim(naming("a"), asking("-1")), known: knowing(knownVolume("a")), fails: "spec.resources.requests.storage"},

		{name: "C8 it is reserved for it", claim: asks, known: knowing(knownVolume("a", reserved)), want: finishes},
		{name: "C8 it holds it", claim: asks, known: knowing(knownVolume("a", held)), want: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "C8 no M check: nothing fits", claim: asks,
			known: knowing(knownVolume("a", reserved, beingDeleted, sized("1Gi"), offering(corev1.ReadOnlyMany), block, ofClass("fast"), attributes, inPhase(corev1.VolumeReleased))), want: finishes},
		{name: "C8 no M check of one that it holds", claim: asks,
			known: knowing(knownVolume("a", held, beingDeleted, sized("1Gi"), block)), want: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "C8 not even a malformed claim stops it", claim: knownClaim(naming("a"), askingModes("Sometimes")), known: knowing(knownVolume("a", reserved)), want: finishes},

		{name: "C9 L5 another claim's", claim: asks, known: knowing(knownVolume("a", refersToOther)),
			want: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{`"a"`, "another claim", "default/other"}},
		{name: "C9 L4 an earlier claim's of its name", claim: asks, known: knowing(knownVolume("a", refersToGone)),
			want: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{`"a"`, "another claim"}},
		{name: "C9 L5 reserved for another claim", claim: asks, known: knowing(knownVolume("a", refersTo("default", "other", ""))),
			want: "C9 Wait", events: []string{"Warning FailedBinding pvc/default/data"}},
		{name: "C9 it was Lost", claim: knownClaim(naming("a"), claimPhase(corev1.ClaimLost)), known: knowing(knownVolume("a", refersToOther)),
			want: "C9 UpdateClaimStatus pvc/default/data: status.phase=Pending", events: []string{"Warning FailedBinding pvc/default/data"}},
		{name: "C9 bound by a controller: an error, its status untouched", claim: knownClaim(boundTo("a"), withoutNote(completed), claimNote(boundBy, "yes")),
			known: knowing(knownVolume("a", refersToOther)),
			want:  "C9 Wait", fails: "pvc/default/data", events: []string{"Warning FailedBinding pvc/default/data"}, says: []string{"another claim"}},
		{name: "C9 the same for L4", claim: knownClaim(naming("a"), claimNote(boundBy, "yes"), claimPhase(corev1.ClaimLost)),
			known: knowing(knownVolume("a", refersToGone)),
			want:  "C9 Wait", fails: "pvc/default/data", events: []string{"Warning FailedBinding pvc/default/data"}},
	})
}

func named(name string) claimEdit {
	return func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = name, "uid-2" }
}

func TestAClaimThatWasBoundOnce(t *testing.T) {
	bound := knownClaim(boundTo("a"))
	absent := proving(binding.Snapshot{}, obj.VolumeKey("a"))
	read := func(v *corev1.PersistentVolume) binding.Snapshot { return proving(knowing(v), obj.VolumeKey("a")) }
	lost := "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage status.phase=Lost"
	claimLost, misbound := []string{"Warning ClaimLost pvc/default/data"}, []string{"Warning ClaimMisbound pvc/default/data"}
	holds := knownVolume("a", held, inPhase(corev1.VolumeBound))
	attributes := func(c *corev1.PersistentVolumeClaim) { c.Status.CurrentVolumeAttributesClassName = new("gold") }
	lostBefore := knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost), func(c *corev1.PersistentVolumeClaim) { c.Status.AccessModes, c.Status.Capacity = nil, nil })
	forged, bare := knownClaim(naming("a"), claimNote(completed, "yes"), claimNote(boundBy, "yes")), knownClaim(boundTo("a"), withoutNote(completed))
	byController := lostBefore.DeepCopy()
	claimNote(boundBy, "yes")(byController)
	refused, mismatched := []string{"Warning FailedBinding pvc/default/data"}, []string{"Warning VolumeMismatch pvc/default/data"}
	runDecisions(t, []decision{
		{name: "C7 M2 the annotation alone: it must fit", claim: forged, known: knowing(knownVolume("a", sized("9Gi"))), want: "C7 Wait", events: mismatched, says: []string{"TooSmall"}},
		{name: "C7 M2 and it must not be another's", claim: forged, known: knowing(knownVolume("a"), knownClaim(boundTo("a"), named("other"))), want: "C9 Wait", events: refused, says: []string{"default/other"}},
		{name: "C7 M2 if it fits, it is bound", claim: forged, known: knowing(knownVolume("a")), want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "C12 M2 not if it is being deleted", claim: knownClaim(naming("a"), claimNote(completed, "yes"), claimBeingDeleted), known: knowing(knownVolume("a")), want: "C12 Nothing"},
		{name: "C7 a Lost one stays Lost if the volume comes back too small", claim: lostBefore, known: knowing(knownVolume("a", sized("9Gi"))), want: "C7 Wait", events: mismatched},
		{name: "C9 M2 a Lost one stays Lost if it is another's", claim: byController, known: knowing(knownVolume("a"), knownClaim(boundTo("a"), named("other"))), want: "C9 Wait", events: refused},
		{name: "C11 M2 two claims are bound to it: its status is untouched", claim: bound, known: knowing(knownVolume("a"), bound, knownClaim(boundTo("a"), named("other"))), want: "C11 Wait", events: refused,
			says: []string{`"a"`, "no claimRef", "default/data with UID uid-1", "Lost: default/other"}},
		{name: "C11 M2 the same without the annotation", claim: bare, known: knowing(knownVolume("a"), bare, knownClaim(boundTo("a"), named("other"))), want: "C11 Wait", events: refused},
		{name: "C11 M2 whoever holds it has it", claim: bound, known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound)), bound, knownClaim(boundTo("a"), named("other"))), want: "C11 Nothing"},
		{name: "C11 M2 one whose annotation somebody took off is bound again, whether it fits or not", claim: bare, known: knowing(knownVolume("a", sized("9Gi")), bare),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "C11 C12 M2 also while it is being deleted", claim: knownClaim(boundTo("a"), withoutNote(completed), claimBeingDeleted), known: knowing(knownVolume("a")),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "C10 it names none: no proof is needed", claim: knownClaim(boundTo("")), want: lost, events: claimLost, says: []string{"names no volume", "lost"}},
		{name: "C10 unknown: read it first", claim: bound, want: "C10 Read pv/a"},
		{name: "C10 known to be absent", claim: bound, known: absent, want: lost, events: claimLost, says: []string{`"a"`, "does not exist", "lost"}},
		{name: "C10 attributes class goes too", claim: knownClaim(boundTo("a"), attributes), known: absent,
			want:   "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage -status.currentVolumeAttributesClassName status.phase=Lost",
			events: claimLost},
		{name: "C10 L5: read it first", claim: bound, known: knowing(knownVolume("a", refersToOther)), want: "C10 Read pv/a"},
		{name: "C10 L5", claim: bound, known: read(knownVolume("a", refersToOther)), want: lost, events: misbound, says: []string{`"a"`, "default/other", "lost"}},
		{name: "C10 L4: read it first", claim: bound, known: knowing(knownVolume("a", refersToGone)), want: "C10 Read pv/a"},
		{name: "C10 L4", claim: bound, known: read(knownVolume("a", refersToGone)), want: lost, events: misbound, says: []string{"uid-0"}},
		{name: "C11 reserved for it, its UID cleared: misbound", claim: bound, known: read(knownVolume("a", reserved)), want: lost, events: misbound, says: []string{"without a UID"}},
		{name: "C11 the same: read it first", claim: bound, known: knowing(knownVolume("a", reserved)), want: "C10 Read pv/a"},
		{name: "C10 a read of another volume proves nothing", claim: bound, known: proving(binding.Snapshot{}, obj.VolumeKey("b"), dataKey), want: "C10 Read pv/a"},
		{name: "C10 Lost once, without another read", claim: lostBefore, want: "C10 Nothing"},
		{name: "C10 Lost, and misbound now: still Lost", claim: lostBefore, known: read(knownVolume("a", refersToOther)), want: "C10 Nothing"},
		{name: "C10 Lost with a status left over: cleared, no second event", claim: knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost)), known: absent,
			want: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes -status.capacity.storage"},
		{name: "C10 Lost, and modes alone left over", claim: knownClaim(boundTo("a"), claimPhase(corev1.ClaimLost), func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = nil }),
			known: absent, want: "C10 UpdateClaimStatus pvc/default/data: -status.accessModes"},
		{name: "C10 Lost, and an attributes class alone left over", claim: knownClaim(boundTo("a"), func(c *corev1.PersistentVolumeClaim) {
			c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost, CurrentVolumeAttributesClassName: new("gold")}
		}), known: absent, want: "C10 UpdateClaimStatus pvc/default/data: -status.currentVolumeAttributesClassName"},

		{name: "C11 all is well", claim: bound, known: knowing(holds), want: "C11 Nothing"},
		{name: "C11 the claimRef is gone", claim: bound, known: knowing(knownVolume("a", inPhase(corev1.VolumeBound))),
			want: "B1 UpdateVolume pv/a: spec.claimRef={default/data uid-1} +annotation " + boundBy},
		{name: "C11 the phase is wrong", claim: bound, known: knowing(knownVolume("a", held)), want: "B2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "C11 X4 Lost is not final", claim: lostBefore, known: knowing(holds),
			want: "B4 UpdateClaimStatus pvc/default/data: status.accessModes=[ReadWriteOnce] status.capacity.storage=10Gi status.phase=Bound"},
		{name: "C11 M is not checked", claim: bound, known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound), sized("1Gi"), ofClass("fast"), beingDeleted)), want: "C11 Nothing"},
		{name: "C11 it asks for nothing that counts any more", claim: knownClaim(boundTo("a"), malformedSelector), known: knowing(holds), want: "C11 Nothing"},
		{name: "C11 bound-by-controller on either side does not matter", claim: knownClaim(boundTo("a"), claimNote(boundBy, "yes")),
			known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound), volumeNote(boundBy, "yes"))), want: "C11 Nothing"},
		{name: "C11 an owner reference is no matter", claim: knownClaim(boundTo("a"), func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{Name: "web-0"}}
		}), known: knowing(holds), want: "C11 Nothing"},
	})
}
