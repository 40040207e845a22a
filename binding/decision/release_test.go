package decision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

func TestReclaimOfAReleasedVolume(t *testing.T) {
	absent := Proving(decision.Snapshot{}, DataKey)
	withPods := func(pods ...obj.Object) decision.Snapshot { return Proving(Knowing(pods...), DataKey) }
	remove, recycle := corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle
	by := func(name string) VolumeEdit { return VolumeNote(ProvisionedBy, name) }
	csi := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"}}
	}
	fails := func(reason, why string) string {
		return `UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: ` + why + `" status.phase=Failed status.reason=` + reason
	}
	failedDelete, failedRecycle := []string{"Warning VolumeFailedDelete pv/a"}, []string{"Warning VolumeFailedRecycle pv/a"}
	unused := PodUsing("done", PodPhase(corev1.PodSucceeded))
	deleter := "no deleter for hostPath volumes is registered"
	own := decision.Options{Migrations: storageclass.Migrations{"kubernetes.io/aws-ebs": "ours.example.com"}}
	noneMigrated := decision.Options{Migrations: storageclass.Migrations{}}
	runDecisions(t, []decisionTest{
		{name: "R1 migrated: its driver's", volume: Orphan(remove, VolumeNote(MigratedTo, "ebs.csi.aws.com")), known: absent, want: "R3 Wait", says: []string{"ebs.csi.aws.com"}},
		{name: "R1 by a table of one's own", volume: Orphan(remove, by("kubernetes.io/aws-ebs"), VolumeNote(MigratedTo, "ours.example.com")), known: absent, options: own, want: "R3 Wait", says: []string{"ours.example.com"}},
		{name: "R1 migrated, to be recycled: not even pods are asked for", volume: Orphan(recycle, VolumeNote(MigratedTo, "ebs.csi.aws.com")), want: "R3 Wait"},
		{name: "R2 Retain", volume: Orphan(corev1.PersistentVolumeReclaimRetain), want: "R2 Nothing", says: []string{"Retain"}},
		{name: "R2 Retain, though provisioned", volume: Orphan(corev1.PersistentVolumeReclaimRetain, by("csi.example.com")), want: "R2 Nothing"},
		{name: "R3 an external provisioner's: stand down", volume: Orphan(remove, by("csi.example.com")), want: "R3 Wait", says: []string{"csi.example.com"}},
		{name: "R3 it is never marked Failed, whatever its source", volume: Orphan(remove, by("csi.example.com")), known: absent, want: "R3 Wait"},
		{name: "R3 no provisioner: a CSI volume's is its driver", volume: Orphan(remove, csi), known: absent, want: "R3 Wait", says: []string{"csi.example.com"}},
		{name: "R3 an in-tree provisioner that is no more: Failed", volume: Orphan(remove, by("kubernetes.io/aws-ebs"), VolumeFinalizers(InTreeFinalizer)), known: absent, options: noneMigrated,
			want:   "R3 " + fails("VolumeFailedDelete", `no deleter for provisioner \"kubernetes.io/aws-ebs\" is registered`),
			events: failedDelete, says: []string{"kubernetes.io/aws-ebs"}},
		{name: "R3 nobody deletes its source: read the claim first", volume: Orphan(remove), want: "V3 Read pvc/default/data", events: nil},
		{name: "R3 nobody deletes its source: Failed", volume: Orphan(remove), known: absent, want: "R3 " + fails("VolumeFailedDelete", deleter), events: failedDelete, says: []string{"hostPath"}},
		{name: "R3 W6 Failed is tried again", volume: Orphan(remove, FailedFor("no deleter for hostPath volumes is registered")), known: absent, want: "R3 Wait", says: []string{"hostPath"}, retry: decision.RetryBackoff},
		{name: "R3 an empty provisioned-by is none", volume: Orphan(remove, by("")), known: absent, want: "R3 " + fails("VolumeFailedDelete", deleter), events: failedDelete},

		{name: "R4 pods are not known: list them", volume: Orphan(recycle), known: absent, want: "R4 Read pods/default"},
		{name: "R4 a pod that has not finished", volume: Orphan(recycle), known: withPods(PodUsing("web-1"), PodUsing("web-0", Scheduled), unused),
			want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: []string{"Volume is used by pods: default/web-0, default/web-1"}, retry: decision.RetryBackoff},
		{name: "R4 a pod holds it up before the claim is read", volume: Orphan(recycle), known: Knowing(PodUsing("web-0")),
			want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, retry: decision.RetryBackoff},
		{name: "R4 a finished pod does not count: no recycler, Failed", volume: Orphan(recycle), known: withPods(unused),
			want: "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle, says: []string{"hostPath"}},
		{name: "R4 nor one of another claim", volume: Orphan(recycle), known: withPods(podOf("other")),
			want: "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle},
		{name: "R4 nor one without a node while a claim of that name is there again", volume: Orphan(recycle),
			known: Proving(Knowing(PodUsing("web-0"), KnownClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })), DataKey),
			want:  "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle},
		{name: "R4 W6 Failed is tried again", volume: Orphan(recycle, FailedFor("no recycler for hostPath volumes is registered")), known: withPods(unused), want: "R4 Wait", retry: decision.RetryBackoff},

		{name: "R5 X7 an unknown policy: read the claim first", volume: Orphan("Burn"), want: "V3 Read pvc/default/data"},
		{name: "R5 X7 an unknown policy: Failed", volume: Orphan("Burn"), known: absent,
			want:   "R5 " + fails("VolumeUnknownReclaimPolicy", `persistentVolumeReclaimPolicy \"Burn\" is unknown`),
			events: []string{"Warning VolumeUnknownReclaimPolicy pv/a"}, says: []string{"Burn"}},
		{name: "R5 Failed: only a change of it helps", volume: Orphan("Burn", FailedFor(`persistentVolumeReclaimPolicy "Burn" is unknown`)), want: "R5 Wait"},
		{name: "R5 Retain takes Failed as it is", volume: Orphan(corev1.PersistentVolumeReclaimRetain, InPhase(corev1.VolumeFailed)), want: "R2 Nothing"},
	})
}

