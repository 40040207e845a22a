package storageclass

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInTreeMigrations(t *testing.T) {
	migrations := InTreeMigrations()
	for provisioner, driver := range map[string]string{
		"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
		"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
		"kubernetes.io/azure-disk":      "disk.csi.azure.com",
		"kubernetes.io/azure-file":      "file.csi.azure.com",
		"kubernetes.io/cinder":          "cinder.csi.openstack.org",
		"kubernetes.io/vsphere-volume":  "csi.vsphere.vmware.com",
		"kubernetes.io/portworx-volume": "pxd.portworx.com",
		"kubernetes.io/no-provisioner":  "",
		"kubernetes.io/host-path":       "",
		"kubernetes.io/rbd":             "",
		"ebs.csi.aws.com":               "",
		"":                              "",
	} {
		t.Run("G1 "+provisioner, func(t *testing.T) {
			assert.Equal(t, driver, migrations.Driver(provisioner))
		})
	}
	assert.Len(t, migrations, 7, "G1")
	for provisioner := range migrations {
		assert.True(t, InTree(provisioner), "G1 %s", provisioner)
	}
}

func TestNilMigratesNothing(t *testing.T) {
	assert.Empty(t, Migrations(nil).Driver("kubernetes.io/aws-ebs"), "G1")
	assert.Empty(t, Migrations{}.Driver("kubernetes.io/aws-ebs"), "G1")
}

func TestMigrationsAreTheCallers(t *testing.T) {
	mine := InTreeMigrations()
	delete(mine, "kubernetes.io/aws-ebs")
	mine["kubernetes.io/rbd"] = "rbd.csi.ceph.com"

	assert.Empty(t, mine.Driver("kubernetes.io/aws-ebs"), "G1")
	assert.Equal(t, "rbd.csi.ceph.com", mine.Driver("kubernetes.io/rbd"), "G1")
	assert.Equal(t, "ebs.csi.aws.com", InTreeMigrations().Driver("kubernetes.io/aws-ebs"),
		"G1 a change to one table is not a change to the next")
}
