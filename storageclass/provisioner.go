package storageclass

import "strings"

// NoProvisioner is the provisioner of a class for which no volume can be made:
// its volumes are created by hand.
const NoProvisioner = "kubernetes.io/no-provisioner"

// InTree reports whether the provisioner is, or was, compiled into Kubernetes,
// as its name tells. [NoProvisioner] counts.
func InTree(provisioner string) bool {
	return strings.HasPrefix(provisioner, "kubernetes.io/")
}

// Migrations maps the name of an in-tree provisioner to the name of the CSI driver
// that took over its volumes. A nil map migrates nothing.
type Migrations map[string]string

// InTreeMigrations returns the migrations of current Kubernetes. The caller may
// change the map: a cluster may have turned one off (G1).
func InTreeMigrations() Migrations {
	return Migrations{
		"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
		"kubernetes.io/azure-disk":      "disk.csi.azure.com",
		"kubernetes.io/azure-file":      "file.csi.azure.com",
		"kubernetes.io/cinder":          "cinder.csi.openstack.org",
		"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
		"kubernetes.io/portworx-volume": "pxd.portworx.com",
		"kubernetes.io/vsphere-volume":  "csi.vsphere.vmware.com",
	}
}

// Driver returns the CSI driver that serves in place of the provisioner, "" if
// the provisioner is not migrated.
func (m Migrations) Driver(provisioner string) string { return m[provisioner] }