func TestF2AClaimInUse(t *testing.T) {
	on := decision.Options{Protection: decision.ProtectionOn}
	leaving := KnownClaim(ClaimBeingDeleted, ClaimFinalizers("theirs", ClaimProtection), BoundTo("a"))
	lists, goes := "F2 Read pods/default", "F2 UpdateClaim pvc/default/data: -finalizer kubernetes.io/pvc-protection"
	holds := KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))
	live := func(objects ...obj.Object) decision.Snapshot {
		return Proving(Knowing(append(objects, holds)...), obj.PodsKey("default"))
	}
	ephemeral := func(p *corev1.Pod) {
		p.Name, p.Spec.Volumes = "web", []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	scratch := func(edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return KnownClaim(append([]ClaimEdit{ClaimBeingDeleted, ClaimFinalizers(ClaimProtection), Named("web-scratch")}, edits...)...)
	}
	ownedByPod := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web", UID: "uid-of-pod", Controller: new(true)}}
	}
	shutDown := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Unix(1_700_000_000, 0)), new(int64)
	}
	scratchGoes := "F2 UpdateClaim pvc/default/web-scratch: -finalizer kubernetes.io/pvc-protection"
	runDecisions(t, []decisionTest{
		{name: "F2 off: not ours", claim: leaving, known: live(), want: "C11 Nothing"},
		{name: "F2 no pod known: list them", claim: leaving, known: Knowing(holds), options: on, want: lists},
		{name: "F2 a cache that knows only others proves nothing", claim: leaving, known: Knowing(holds, podOf("other")), options: on, want: lists},
		{name: "F2 a live list without one", claim: leaving, known: live(podOf("other")), options: on, want: goes},
		{name: "F2 a live list of another namespace proves nothing", claim: leaving, known: Proving(Knowing(holds), obj.PodsKey("apart")), options: on, want: lists},
		{name: "F2 an empty live list", claim: leaving, known: live(), options: on, want: goes},
		{name: "F2 a pod with a node uses it", claim: leaving, known: live(PodUsing("web-0", Scheduled)), options: on, want: "C11 Nothing"},
		{name: "F2 that a cache knows one is enough", claim: leaving, known: Knowing(holds, PodUsing("web-0", Scheduled)), options: on, want: "C11 Nothing"},
		{name: "F2 finished or not", claim: leaving, known: live(PodUsing("web-0", Scheduled, PodPhase(corev1.PodSucceeded))), options: on, want: "C11 Nothing"},
		{name: "F2 one without a node does not", claim: leaving, known: live(PodUsing("web-0")), options: on, want: goes},
		{name: "F2 an ephemeral volume of its owner", claim: scratch(ownedByPod), known: live(PodUsing("web", ephemeral, Scheduled)), options: on, want: "C12 Nothing"},
		{name: "F2 not of another pod", claim: scratch(), known: live(PodUsing("web", ephemeral, Scheduled)), options: on, want: scratchGoes},
		{name: "F2 not once the pod is shut down", claim: scratch(ownedByPod), known: live(PodUsing("web", ephemeral, Scheduled, shutDown)), options: on, want: scratchGoes},
		{name: "F2 not being deleted", claim: KnownClaim(ClaimFinalizers(ClaimProtection), BoundTo("a")), known: live(), options: on, want: "C11 Nothing"},
		{name: "F2 it has no such finalizer", claim: KnownClaim(ClaimBeingDeleted, ClaimFinalizers("theirs")), known: live(), options: on, want: "C12 Nothing"},
	})
}

