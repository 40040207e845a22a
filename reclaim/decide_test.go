package reclaim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/storageclass"
)

var options = Options{
	Migrations:     storageclass.Migrations{"kubernetes.io/aws-ebs": "ebs.csi.aws.com"},
	Deleters:       sets.New("example.com/ours", "kubernetes.io/host-path", "nfs"),
	SourceDeleters: sets.New("hostPath", "example.com/theirs"),
	Recyclers:      sets.New("hostPath"),
}

var sources = map[string]corev1.PersistentVolumeSource{
	"none":     {},
	"csi":      {CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver.example.com"}},
	"hostPath": {HostPath: &corev1.HostPathVolumeSource{}}, // registered
	"nfs":      {NFS: &corev1.NFSVolumeSource{}},           // not registered
}

var provisioners = map[string]map[string]string{
	"nobody":              nil,
	"empty":               {"pv.kubernetes.io/provisioned-by": ""},
	"in-tree":             {"pv.kubernetes.io/provisioned-by": "kubernetes.io/glusterfs"},
	"in-tree, registered": {"pv.kubernetes.io/provisioned-by": "kubernetes.io/host-path"},
	"in-tree, migrated":   {"pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs"},
	"registered":          {"pv.kubernetes.io/provisioned-by": "example.com/ours"},
	"external":            {"pv.kubernetes.io/provisioned-by": "example.com/theirs"},
}

func volumeOf(provisioner, source string, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{}
	volume.Name = "pv-1"
	volume.Annotations = map[string]string{}
	for key, value := range provisioners[provisioner] {
		volume.Annotations[key] = value
	}
	volume.Spec.PersistentVolumeSource = sources[source]
	volume.Spec.PersistentVolumeReclaimPolicy = policy
	return volume
}

// what is the part of a decision that the tables compare.
func what(decision Decision) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s%s", decision.Action, decision.Hook, decision.EventReason))
}

var deleteTable = map[string]map[string]string{
	"nobody": {
		"none": "Fail VolumeFailedDelete", "csi": "LeaveToProvisioner",
		"hostPath": "RunDeleter hostPath", "nfs": "Fail VolumeFailedDelete",
	},
	"empty": {
		"none": "Fail VolumeFailedDelete", "csi": "LeaveToProvisioner",
		"hostPath": "RunDeleter hostPath", "nfs": "Fail VolumeFailedDelete",
	},
	// Whoever made it decides alone, even where the source has a deleter.
	"in-tree":             whateverTheSource("Fail VolumeFailedDelete"),
	"in-tree, registered": whateverTheSource("RunDeleter kubernetes.io/host-path"),
	"in-tree, migrated":   whateverTheSource("LeaveToProvisioner"),
	"registered":          whateverTheSource("RunDeleter example.com/ours"),
	"external":            whateverTheSource("LeaveToProvisioner"),
}

func whateverTheSource(want string) map[string]string {
	row := map[string]string{}
	for source := range sources {
		row[source] = want
	}
	return row
}

var recycleTable = map[string]string{
	"none":     "Fail VolumeFailedRecycle",
	"csi":      "Fail VolumeFailedRecycle",
	"hostPath": "RunRecycler hostPath",
	"nfs":      "Fail VolumeFailedRecycle",
}

// expected states R2 to R5 for a volume without a migrated-to annotation.
func expected(provisioner, source string, policy corev1.PersistentVolumeReclaimPolicy) string {
	if provisioner == "in-tree, migrated" {
		return "LeaveToProvisioner"
	}
	switch policy {
	case corev1.PersistentVolumeReclaimRetain:
		return "Keep"
	case corev1.PersistentVolumeReclaimDelete:
		return deleteTable[provisioner][source]
	case corev1.PersistentVolumeReclaimRecycle:
		return recycleTable[source]
	}
	return "Fail VolumeUnknownReclaimPolicy"
}

func forAllVolumes(t *testing.T, check func(t *testing.T, provisioner, source string, policy corev1.PersistentVolumeReclaimPolicy)) {
	for provisioner := range provisioners {
		for source := range sources {
			for _, policy := range []corev1.PersistentVolumeReclaimPolicy{"Retain", "Delete", "Recycle", "", "delete", "Shred"} {
				name := fmt.Sprintf("R2 R3 R4 R5 by %s, source %s, policy %s", provisioner, source, policy)
				t.Run(name, func(t *testing.T) { check(t, provisioner, source, policy) })
			}
		}
	}
}

