package binding_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/storageclass"
)

func TestR6DeletionFinalizers(t *testing.T) {
	const inTree, external = "kubernetes.io/glusterfs", "csi.example.com"
	remove, retain, recycle := corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle
	made := func(by string, policy corev1.PersistentVolumeReclaimPolicy, finalizers ...string) *corev1.PersistentVolume {
		return knownVolume("a", volumeNote(provisionedBy, by), withPolicy(policy), volumeFinalizers(finalizers...))
	}
	write := func(diff string) string { return "R6 UpdateVolume pv/a: " + diff }
	gets, loses := "+finalizer "+inTreeFinalizer, "-finalizer "+inTreeFinalizer
	migrated := made("kubernetes.io/aws-ebs", remove, inTreeFinalizer, externalFinalizer)
	migrated.Annotations[migratedTo] = "ebs.csi.aws.com"
	back := made("kubernetes.io/aws-ebs", remove, externalFinalizer)
	leaving := made(inTree, remove)
	beingDeleted(leaving)
	runDecisions(t, []decision{
		{name: "R6 nobody made it: hands off", volume: knownVolume("a", withPolicy(remove), volumeFinalizers(inTreeFinalizer)), want: "V1 Nothing"},
		{name: "R6 in-tree, Delete", volume: made(inTree, remove), want: write(gets)},
		{name: "R6 in-tree, Delete: it has it", volume: made(inTree, remove, inTreeFinalizer), want: "V1 Nothing"},
		{name: "R6 in-tree, Retain", volume: made(inTree, retain, inTreeFinalizer, "theirs"), want: write(loses)},
		{name: "R6 in-tree, Recycle", volume: made(inTree, recycle, inTreeFinalizer), want: write(loses)},
		{name: "R6 in-tree, Retain: it has none", volume: made(inTree, retain), want: "V1 Nothing"},
		{name: "R6 in-tree: the external one goes", volume: made(inTree, remove, externalFinalizer), want: write("-finalizer " + externalFinalizer + " " + gets)},
		{name: "R6 migrated: ours goes, the external one stays", volume: migrated, want: write(loses)},
		{name: "R6 G2 not migrated any more: the other way round", volume: back, rules: binding.Rules{Migrations: storageclass.Migrations{}}, want: write("-finalizer " + externalFinalizer + " " + gets)},
		{name: "R6 another name: hands off", volume: made(external, remove, externalFinalizer), want: "V1 Nothing"},
		{name: "R6 another name, Retain: hands off", volume: made(external, retain, inTreeFinalizer), want: "V1 Nothing"},
		{name: "R6 being deleted: nothing is added", volume: leaving, want: "V1 Nothing"},
		{name: "R6 X7 an unknown policy: left as it is", volume: made(inTree, "Burn", inTreeFinalizer), want: "V1 Nothing"},
	})
}

func TestF1Protection(t *testing.T) {
	on := binding.Rules{Protection: binding.ProtectionOn}
	guards, guardsVolume := "F1 UpdateClaim pvc/default/data: +finalizer kubernetes.io/pvc-protection", "F1 UpdateVolume pv/a: +finalizer kubernetes.io/pv-protection"
	runDecisions(t, []decision{
		{name: "F1 a claim", claim: knownClaim(), known: knowing(knownVolume("a")), rules: on, want: guards},
		{name: "F1 beside others' finalizers", claim: knownClaim(claimFinalizers("theirs")), rules: on, want: guards},
		{name: "F1 a claim that has it", claim: knownClaim(claimFinalizers(claimProtection), naming("a")), rules: on, want: "C6 Wait"},
		{name: "F1 off", claim: knownClaim(naming("a")), want: "C6 Wait"},
		{name: "F1 A5 a claim being deleted", claim: knownClaim(claimBeingDeleted), rules: on, want: "C12 Nothing"},
		{name: "F1 G2 in one write", claim: knownClaim(claimNote(provisioner, "kubernetes.io/cinder")), rules: on,
			want: "G2 UpdateClaim pvc/default/data: +annotation pv.kubernetes.io/migrated-to=cinder.csi.openstack.org +finalizer kubernetes.io/pvc-protection"},

		{name: "F1 a volume", volume: knownVolume("a"), rules: on, want: guardsVolume},
		{name: "F1 a volume that has it", volume: knownVolume("a", volumeFinalizers(volumeProtection)), rules: on, want: "V1 Nothing"},
		{name: "F1 a volume, off", volume: knownVolume("a"), want: "V1 Nothing"},
		{name: "F1 A5 a volume being deleted", volume: knownVolume("a", beingDeleted), rules: on, want: "V1 Nothing"},
		{name: "F1 R6 in one write", volume: knownVolume("a", volumeNote(provisionedBy, "kubernetes.io/glusterfs"), withPolicy(corev1.PersistentVolumeReclaimDelete)), rules: on,
			want: "F1 UpdateVolume pv/a: +finalizer kubernetes.io/pv-controller +finalizer kubernetes.io/pv-protection"},
	})
}
