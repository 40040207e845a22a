package decision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/storageclass"
)

func TestR6DeletionFinalizers(t *testing.T) {
	const inTree, external = "kubernetes.io/glusterfs", "csi.example.com"
	remove, retain, recycle := corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle
	made := func(by string, policy corev1.PersistentVolumeReclaimPolicy, finalizers ...string) *corev1.PersistentVolume {
		return KnownVolume("a", VolumeNote(ProvisionedBy, by), WithPolicy(policy), VolumeFinalizers(finalizers...))
	}
	write := func(diff string) string { return "R6 UpdateVolume pv/a: " + diff }
	gets, loses := "+finalizer "+InTreeFinalizer, "-finalizer "+InTreeFinalizer
	migrated := made("kubernetes.io/aws-ebs", remove, InTreeFinalizer, ExternalFinalizer)
	migrated.Annotations[MigratedTo] = "ebs.csi.aws.com"
	back := made("kubernetes.io/aws-ebs", remove, ExternalFinalizer)
	deleted := func(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
		BeingDeleted(volume)
		return volume
	}
	runDecisions(t, []decisionTest{
		{name: "R6 nobody made it: hands off", volume: KnownVolume("a", WithPolicy(remove), VolumeFinalizers(InTreeFinalizer)), expected: "V1 Nothing"},
		{name: "R6 in-tree, Delete", volume: made(inTree, remove), expected: write(gets)},
		{name: "R6 in-tree, Delete: it has it", volume: made(inTree, remove, InTreeFinalizer), expected: "V1 Nothing"},
		{name: "R6 in-tree, Retain", volume: made(inTree, retain, InTreeFinalizer, "theirs"), expected: write(loses)},
		{name: "R6 in-tree, Recycle", volume: made(inTree, recycle, InTreeFinalizer), expected: write(loses)},
		{name: "R6 in-tree, Retain: it has none", volume: made(inTree, retain), expected: "V1 Nothing"},
		{name: "R6 in-tree: the external one goes", volume: made(inTree, remove, ExternalFinalizer), expected: write("-finalizer " + ExternalFinalizer + " " + gets)},
		{name: "R6 migrated: ours goes, the external one stays", volume: migrated, expected: write(loses)},
		{name: "R6 G2 not migrated any more: the other way round", volume: back, options: decision.Options{Migrations: storageclass.Migrations{}}, expected: write("-finalizer " + ExternalFinalizer + " " + gets)},
		{name: "R6 another name: hands off", volume: made(external, remove, ExternalFinalizer), expected: "V1 Nothing"},
		{name: "R6 another name, Retain: hands off", volume: made(external, retain, InTreeFinalizer), expected: "V1 Nothing"},
		{name: "R6 X10 nobody made it, Retain: ours does not keep one that is being deleted", volume: KnownVolume("a", WithPolicy(retain), VolumeFinalizers("theirs", InTreeFinalizer), BeingDeleted), expected: write(loses)},
		{name: "R6 X10 so it is with another name", volume: deleted(made(external, retain, InTreeFinalizer, ExternalFinalizer)), expected: write(loses)},
		{name: "R6 being deleted: nothing is added", volume: deleted(made(inTree, remove)), expected: "V1 Nothing"},
		{name: "R6 X7 an unknown policy: left as it is", volume: made(inTree, "Burn", InTreeFinalizer), expected: "V1 Nothing"},
	})
}

func TestF1Protection(t *testing.T) {
	on := decision.Options{Protection: decision.ProtectionOn}
	guards, guardsVolume := "F1 UpdateClaim pvc/default/data: +finalizer kubernetes.io/pvc-protection", "F1 UpdateVolume pv/a: +finalizer kubernetes.io/pv-protection"
	runDecisions(t, []decisionTest{
		{name: "F1 a claim", claim: KnownClaim(), known: Knowing(KnownVolume("a")), options: on, expected: guards},
		{name: "F1 beside others' finalizers", claim: KnownClaim(ClaimFinalizers("theirs")), options: on, expected: guards},
		{name: "F1 a claim that has it", claim: KnownClaim(ClaimFinalizers(ClaimProtection), Naming("a")), options: on, expected: "C6 Wait"},
		{name: "F1 off", claim: KnownClaim(Naming("a")), expected: "C6 Wait"},
		{name: "F1 A5 a claim being deleted", claim: KnownClaim(ClaimBeingDeleted), options: on, expected: "C12 Nothing"},
		{name: "F1 G2 in one write", claim: KnownClaim(ClaimNote(Provisioner, "kubernetes.io/cinder")), options: on,
			expected: "G2 UpdateClaim pvc/default/data: +annotation pv.kubernetes.io/migrated-to=cinder.csi.openstack.org +finalizer kubernetes.io/pvc-protection"},

		{name: "F1 a volume", volume: KnownVolume("a"), options: on, expected: guardsVolume},
		{name: "F1 a volume that has it", volume: KnownVolume("a", VolumeFinalizers(VolumeProtection)), options: on, expected: "V1 Nothing"},
		{name: "F1 a volume, off", volume: KnownVolume("a"), expected: "V1 Nothing"},
		{name: "F1 A5 a volume being deleted", volume: KnownVolume("a", BeingDeleted), options: on, expected: "V1 Nothing"},
		{name: "F1 R6 in one write", volume: KnownVolume("a", VolumeNote(ProvisionedBy, "kubernetes.io/glusterfs"), WithPolicy(corev1.PersistentVolumeReclaimDelete)), options: on,
			expected: "F1 UpdateVolume pv/a: +finalizer kubernetes.io/pv-controller +finalizer kubernetes.io/pv-protection"},
	})
}