func TestDecide(t *testing.T) {
	forAllVolumes(t, func(t *testing.T, provisioner, source string, policy corev1.PersistentVolumeReclaimPolicy) {
		volume := volumeOf(provisioner, source, policy)
		before := volume.DeepCopy()
		assert.Equal(t, expected(provisioner, source, policy), what(Decide(volume, options)))

		volume.Annotations["pv.kubernetes.io/migrated-to"] = ""
		assert.Equal(t, expected(provisioner, source, policy), what(Decide(volume, options)), "R1 an empty migrated-to says nothing")

		volume.Annotations["pv.kubernetes.io/migrated-to"] = "ebs.csi.aws.com"
		assert.Equal(t, "LeaveToProvisioner", what(Decide(volume, options)), "R1 a migrated volume is the driver's")

		delete(volume.Annotations, "pv.kubernetes.io/migrated-to")
		assert.Equal(t, before, volume, "X6")
	})
}

func TestDecisionsAreWellFormed(t *testing.T) {
	forAllVolumes(t, func(t *testing.T, provisioner, source string, policy corev1.PersistentVolumeReclaimPolicy) {
		decision := Decide(volumeOf(provisioner, source, policy), options)
		runs := decision.Action == RunDeleter || decision.Action == RunRecycler
		assert.Equal(t, runs, decision.Hook != "", "R3 R4 a hook where there is one to run")
		assert.Equal(t, decision.Action == Fail, decision.EventReason != "", "R3 R4 R5 an event where it fails")
		assert.NotEmpty(t, decision.Message, "N")
		assert.NotContains(t, decision.Message, "\n", "N one line")
	})
}

// With nobody registered and nothing migrated, no storage is ever touched.
func TestZeroOptionsRunNothing(t *testing.T) {
	forAllVolumes(t, func(t *testing.T, provisioner, source string, policy corev1.PersistentVolumeReclaimPolicy) {
		decision := Decide(volumeOf(provisioner, source, policy), Options{})
		assert.NotContains(t, []Action{RunDeleter, RunRecycler}, decision.Action)
		assert.Equal(t, policy == "Retain", decision.Action == Keep)
		assert.Equal(t, policy == "Delete" && leftToOthers(provisioner, source), decision.Action == LeaveToProvisioner)
	})
}

func leftToOthers(provisioner, source string) bool {
	switch provisioner {
	case "registered", "external":
		return true
	case "nobody", "empty":
		return source == "csi"
	}
	return false
}

func TestRetainNeverTouchesStorage(t *testing.T) {
	everything := Options{
		Migrations:     storageclass.InTreeMigrations(),
		Deleters:       sets.New("kubernetes.io/glusterfs", "example.com/ours", "example.com/theirs"),
		SourceDeleters: sets.New("csi", "nfs", "hostPath"),
		Recyclers:      sets.New("csi", "nfs", "hostPath"),
	}
	for provisioner := range provisioners {
		for source := range sources {
			action := Decide(volumeOf(provisioner, source, corev1.PersistentVolumeReclaimRetain), everything).Action
			assert.Contains(t, []Action{Keep, LeaveToProvisioner}, action, "X2 R2 by %s, source %s", provisioner, source)
		}
	}
}

func TestMessagesSayWhy(t *testing.T) {
	for _, test := range []struct {
		provisioner, source string
		policy              corev1.PersistentVolumeReclaimPolicy
		message             string
	}{
		{"in-tree, migrated", "none", "Delete", `CSI driver "ebs.csi.aws.com" reclaims it`},
		{"nobody", "csi", "Delete", `CSI driver "driver.example.com" deletes it`},
		{"external", "csi", "Delete", `external provisioner "example.com/theirs", which made it, deletes it`},
		{"registered", "csi", "Delete", `provisioner "example.com/ours", which made it, deletes it`},
		{"nobody", "hostPath", "Delete", `the deleter for hostPath volumes deletes it`},
		{"nobody", "nfs", "Delete", `no deleter for nfs volumes is registered`},
		{"nobody", "none", "Delete", `no deleter for sourceless volumes is registered`},
		{"in-tree", "hostPath", "Delete", `no deleter for provisioner "kubernetes.io/glusterfs" is registered`},
		{"nobody", "hostPath", "Recycle", `the recycler for hostPath volumes scrubs it`},
		{"nobody", "csi", "Recycle", `no recycler for csi volumes is registered`},
		{"nobody", "nfs", "Retain", `its reclaim policy is Retain`},
		{"nobody", "nfs", "Shred", `persistentVolumeReclaimPolicy "Shred" is unknown`},
		{"nobody", "nfs", "", `persistentVolumeReclaimPolicy "" is unknown`},
	} {
		decision := Decide(volumeOf(test.provisioner, test.source, test.policy), options)
		assert.Equal(t, test.message, decision.Message, "N")
	}
}
