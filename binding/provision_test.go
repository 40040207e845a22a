package binding_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding"
	"github.com/pvbind/pvbind/storageclass"
)

func TestProvisioning(t *testing.T) {
	asks := knownClaim(askingClass(new("fast")))
	asked := func(by string, edits ...claimEdit) *corev1.PersistentVolumeClaim {
		return knownClaim(append([]claimEdit{askingClass(new("fast")), claimNote(provisioner, by), claimNote(betaProvisioner, by)}, edits...)...)
	}
	writes := func(by string) string {
		return "P3 UpdateClaim pvc/default/data: +annotation " + betaProvisioner + "=" + by + " +annotation " + provisioner + "=" + by
	}
	failed, waits := []string{"Warning ProvisioningFailed pvc/default/data"}, []string{"Normal ExternalProvisioning pvc/default/data"}
	fast := func(by string) binding.Snapshot { return knowing(classOf("fast", by)) }
	unmigrated := binding.Rules{Migrations: storageclass.Migrations{}}
	own := binding.Rules{Migrations: storageclass.Migrations{"kubernetes.io/ours": "ours.example.com"}}
	lost := claimPhase(corev1.ClaimLost)
	runDecisions(t, []decision{
		{name: "P1 the class does not exist", claim: asks, want: "P1 Wait", events: failed, says: []string{`"fast"`, "does not exist"}},
		{name: "P1 no-provisioner", claim: asks, known: fast("kubernetes.io/no-provisioner"), want: "P1 Wait", events: failed, says: []string{`"fast"`, "kubernetes.io/no-provisioner"}},
		{name: "P1 an empty provisioner", claim: asks, known: fast(""), want: "P1 Wait", events: failed, says: []string{`"fast"`}},
		{name: "P1 in-tree and not migrated", claim: asks, known: fast("kubernetes.io/glusterfs"), want: "P1 Wait", events: failed, says: []string{"kubernetes.io/glusterfs", `"fast"`}},
		{name: "P1 G1 an empty table migrates nothing", claim: asks, known: fast("kubernetes.io/aws-ebs"), rules: unmigrated, want: "P1 Wait", events: failed, says: []string{"kubernetes.io/aws-ebs"}},
		{name: "P1 C4 the phase stays as it is", claim: knownClaim(askingClass(new("fast")), lost), want: "P1 Wait", events: failed},

		{name: "P3 both annotations in one write", claim: asks, known: fast("csi.example.com"), want: writes("csi.example.com")},
		{name: "P3 C4 the phase stays as it is", claim: knownClaim(askingClass(new("fast")), lost), known: fast("csi.example.com"), want: writes("csi.example.com")},
		{name: "P3 by the beta class annotation", claim: knownClaim(claimNote(betaClass, "fast")), known: fast("csi.example.com"), want: writes("csi.example.com")},
		{name: "P3 G1 migrated: the driver is asked", claim: asks, known: fast("kubernetes.io/aws-ebs"), want: writes("ebs.csi.aws.com")},
		{name: "P3 G1 a table of one's own", claim: asks, known: fast("kubernetes.io/ours"), rules: own, want: writes("ours.example.com")},
		{name: "P3 asked: wait", claim: asked("csi.example.com"), known: fast("csi.example.com"), want: "P3 Wait", events: waits, says: []string{`"csi.example.com"`, "administrator"}},
		{name: "P3 asked of the driver: wait", claim: asked("ebs.csi.aws.com"), known: fast("kubernetes.io/aws-ebs"), want: "P3 Wait", events: waits, says: []string{"ebs.csi.aws.com"}},
		{name: "P3 only one of the two", claim: knownClaim(askingClass(new("fast")), claimNote(betaProvisioner, "csi.example.com")), known: fast("csi.example.com"),
			want: "P3 UpdateClaim pvc/default/data: +annotation " + provisioner + "=csi.example.com"},
		{name: "P3 only the other of the two", claim: knownClaim(askingClass(new("fast")), claimNote(provisioner, "csi.example.com")), known: fast("csi.example.com"),
			want: "P3 UpdateClaim pvc/default/data: +annotation " + betaProvisioner + "=csi.example.com"},
		{name: "P3 asked of somebody else", claim: asked("old.example.com"), known: fast("csi.example.com"),
			want: "P3 UpdateClaim pvc/default/data: annotation " + betaProvisioner + "=csi.example.com annotation " + provisioner + "=csi.example.com"},
		{name: "P3 G2 asked before it was migrated: migrated-to follows in the same write", claim: asked("kubernetes.io/aws-ebs", claimNote(migratedTo, "ebs.csi.aws.com")), known: fast("kubernetes.io/aws-ebs"),
			want: "P3 UpdateClaim pvc/default/data: -annotation pv.kubernetes.io/migrated-to annotation " + betaProvisioner + "=ebs.csi.aws.com annotation " + provisioner + "=ebs.csi.aws.com"},
		{name: "P3 C1 what it made is bound", claim: asked("csi.example.com"), known: knowing(classOf("fast", "csi.example.com"), knownVolume("pvc-uid-1", ofClass("fast"), held)),
			want: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound"},
	})
}

func TestG2Migration(t *testing.T) {
	const ebs = "kubernetes.io/aws-ebs"
	unmigrated := binding.Rules{Migrations: storageclass.Migrations{}}
	own := binding.Rules{Migrations: storageclass.Migrations{"example.com/old": "new.example.com"}}
	claimGets := "G2 UpdateClaim pvc/default/data: "
	volumeGets := "G2 UpdateVolume pv/a: "
	made := func(by string, edits ...volumeEdit) *corev1.PersistentVolume {
		return knownVolume("a", append([]volumeEdit{volumeNote(provisionedBy, by)}, edits...)...)
	}
	available := "V1 Nothing"
	runDecisions(t, []decision{
		{name: "G2 a claim, before anything else", claim: knownClaim(claimNote(provisioner, ebs)), known: knowing(knownVolume("a")), want: claimGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim by the beta annotation", claim: knownClaim(claimNote(betaProvisioner, ebs)), want: claimGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim: the annotation before its beta", claim: knownClaim(claimNote(provisioner, "kubernetes.io/gce-pd"), claimNote(betaProvisioner, ebs)),
			want: claimGets + "+annotation pv.kubernetes.io/migrated-to=pd.csi.storage.gke.io"},
		{name: "G2 a claim of another driver", claim: knownClaim(claimNote(provisioner, ebs), claimNote(migratedTo, "wrong")), want: claimGets + "annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim that is not migrated any more", claim: knownClaim(claimNote(provisioner, ebs), claimNote(migratedTo, "ebs.csi.aws.com")), rules: unmigrated,
			want: claimGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a claim of a driver that is none", claim: knownClaim(claimNote(provisioner, "csi.example.com"), claimNote(migratedTo, "x")), want: claimGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a claim without a provisioner is left alone", claim: knownClaim(boundTo("a"), claimNote(migratedTo, "x")), known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound))), want: "C11 Nothing"},
		{name: "G2 a claim that has it", claim: knownClaim(boundTo("a"), claimNote(provisioner, ebs), claimNote(migratedTo, "ebs.csi.aws.com")), known: knowing(knownVolume("a", held, inPhase(corev1.VolumeBound))), want: "C11 Nothing"},
		{name: "G2 a claim that is being deleted", claim: knownClaim(claimBeingDeleted, claimNote(provisioner, ebs)), want: claimGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim by a table of one's own", claim: knownClaim(claimNote(provisioner, "example.com/old")), rules: own, want: claimGets + "+annotation pv.kubernetes.io/migrated-to=new.example.com"},

		{name: "G2 a volume", volume: made(ebs), want: volumeGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a volume that is not migrated any more", volume: made(ebs, volumeNote(migratedTo, "ebs.csi.aws.com")), rules: unmigrated, want: volumeGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a volume without a provisioner is left alone", volume: knownVolume("a", volumeNote(migratedTo, "x")), want: available},
		{name: "G2 a volume that has it", volume: made(ebs, volumeNote(migratedTo, "ebs.csi.aws.com")), want: available},
		{name: "G2 a volume whose provisioner is empty is not migrated", volume: made("", volumeNote(migratedTo, "x")), want: volumeGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a claim whose provisioner is empty, whatever the beta one", claim: knownClaim(claimNote(provisioner, ""), claimNote(betaProvisioner, ebs), claimNote(migratedTo, "ebs.csi.aws.com")),
			want: claimGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 an empty migrated-to is as good as none", volume: made("csi.example.com", volumeNote(migratedTo, "")), want: available},
		{name: "G2 R6 in one write", volume: made(ebs, volumeFinalizers(inTreeFinalizer)), want: volumeGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com -finalizer kubernetes.io/pv-controller"},
	})
}

func TestG1TheTable(t *testing.T) {
	drivers := map[string]string{
		"aws-ebs": "ebs.csi.aws.com", "gce-pd": "pd.csi.storage.gke.io", "azure-disk": "disk.csi.azure.com", "azure-file": "file.csi.azure.com",
		"cinder": "cinder.csi.openstack.org", "vsphere-volume": "csi.vsphere.vmware.com", "portworx-volume": "pxd.portworx.com",
	}
	var table []decision
	for name, driver := range drivers {
		table = append(table, decision{name: "G1 " + name, volume: knownVolume("a", volumeNote(provisionedBy, "kubernetes.io/"+name)),
			want: "G2 UpdateVolume pv/a: +annotation pv.kubernetes.io/migrated-to=" + driver})
	}
	runDecisions(t, table)
}
