package decision_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/decision"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/storageclass"
)

func TestProvisioning(t *testing.T) {
	asks := KnownClaim(RequestingClass(new("fast")))
	asked := func(by string, edits ...ClaimEdit) *corev1.PersistentVolumeClaim {
		return KnownClaim(append([]ClaimEdit{RequestingClass(new("fast")), ClaimNote(Provisioner, by), ClaimNote(BetaProvisioner, by)}, edits...)...)
	}
	writes := func(by string) string {
		return "P3 UpdateClaim pvc/default/data: +annotation " + BetaProvisioner + "=" + by + " +annotation " + Provisioner + "=" + by
	}
	failed, waits := []string{"Warning ProvisioningFailed pvc/default/data"}, []string{"Normal ExternalProvisioning pvc/default/data"}
	fast := func(by string) decision.Snapshot { return Knowing(ClassOf("fast", by)) }
	unmigrated := decision.Options{Migrations: storageclass.Migrations{}}
	own := decision.Options{Migrations: storageclass.Migrations{"kubernetes.io/ours": "ours.example.com"}}
	lost := ClaimPhase(corev1.ClaimLost)
	runDecisions(t, []decisionTest{
		{name: "P1 the class does not exist", claim: asks, expected: "P1 Wait", events: failed, says: []string{`"fast"`, "does not exist"}},
		{name: "P1 X9 nor one that long", claim: KnownClaim(ClaimNote(BetaClass, longest+"nn")), expected: "P1 Wait", events: failed, says: []string{`"` + longest + `…"`, "does not exist"}},
		{name: "P1 no-provisioner", claim: asks, known: fast("kubernetes.io/no-provisioner"), expected: "P1 Wait", events: failed, says: []string{`"fast"`, "kubernetes.io/no-provisioner"}},
		{name: "P1 an empty provisioner", claim: asks, known: fast(""), expected: "P1 Wait", events: failed, says: []string{`"fast"`}},
		{name: "P1 in-tree and not migrated", claim: asks, known: fast("kubernetes.io/glusterfs"), expected: "P1 Wait", events: failed, says: []string{"kubernetes.io/glusterfs", `"fast"`}},
		{name: "P1 G1 an empty table migrates nothing", claim: asks, known: fast("kubernetes.io/aws-ebs"), options: unmigrated, expected: "P1 Wait", events: failed, says: []string{"kubernetes.io/aws-ebs"}},
		{name: "P1 C4 the phase stays as it is", claim: KnownClaim(RequestingClass(new("fast")), lost), expected: "P1 Wait", events: failed},

		{name: "P3 both annotations in one write", claim: asks, known: fast("csi.example.com"), expected: writes("csi.example.com")},
		{name: "P3 C4 the phase stays as it is", claim: KnownClaim(RequestingClass(new("fast")), lost), known: fast("csi.example.com"), expected: writes("csi.example.com")},
		{name: "P3 by the beta class annotation", claim: KnownClaim(ClaimNote(BetaClass, "fast")), known: fast("csi.example.com"), expected: writes("csi.example.com")},
		{name: "P3 G1 migrated: the driver is asked", claim: asks, known: fast("kubernetes.io/aws-ebs"), expected: writes("ebs.csi.aws.com")},
		{name: "P3 G1 a table of one's own", claim: asks, known: fast("kubernetes.io/ours"), options: own, expected: writes("ours.example.com")},
		{name: "P3 asked: wait", claim: asked("csi.example.com"), known: fast("csi.example.com"), expected: "P3 Wait", events: waits, says: []string{`"csi.example.com"`, "administrator"}},
		{name: "P3 X9 no node has so long a name", claim: asked("csi.example.com", ClaimNote(storageclass.SelectedNodeAnnotation, longest+"nn")), known: fast("csi.example.com"), expected: "P3 Wait", events: waits, says: []string{`"` + longest + `…"`}},
		{name: "P3 asked of the driver: wait", claim: asked("ebs.csi.aws.com"), known: fast("kubernetes.io/aws-ebs"), expected: "P3 Wait", events: waits, says: []string{"ebs.csi.aws.com"}},
		{name: "P3 only one of the two", claim: KnownClaim(RequestingClass(new("fast")), ClaimNote(BetaProvisioner, "csi.example.com")), known: fast("csi.example.com"),
			expected: "P3 UpdateClaim pvc/default/data: +annotation " + Provisioner + "=csi.example.com"},
		{name: "P3 only the other of the two", claim: KnownClaim(RequestingClass(new("fast")), ClaimNote(Provisioner, "csi.example.com")), known: fast("csi.example.com"),
			expected: "P3 UpdateClaim pvc/default/data: +annotation " + BetaProvisioner + "=csi.example.com"},
		{name: "P3 asked of somebody else", claim: asked("old.example.com"), known: fast("csi.example.com"),
			expected: "P3 UpdateClaim pvc/default/data: annotation " + BetaProvisioner + "=csi.example.com annotation " + Provisioner + "=csi.example.com"},
		{name: "P3 G2 asked before it was migrated: migrated-to follows in the same write", claim: asked("kubernetes.io/aws-ebs", ClaimNote(MigratedTo, "ebs.csi.aws.com")), known: fast("kubernetes.io/aws-ebs"),
			expected: "P3 UpdateClaim pvc/default/data: -annotation pv.kubernetes.io/migrated-to annotation " + BetaProvisioner + "=ebs.csi.aws.com annotation " + Provisioner + "=ebs.csi.aws.com"},
		{name: "P3 C1 what it made is bound", claim: asked("csi.example.com"), known: Knowing(ClassOf("fast", "csi.example.com"), KnownVolume("pvc-uid-1", OfClass("fast"), BoundToClaim)),
			expected: "B2 UpdateVolumeStatus pv/pvc-uid-1: status.phase=Bound"},
	})
}

