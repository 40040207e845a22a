package binding_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// orphan is Released, and its claim is gone.
func orphan(policy corev1.PersistentVolumeReclaimPolicy, edits ...volumeEdit) *corev1.PersistentVolume {
	return knownVolume("a", append([]volumeEdit{held, inPhase(corev1.VolumeReleased), withPolicy(policy), onHostPath}, edits...)...)
}

func TestReclaimOfAReleasedVolume(t *testing.T) {
	absent := proving(binding.Snapshot{}, dataKey)
	withPods := func(pods ...obj.Object) binding.Snapshot { return proving(knowing(pods...), dataKey) }
	remove, recycle := corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle
	by := func(name string) volumeEdit { return volumeNote(provisionedBy, name) }
	csi := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"}}
	}
	fails := func(reason, why string) string {
		return `UpdateVolumeStatus pv/a: status.message="the volume cannot be reclaimed: ` + why + `" status.phase=Failed status.reason=` + reason
	}
	failedDelete, failedRecycle := []string{"Warning VolumeFailedDelete pv/a"}, []string{"Warning VolumeFailedRecycle pv/a"}
	unused := podUsing("done", podPhase(corev1.PodSucceeded))
	deleter := "no deleter for hostPath volumes is registered"
	own := binding.Rules{Migrations: storageclass.Migrations{"kubernetes.io/aws-ebs": "ours.example.com"}}
	noneMigrated := binding.Rules{Migrations: storageclass.Migrations{}}
	runDecisions(t, []decision{
		{name: "R1 migrated: its driver's", volume: orphan(remove, volumeNote(migratedTo, "ebs.csi.aws.com")), known: absent, want: "R3 Wait", says: []string{"ebs.csi.aws.com"}},
		{name: "R1 by a table of one's own", volume: orphan(remove, by("kubernetes.io/aws-ebs"), volumeNote(migratedTo, "ours.example.com")), known: absent, rules: own, want: "R3 Wait", says: []string{"ours.example.com"}},
		{name: "R1 migrated, to be recycled: not even pods are asked for", volume: orphan(recycle, volumeNote(migratedTo, "ebs.csi.aws.com")), want: "R3 Wait"},
		{name: "R2 Retain", volume: orphan(corev1.PersistentVolumeReclaimRetain), want: "R2 Nothing", says: []string{"Retain"}},
		{name: "R2 Retain, though provisioned", volume: orphan(corev1.PersistentVolumeReclaimRetain, by("csi.example.com")), want: "R2 Nothing"},
		{name: "R3 an external provisioner's: stand down", volume: orphan(remove, by("csi.example.com")), want: "R3 Wait", says: []string{"csi.example.com"}},
		{name: "R3 it is never marked Failed, whatever its source", volume: orphan(remove, by("csi.example.com")), known: absent, want: "R3 Wait"},
		{name: "R3 no provisioner: a CSI volume's is its driver", volume: orphan(remove, csi), known: absent, want: "R3 Wait", says: []string{"csi.example.com"}},
		{name: "R3 an in-tree provisioner that is no more: Failed", volume: orphan(remove, by("kubernetes.io/aws-ebs"), volumeFinalizers(inTreeFinalizer)), known: absent, rules: noneMigrated,
			want:   "R3 " + fails("VolumeFailedDelete", `no deleter for provisioner \"kubernetes.io/aws-ebs\" is registered`),
			events: failedDelete, says: []string{"kubernetes.io/aws-ebs"}},
		{name: "R3 nobody deletes its source: read the claim first", volume: orphan(remove), want: "V3 Read pvc/default/data", events: nil},
		{name: "R3 nobody deletes its source: Failed", volume: orphan(remove), known: absent, want: "R3 " + fails("VolumeFailedDelete", deleter), events: failedDelete, says: []string{"hostPath"}},
		{name: "R3 W6 Failed is tried again", volume: orphan(remove, failedFor("no deleter for hostPath volumes is registered")), known: absent, want: "R3 Wait", says: []string{"hostPath"}, retry: binding.RetryBackoff},
		{name: "R3 an empty provisioned-by is none", volume: orphan(remove, by("")), known: absent, want: "R3 " + fails("VolumeFailedDelete", deleter), events: failedDelete},

		{name: "R4 pods are not known: list them", volume: orphan(recycle), known: absent, want: "R4 Read pods/default"},
		{name: "R4 a pod that has not finished", volume: orphan(recycle), known: withPods(podUsing("web-1"), podUsing("web-0", scheduled), unused),
			want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, says: []string{"Volume is used by pods: default/web-0, default/web-1"}, retry: binding.RetryBackoff},
		{name: "R4 a pod holds it up before the claim is read", volume: orphan(recycle), known: knowing(podUsing("web-0")),
			want: "R4 Wait", events: []string{"Normal VolumeFailedRecycle pv/a"}, retry: binding.RetryBackoff},
		{name: "R4 a finished pod does not count: no recycler, Failed", volume: orphan(recycle), known: withPods(unused),
			want: "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle, says: []string{"hostPath"}},
		{name: "R4 nor one of another claim", volume: orphan(recycle), known: withPods(podOf("other")),
			want: "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle},
		{name: "R4 nor any while a claim of that name is there again", volume: orphan(recycle),
			known: proving(knowing(podUsing("web-0"), knownClaim(func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-9" })), dataKey),
			want:  "R4 " + fails("VolumeFailedRecycle", "no recycler for hostPath volumes is registered"), events: failedRecycle},
		{name: "R4 W6 Failed is tried again", volume: orphan(recycle, failedFor("no recycler for hostPath volumes is registered")), known: withPods(unused), want: "R4 Wait", retry: binding.RetryBackoff},

		{name: "R5 X7 an unknown policy: read the claim first", volume: orphan("Burn"), want: "V3 Read pvc/default/data"},
		{name: "R5 X7 an unknown policy: Failed", volume: orphan("Burn"), known: absent,
			want:   "R5 " + fails("VolumeUnknownReclaimPolicy", `persistentVolumeReclaimPolicy \"Burn\" is unknown`),
			events: []string{"Warning VolumeUnknownReclaimPolicy pv/a"}, says: []string{"Burn"}},
		{name: "R5 Failed: only a change of it helps", volume: orphan("Burn", failedFor(`persistentVolumeReclaimPolicy "Burn" is unknown`)), want: "R5 Wait"},
		{name: "R5 Retain takes Failed as it is", volume: orphan(corev1.PersistentVolumeReclaimRetain, inPhase(corev1.VolumeFailed)), want: "R2 Nothing"},
	})
}

func TestF2AClaimInUse(t *testing.T) {
	on := binding.Rules{Protection: binding.ProtectionOn}
	leaving := knownClaim(claimBeingDeleted, claimFinalizers("theirs", claimProtection), boundTo("a"))
	lists, goes := "F2 Read pods/default", "F2 UpdateClaim pvc/default/data: -finalizer kubernetes.io/pvc-protection"
	holds := knownVolume("a", held, inPhase(corev1.VolumeBound))
	live := func(objects ...obj.Object) binding.Snapshot {
		return proving(knowing(append(objects, holds)...), obj.PodsKey("default"))
	}
	ephemeral := func(p *corev1.Pod) {
		p.Name, p.Spec.Volumes = "web", []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	scratch := func(edits ...claimEdit) *corev1.PersistentVolumeClaim {
		return knownClaim(append([]claimEdit{claimBeingDeleted, claimFinalizers(claimProtection), named("web-scratch")}, edits...)...)
	}
	ownedByPod := func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web", UID: "uid-of-pod", Controller: new(true)}}
	}
	shutDown := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Unix(1_700_000_000, 0)), new(int64)
	}
	scratchGoes := "F2 UpdateClaim pvc/default/web-scratch: -finalizer kubernetes.io/pvc-protection"
	runDecisions(t, []decision{
		{name: "F2 off: not ours", claim: leaving, known: live(), want: "C11 Nothing"},
		{name: "F2 no pod known: list them", claim: leaving, known: knowing(holds), rules: on, want: lists},
		{name: "F2 a cache that knows only others proves nothing", claim: leaving, known: knowing(holds, podOf("other")), rules: on, want: lists},
		{name: "F2 a live list without one", claim: leaving, known: live(podOf("other")), rules: on, want: goes},
		{name: "F2 a live list of another namespace proves nothing", claim: leaving, known: proving(knowing(holds), obj.PodsKey("apart")), rules: on, want: lists},
		{name: "F2 an empty live list", claim: leaving, known: live(), rules: on, want: goes},
		{name: "F2 a pod with a node uses it", claim: leaving, known: live(podUsing("web-0", scheduled)), rules: on, want: "C11 Nothing"},
		{name: "F2 that a cache knows one is enough", claim: leaving, known: knowing(holds, podUsing("web-0", scheduled)), rules: on, want: "C11 Nothing"},
		{name: "F2 finished or not", claim: leaving, known: live(podUsing("web-0", scheduled, podPhase(corev1.PodSucceeded))), rules: on, want: "C11 Nothing"},
		{name: "F2 one without a node does not", claim: leaving, known: live(podUsing("web-0")), rules: on, want: goes},
		{name: "F2 an ephemeral volume of its owner", claim: scratch(ownedByPod), known: live(podUsing("web", ephemeral, scheduled)), rules: on, want: "C12 Nothing"},
		{name: "F2 not of another pod", claim: scratch(), known: live(podUsing("web", ephemeral, scheduled)), rules: on, want: scratchGoes},
		{name: "F2 not once the pod is shut down", claim: scratch(ownedByPod), known: live(podUsing("web", ephemeral, scheduled, shutDown)), rules: on, want: scratchGoes},
		{name: "F2 not being deleted", claim: knownClaim(claimFinalizers(claimProtection), boundTo("a")), known: live(), rules: on, want: "C11 Nothing"},
		{name: "F2 it has no such finalizer", claim: knownClaim(claimBeingDeleted, claimFinalizers("theirs")), known: live(), rules: on, want: "C12 Nothing"},
	})
}

func TestF3AVolumeInUse(t *testing.T) {
	on := binding.Rules{Protection: binding.ProtectionOn}
	leaving := func(edits ...volumeEdit) *corev1.PersistentVolume {
		return knownVolume("a", append([]volumeEdit{beingDeleted, volumeFinalizers(volumeProtection, "theirs")}, edits...)...)
	}
	goes := "F3 UpdateVolume pv/a: -finalizer kubernetes.io/pv-protection"
	bound, released := inPhase(corev1.VolumeBound), inPhase(corev1.VolumeReleased)
	runDecisions(t, []decision{
		{name: "F3 off: not ours", volume: leaving(), want: "V1 Nothing"},
		{name: "F3 Available", volume: leaving(), rules: on, want: goes},
		{name: "F3 X7 malformed", volume: leaving(unsized), rules: on, want: goes},
		{name: "F3 in use though its phase does not say so: Bound first", volume: leaving(held, inPhase(corev1.VolumePending)), known: knowing(knownClaim(boundTo("a"))), rules: on,
			want: "V2 UpdateVolumeStatus pv/a: status.phase=Bound"},
		{name: "F3 Released", volume: leaving(held, released), rules: on, want: goes},
		{name: "F3 Failed", volume: leaving(held, inPhase(corev1.VolumeFailed)), rules: on, want: goes},
		{name: "F3 Released, its provisioner is awaited", volume: leaving(held, released, volumeNote(provisionedBy, "csi.example.com"), withPolicy(corev1.PersistentVolumeReclaimDelete)), rules: on, want: goes},
		{name: "F3 Bound", volume: leaving(held, bound), known: knowing(knownClaim(boundTo("a"))), rules: on, want: "V2 Nothing"},
		{name: "F3 Bound, its claim gone: Released first", volume: leaving(held, bound), known: proving(binding.Snapshot{}, dataKey), rules: on, want: "V3 UpdateVolumeStatus pv/a: status.phase=Released"},
		{name: "F3 about to be bound no more", volume: leaving(held), known: knowing(knownClaim()), rules: on, want: goes},
		{name: "F3 not being deleted", volume: knownVolume("a", volumeFinalizers(volumeProtection)), rules: on, want: "V1 Nothing"},
		{name: "F3 it has no such finalizer", volume: knownVolume("a", beingDeleted), rules: on, want: "V1 Nothing"},
	})
}
