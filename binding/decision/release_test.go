package decision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/reclaim"
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
		{name: "R1 migrated: its driver's", volume: Orphan(remove, VolumeNote(MigratedTo, "ebs.csi.aws.com")), known: absent, expected: "R3 Wait", says: []string{"ebs.csi.aws.com"}},
		{name: "R1 by a table of one's own", volume: Orphan(remove, by("kubernetes.io/aws-ebs"), VolumeNote(MigratedTo, "ours.example.com")), known: absent, options: own, expected: "R3 Wait", says: []string{"ours.example.com"}},
		{name: "R1 migrated, to be recycled: not even pods are asked for", volume: Orphan(recycle, VolumeNote(MigratedTo, "ebs.csi.aws.com")), expected: "R3 Wait"},
		{name: "R2 Retain", volume: Orphan(corev1.PersistentVolumeReclaimRetain), expected: "R2 Nothing", says: []string{"Retain"}},
		{name: "R2 Retain, though provisioned", volume: Orphan(corev1.PersistentVolumeReclaimRetain, by("csi.example.com")), expected: "R2 Nothing"},
		{name: "R3 an external provisioner's: stand down", volume: Orphan(remove, by("csi.example.com")), expected: "R3 Wait", says: []string{"csi.example.com"}},
		{name: "R3 it is never marked Failed, whatever its source", volume: Orphan(remove, by("csi.example.com")), known: absent, expected: "R3 Wait"},
		{name: "R3 no provisioner: a CSI volume's is its driver", volume: Orphan(remove, csi), known: absent, expected: "R3 Wait", events: []string{"Warning VolumeFailedDelete pv/a"}, says: []string{"csi.example.com"}},
		{name: "R3 an in-tree provisioner that is no more: Failed", volume: Orphan(remove, by("kubernetes.io/aws-ebs"), VolumeFinalizers(InTreeFinalizer)), known: absent, options: noneMigrated,
			expected: "R3 " + fails("VolumeFailedDelete", `no deleter for provisioner \"kubernetes.io/aws-ebs\" is registered`),
			events:   failedDelete, says: []string{"kubernetes.io/aws-ebs"}},
		{name: "R3 nobody deletes its source: read the claim first", volume: Orphan(remove), expected: "V3 Read pvc/default/data", events: nil},
		{name: "R3 nobody deletes its source: Failed", volume: Orphan(remove), known: absent, expected: "R3 " + fails("VolumeFailedDelete", deleter), events: failedDelete, says: []string{"hostPath"}},
		{name: "R3 X8 another has such a hook, and says why it failed", volume: Orphan(remove, FailedFor("out of space"), VolumeNote(reclaim.AnnouncementAnnotation, `{"by":"another","token":5}`)), known: absent,
			expected: "R3 Wait", says: []string{"hostPath"}, retry: decision.RetryBackoff},
		{name: "R3 W6 Failed is tried again", volume: Orphan(remove, FailedFor("no deleter for hostPath volumes is registered")), known: absent, expected: "R3 Wait", says: []string{"hostPath"}, retry: decision.RetryBackoff},
		{name: "R3 an empty provisioned-by is none", volume: Orphan(remove, by("")), known: absent, expected: "R3 " + fails("VolumeFailedDelete", deleter), events: failedDelete},

		{name: "R4 pods are not known: list them", volume: Orphan(recycle), known: absent, expected: "R4 Read pods/default"},
		{name: "R4 a pod that has not finished", volume: Orphan(recycle), known: withPods(PodUsing("web-1"), PodUsing("web-0", Scheduled), unused),
			expected: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: []string{"Volume is used by pods: default/web-0, default/web-1"}, retry: decision.RetryBackoff},
		{name: "R4 a pod holds it up before the claim is read", volume: Orphan(recycle), known: Knowing(PodUsing("web-0")),
			expected: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, retry: decision.RetryBackoff},
		{name: "R4 a finished pod does not count: no recycler, Failed", volume: Orphan(recycle), known: withPods(unused),
			expected: "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle, says: []string{"hostPath"}},
		{name: "R4 nor one of another claim", volume: Orphan(recycle), known: withPods(podOf("other")),
			expected: "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle},
		{name: "R4 nor one without a node while a claim of that name is there again", volume: Orphan(recycle),
			known:    Proving(Knowing(PodUsing("web-0"), KnownClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })), DataKey),
			expected: "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle},
		{name: "R4 W6 Failed is tried again", volume: Orphan(recycle, FailedFor("no recycler for hostPath volumes is registered")), known: withPods(unused), expected: "R4 Wait", retry: decision.RetryBackoff},

		{name: "R5 X7 an unknown policy: read the claim first", volume: Orphan("Burn"), expected: "V3 Read pvc/default/data"},
		{name: "R5 X7 an unknown policy: Failed", volume: Orphan("Burn"), known: absent,
			expected: "R5 " + fails("VolumeUnknownReclaimPolicy", `persistentVolumeReclaimPolicy \"Burn\" is unknown`),
			events:   []string{"Warning VolumeUnknownReclaimPolicy pv/a"}, says: []string{"Burn"}},
		{name: "R5 Failed: only a change of it helps", volume: Orphan("Burn", FailedFor(`persistentVolumeReclaimPolicy "Burn" is unknown`)), expected: "R5 Wait"},
		{name: "R5 Retain takes Failed as it is", volume: Orphan(corev1.PersistentVolumeReclaimRetain, InPhase(corev1.VolumeFailed)), expected: "R2 Nothing"},
	})
}