func TestG2Migration(t *testing.T) {
	const ebs = "kubernetes.io/aws-ebs"
	unmigrated := decision.Options{Migrations: storageclass.Migrations{}}
	own := decision.Options{Migrations: storageclass.Migrations{"example.com/old": "new.example.com"}}
	claimGets := "G2 UpdateClaim pvc/default/data: "
	volumeGets := "G2 UpdateVolume pv/a: "
	made := func(by string, edits ...VolumeEdit) *corev1.PersistentVolume {
		return KnownVolume("a", append([]VolumeEdit{VolumeNote(ProvisionedBy, by)}, edits...)...)
	}
	available := "V1 Nothing"
	runDecisions(t, []decisionTest{
		{name: "G2 a claim, before anything else", claim: KnownClaim(ClaimNote(Provisioner, ebs)), known: Knowing(KnownVolume("a")), expected: claimGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim by the beta annotation", claim: KnownClaim(ClaimNote(BetaProvisioner, ebs)), expected: claimGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim: the annotation before its beta", claim: KnownClaim(ClaimNote(Provisioner, "kubernetes.io/gce-pd"), ClaimNote(BetaProvisioner, ebs)),
			expected: claimGets + "+annotation pv.kubernetes.io/migrated-to=pd.csi.storage.gke.io"},
		{name: "G2 a claim of another driver", claim: KnownClaim(ClaimNote(Provisioner, ebs), ClaimNote(MigratedTo, "wrong")), expected: claimGets + "annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim that is not migrated any more", claim: KnownClaim(ClaimNote(Provisioner, ebs), ClaimNote(MigratedTo, "ebs.csi.aws.com")), options: unmigrated,
			expected: claimGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a claim of a driver that is none", claim: KnownClaim(ClaimNote(Provisioner, "csi.example.com"), ClaimNote(MigratedTo, "x")), expected: claimGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a claim without a provisioner is left alone", claim: KnownClaim(BoundTo("a"), ClaimNote(MigratedTo, "x")), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), expected: "C11 Nothing"},
		{name: "G2 a claim that has it", claim: KnownClaim(BoundTo("a"), ClaimNote(Provisioner, ebs), ClaimNote(MigratedTo, "ebs.csi.aws.com")), known: Knowing(KnownVolume("a", BoundToClaim, InPhase(corev1.VolumeBound))), expected: "C11 Nothing"},
		{name: "G2 a claim that is being deleted", claim: KnownClaim(ClaimBeingDeleted, ClaimNote(Provisioner, ebs)), expected: claimGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a claim by a table of one's own", claim: KnownClaim(ClaimNote(Provisioner, "example.com/old")), options: own, expected: claimGets + "+annotation pv.kubernetes.io/migrated-to=new.example.com"},

		{name: "G2 a volume", volume: made(ebs), expected: volumeGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com"},
		{name: "G2 a volume that is not migrated any more", volume: made(ebs, VolumeNote(MigratedTo, "ebs.csi.aws.com")), options: unmigrated, expected: volumeGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a volume without a provisioner is left alone", volume: KnownVolume("a", VolumeNote(MigratedTo, "x")), expected: available},
		{name: "G2 a volume that has it", volume: made(ebs, VolumeNote(MigratedTo, "ebs.csi.aws.com")), expected: available},
		{name: "G2 a volume whose provisioner is empty is not migrated", volume: made("", VolumeNote(MigratedTo, "x")), expected: volumeGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 a claim whose provisioner is empty, whatever the beta one", claim: KnownClaim(ClaimNote(Provisioner, ""), ClaimNote(BetaProvisioner, ebs), ClaimNote(MigratedTo, "ebs.csi.aws.com")),
			expected: claimGets + "-annotation pv.kubernetes.io/migrated-to"},
		{name: "G2 an empty migrated-to is as good as none", volume: made("csi.example.com", VolumeNote(MigratedTo, "")), expected: available},
		{name: "G2 R6 in one write", volume: made(ebs, VolumeFinalizers(InTreeFinalizer)), expected: volumeGets + "+annotation pv.kubernetes.io/migrated-to=ebs.csi.aws.com -finalizer kubernetes.io/pv-controller"},
	})
}

func TestG1TheTable(t *testing.T) {
	drivers := map[string]string{
		"aws-ebs": "ebs.csi.aws.com", "gce-pd": "pd.csi.storage.gke.io", "azure-disk": "disk.csi.azure.com", "azure-file": "file.csi.azure.com",
		"cinder": "cinder.csi.openstack.org", "vsphere-volume": "csi.vsphere.vmware.com", "portworx-volume": "pxd.portworx.com",
	}
	var table []decisionTest
	for name, driver := range drivers {
		table = append(table, decisionTest{name: "G1 " + name, volume: KnownVolume("a", VolumeNote(ProvisionedBy, "kubernetes.io/"+name)),
			expected: "G2 UpdateVolume pv/a: +annotation pv.kubernetes.io/migrated-to=" + driver})
	}
	runDecisions(t, table)
}
