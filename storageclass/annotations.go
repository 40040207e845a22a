package storageclass

// Annotations by which classes, claims and volumes, and those who serve them,
// tell each other about storage classes.
const (
	// IsDefaultAnnotation on a class, with the value "true", makes it the one
	// that claims without a class get.
	IsDefaultAnnotation = "storageclass.kubernetes.io/is-default-class"
	// BetaIsDefaultAnnotation is the older spelling of IsDefaultAnnotation.
	BetaIsDefaultAnnotation = "storageclass.beta.kubernetes.io/is-default-class"

	// ProvisionerAnnotation on a claim names the provisioner that is to make a
	// volume for it: an external one waits for its name here (rule P3).
	ProvisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// BetaProvisionerAnnotation is the older spelling of ProvisionerAnnotation;
	// both are written, for old provisioners read only this one.
	BetaProvisionerAnnotation = "volume.beta.kubernetes.io/storage-provisioner"

	// SelectedNodeAnnotation on a claim of a delayed class is the scheduler's
	// request to provision a volume that the named node can use.
	SelectedNodeAnnotation = "volume.kubernetes.io/selected-node"

	// MigratedToAnnotation on a claim or volume names the CSI driver that serves
	// it in place of its in-tree provisioner (rule G2).
	MigratedToAnnotation = "pv.kubernetes.io/migrated-to"
)

// NoProvisioner is the provisioner of a class for which no volume can be made:
// its volumes are created by hand.
const NoProvisioner = "kubernetes.io/no-provisioner"