func TestF2AClaimInUse(t *testing.T) {
	on := decision.Options{Protection: decision.ProtectionOn}
	leaving := KnownClaim(ClaimBeingDeleted, ClaimFinalizers("theirs", ClaimProtection), BoundTo("a"))
	pending := leaving.DeepCopy()
	pending.Status.Phase = corev1.ClaimPending
	lost, without := leaving.DeepCopy(), pending.DeepCopy()
	lost.Status.Phase, without.Spec.VolumeName = corev1.ClaimLost, ""
	lists, goes := "F2 Read pods/default", "F2 UpdateClaim pvc/default/data: -finalizer kubernetes.io/pvc-protection"
	holds := KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))
	live := func(objects ...obj.Object) decision.Snapshot {
		return Proving(Knowing(append(objects, holds)...), obj.VolumeKey("a"), obj.PodsKey("default"))
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
		{name: "F2 off: not ours", claim: leaving, known: live(), expected: "C11 Nothing"},
		{name: "F2 C11 its volume is read first, which may have no claimRef any more", claim: leaving, known: Knowing(holds), options: on, expected: "F2 Read pv/a"},
		{name: "F2 no pod known: list them", claim: leaving, known: Proving(Knowing(holds), obj.VolumeKey("a")), options: on, expected: lists},
		{name: "F2 a cache that knows only others proves nothing", claim: leaving, known: Proving(Knowing(holds, podOf("other")), obj.VolumeKey("a")), options: on, expected: lists},
		{name: "F2 a live list without one", claim: leaving, known: live(podOf("other")), options: on, expected: goes},
		{name: "F2 a live list of another namespace proves nothing", claim: leaving, known: Proving(Knowing(holds), obj.VolumeKey("a"), obj.PodsKey("apart")), options: on, expected: lists},
		{name: "F2 an empty live list", claim: leaving, known: live(), options: on, expected: goes},
		{name: "F2 a pod with a node uses it", claim: leaving, known: live(PodUsing("web-0", Scheduled)), options: on, expected: "C11 Nothing"},
		{name: "F2 that a cache knows one is enough", claim: leaving, known: Knowing(holds, PodUsing("web-0", Scheduled)), options: on, expected: "C11 Nothing"},
		{name: "F2 finished or not", claim: leaving, known: live(PodUsing("web-0", Scheduled, PodPhase(corev1.PodSucceeded))), options: on, expected: "C11 Nothing"},
		{name: "F2 one without a node does not", claim: leaving, known: live(PodUsing("web-0")), options: on, expected: goes},
		{name: "F2 an ephemeral volume of its owner", claim: scratch(ownedByPod), known: live(PodUsing("web", ephemeral, Scheduled)), options: on, expected: "C12 Nothing"},
		{name: "F2 not of another pod", claim: scratch(), known: live(PodUsing("web", ephemeral, Scheduled)), options: on, expected: scratchGoes},
		{name: "F2 not once the pod is shut down", claim: scratch(ownedByPod), known: live(PodUsing("web", ephemeral, Scheduled, shutDown)), options: on, expected: scratchGoes},
		{name: "F2 C11 no cache shows its volume", claim: leaving, known: Knowing(leaving), options: on, expected: "F2 Read pv/a"},
		{name: "F2 its volume is gone", claim: leaving, known: Proving(Knowing(leaving), obj.VolumeKey("a"), obj.PodsKey("default")), options: on, expected: goes},
		{name: "F2 it names a volume that it never had, as far as is known", claim: pending, known: Proving(Knowing(pending), obj.PodsKey("default")), options: on, expected: "F2 Read pv/a"},
		{name: "F2 M2 it has lost one, as a cache shows that", claim: lost, known: Proving(Knowing(lost, KnownVolume("a", RefersToStale)), obj.PodsKey("default")), options: on, expected: "F2 Read pv/a"},
		{name: "F2 it has none", claim: without, known: Proving(Knowing(without), obj.PodsKey("default")), options: on, expected: goes},
		{name: "F2 not being deleted", claim: KnownClaim(ClaimFinalizers(ClaimProtection), BoundTo("a")), known: live(), options: on, expected: "C11 Nothing"},
		{name: "F2 it has no such finalizer", claim: KnownClaim(ClaimBeingDeleted, ClaimFinalizers("theirs")), known: live(), options: on, expected: "C12 Nothing"},
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
		{name: "F3 off: not ours", volume: leaving(), expected: "V1 Nothing"},
		{name: "F3 Available", volume: leaving(), options: on, expected: goes},
		{name: "F3 X7 malformed", volume: leaving(unsized), options: on, expected: goes},
		{name: "F3 in use though its phase does not say so: Bound first", volume: leaving(BoundToClaim, InPhase(corev1.VolumePending)), known: Knowing(KnownClaim(BoundTo("a"))), options: on,
			expected: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "F3 Released", volume: leaving(BoundToClaim, released), options: on, expected: goes},
		{name: "F3 Failed", volume: leaving(BoundToClaim, InPhase(corev1.VolumeFailed)), options: on, expected: goes},
		{name: "F3 Released, its provisioner is awaited", volume: leaving(BoundToClaim, released, VolumeNote(ProvisionedBy, "csi.example.com"), WithPolicy(corev1.PersistentVolumeReclaimDelete)), options: on, expected: goes},
		{name: "F3 Bound", volume: leaving(BoundToClaim, bound), known: Knowing(KnownClaim(BoundTo("a"))), options: on, expected: "V2 Nothing"},
		{name: "F3 Bound, its claim gone: Released first", volume: leaving(BoundToClaim, bound), known: Proving(decision.Snapshot{}, DataKey), options: on, expected: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "F3 about to be bound no more", volume: leaving(BoundToClaim), known: Knowing(KnownClaim()), options: on, expected: goes},
		{name: "F3 not being deleted", volume: KnownVolume("a", VolumeFinalizers(VolumeProtection)), options: on, expected: "V1 Nothing"},
		{name: "F3 it has no such finalizer", volume: KnownVolume("a", BeingDeleted), options: on, expected: "V1 Nothing"},
	})
}