func TestF3AVolumeInUse(t *testing.T) {
	on := decision.Options{Protection: decision.ProtectionOn}
	leaving := func(edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume("a", append([]VolumeEdit{BeingDeleted, VolumeFinalizers(VolumeProtection, "theirs")}, edits...)...)
	}
	goes := "F3 UpdateVolume pv/a: -finalizer kubernetes.io/pv-protection"
	bound, released := InPhase(corev1.VolumeBound), InPhase(corev1.VolumeReleased)
	runDecisions(t, []decisionTest{
		{name: "F3 off: not ours", volume: leaving(), want: "V1 Nothing"},
		{name: "F3 Available", volume: leaving(), options: on, want: goes},
		{name: "F3 X7 malformed", volume: leaving(unsized), options: on, want: goes},
		{name: "F3 in use though its phase does not say so: Bound first", volume: leaving(BoundToClaim, InPhase(corev1.VolumePending)), known: Knowing(KnownClaim(BoundTo("a"))), options: on,
			want: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "F3 Released", volume: leaving(BoundToClaim, released), options: on, want: goes},
		{name: "F3 Failed", volume: leaving(BoundToClaim, InPhase(corev1.VolumeFailed)), options: on, want: goes},
		{name: "F3 Released, its provisioner is awaited", volume: leaving(BoundToClaim, released, VolumeNote(ProvisionedBy, "csi.example.com"), WithPolicy(corev1.PersistentVolumeReclaimDelete)), options: on, want: goes},
		{name: "F3 Bound", volume: leaving(BoundToClaim, bound), known: Knowing(KnownClaim(BoundTo("a"))), options: on, want: "V2 Nothing"},
		{name: "F3 Bound, its claim gone: Released first", volume: leaving(BoundToClaim, bound), known: Proving(decision.Snapshot{}, DataKey), options: on, want: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "F3 about to be bound no more", volume: leaving(BoundToClaim), known: Knowing(KnownClaim()), options: on, want: goes},
		{name: "F3 not being deleted", volume: KnownVolume("a", VolumeFinalizers(VolumeProtection)), options: on, want: "V1 Nothing"},
		{name: "F3 it has no such finalizer", volume: KnownVolume("a", BeingDeleted), options: on, want: "V1 Nothing"},
	})
}