// F3, R8: a volume on which a deleter or recycler may be at work stays, whoever protects volumes beside this controller: one that is
// made under its name would not have the announcement.
func TestF3AVolumeWhoseStorageIsBeingReclaimed(t *testing.T) {
	const ours = reclaim.AnnouncementFinalizer
	on, off := Hooked(), Hooked()
	on.Protection = decision.ProtectionOn
	retain, recycle, remove := corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimDelete
	leaving := func(policy corev1.PersistentVolumeReclaimPolicy, edits ...VolumeEdit) *corev1.PersistentVolume {
		return Orphan(policy, append(edits, func(v *corev1.PersistentVolume) { BeingDeleted(v) })...)
	}
	both, bare := VolumeFinalizers(VolumeProtection, ours), VolumeFinalizers(VolumeProtection)
	another, own, scrubs := announcedBy("another", false), announcedBy("me", false), recyclerAnnounced
	removed := func(v *corev1.PersistentVolume) { v.Annotations = nil }
	young := Proving(decision.Snapshot{}, DataKey, AKey, obj.PodsKey("default"), detached)
	young.Now, young.Announced = metav1.Unix(10_000, 0), map[obj.Key]metav1.Time{AKey: metav1.Unix(9_990, 0)}
	old := young
	old.Announced = map[obj.Key]metav1.Time{AKey: metav1.Unix(9_000, 0)}
	answered := func(err error) decision.Snapshot {
		return Answering(young, decision.Answer{Of: decision.UpdateVolume, For: "uid-of-volume", Token: 7}, decision.Answer{Of: decision.RunRecycler, Hook: "hostPath", For: "uid-of-volume", Token: 7, Err: err})
	}
	goes, letsBoth := "F3 UpdateVolume pv/a: -finalizer "+ours, "F3 UpdateVolume pv/a: -finalizer "+VolumeProtection+" -finalizer "+ours
	told, scrubTold := []string{"Warning VolumeFailedDelete pv/a"}, []string{"Warning VolumeFailedRecycle pv/a"}
	nobody := decision.Options{Identity: "me"}
	failed := FailedFor("no recycler for hostPath volumes is registered")
	runDecisions(t, []decisionTest{
		{name: "F3 R8 another may be at work, and kube-controller-manager has taken its protection off", volume: leaving(retain, another), known: young, options: off, expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "F3 R8 so it is with our protection", volume: leaving(recycle, another, both), known: young, options: on, expected: "R8 Wait", retry: decision.RetryAfter},
		{name: "F3 R8 also where nothing but that keeps it", volume: leaving(retain, another, bare), known: old, options: on, expected: "R8 Wait", events: told},
		{name: "F3 R8 whatever its controller has: it cannot recycle, and tries again", volume: leaving(recycle, another, failed), known: young, options: nobody, expected: "R4 Wait", events: told, retry: decision.RetryBackoff},
		{name: "F3 R8 a driver's is waited for too", volume: leaving(corev1.PersistentVolumeReclaimDelete, another, VolumeNote(MigratedTo, "csi.example.com")), known: young, options: off, expected: "R3 Wait", events: told},
		{name: "F3 R8 and where pv-controller keeps it, that is told", volume: leaving(corev1.PersistentVolumeReclaimDelete, another, VolumeNote(MigratedTo, "csi.example.com"), VolumeFinalizers(reclaim.InTreeFinalizer)), known: young, options: off, expected: "R3 Wait", events: told},
		{name: "F3 what this controller has called before may go on", volume: leaving(retain, own), known: young, options: off, expected: "R8 Wait", events: told},
		{name: "F3 Rh it goes on", volume: leaving(recycle, scrubs, both), known: answered(Meaning(hooks.InProgress)), options: on, expected: "Rh Wait", retry: decision.RetryBackoff},
		{name: "F3 in another claim's hands it does not go either", volume: leaving(retain, own, InPhase(corev1.VolumeBound)), known: Knowing(KnownClaim(BoundTo("a"))), options: off, expected: "R8 Wait", events: told},
		{name: "F3 seen for however long: nobody knows what goes on", volume: leaving(retain, another), known: old, options: off, expected: "R8 Wait", events: told},
		{name: "F3 our own too", volume: leaving(retain, own), known: old, options: off, expected: "R8 Wait", events: told},
		{name: "F3 so does our protection", volume: leaving(retain, scrubs, both), known: old, options: on, expected: "R8 Wait", events: scrubTold},
		{name: "F3 and where that is off", volume: leaving(retain, scrubs, both), known: old, options: off, expected: "R8 Wait", events: scrubTold},
		{name: "F3 R8 the recycler failed just now, which is no end of it", volume: leaving(recycle, scrubs, both, FailedFor("the disk is broken")), known: answered(ErrBroken), options: on, expected: "R4 Wait", events: scrubTold, retry: decision.RetryBackoff},
		{name: "F3 R3 the storage is deleted", volume: leaving(retain, announcedBy("another", true), both), known: young, options: on, expected: letsBoth},
		{name: "F3 R8 a person has removed the announcement of one that is being deleted", volume: leaving(retain, own, removed), known: young, options: off, expected: goes},
		{name: "R8 or of another: the finalizer goes", volume: Orphan(retain, own, removed), options: off, expected: "R8 UpdateVolume pv/a: -finalizer " + ours},
		{name: "R8 what a person says is done needs none", volume: Orphan(corev1.PersistentVolumeReclaimDelete, announcedBy("me", true), VolumeFinalizers(ours)), options: off, expected: "R8 UpdateVolume pv/a: -finalizer " + ours},
		{name: "R8 none is added to what is being deleted: it is not scrubbed", volume: leaving(recycle, removed, bare), known: young, options: off, expected: "R4 Wait", events: scrubTold},
		{name: "R8 nor is its storage deleted", volume: leaving(remove, removed, bare), known: young, options: off, expected: "R3 Wait", events: told},
		{name: "R8 nor by a call that was announced before", volume: leaving(remove, own, bare), known: young, options: off, expected: "R3 Wait", events: told},
		{name: "R8 F3 it goes, and that is told", volume: leaving(recycle, removed, bare), known: young, options: on, expected: "F3 UpdateVolume pv/a: -finalizer " + VolumeProtection, events: scrubTold},
		{name: "R8 R6 what keeps it until its storage is deleted suffices", volume: leaving(remove, removed, VolumeFinalizers(reclaim.InTreeFinalizer)), known: young, options: off,
			expected: "R8 UpdateVolume pv/a: +annotation " + reclaim.AnnouncementAnnotation + `="{\"by\":\"me\",\"token\":10000000000000,\"seconds\":120}"`},
		{name: "R8 V4 nor taken off while it stands", volume: Orphan(retain, scrubs), known: old, options: off, expected: "R8 Wait", events: scrubTold},
	}, func(row *decisionTest) { row.fresh = true })
}
