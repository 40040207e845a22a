package binding

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// provision is for a claim of a class that no volume fits: its provisioner is asked by annotation (P3),
// if there is one that could answer (P1).
func provision(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, rules Rules) Action {
	provisioner, problem := provisionerOf(claim, class, rules)
	if problem != "" {
		return wait("P1", problem, warning(claim, EventProvisioningFailed, problem))
	}
	if asked := askProvisioner(claim, provisioner, rules); asked != nil {
		return updateClaim(asked, "P3", "ask the provisioner "+provisioner)
	}
	message := fmt.Sprintf("waiting for the provisioner %q, or an administrator, to make a volume for the claim", provisioner)
	return wait("P3", message, normal(claim, EventExternalProvisioning, message))
}

// provisionerOf is who provisions for the class, the CSI driver's name where it is migrated, or the
// reason why nobody does.
func provisionerOf(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, rules Rules) (provisioner, problem string) {
	if class == nil {
		return "", fmt.Sprintf("no volume fits, and the storage class %q that could provision one does not exist", storageclass.OfClaim(claim))
	}
	if driver := rules.Migrations.Driver(class.Provisioner); driver != "" {
		return driver, ""
	}
	switch {
	case !storageclass.Provisions(class):
		return "", fmt.Sprintf("no volume fits, and the storage class %q provisions none (provisioner %q)", class.Name, class.Provisioner)
	case storageclass.InTree(class.Provisioner):
		return "", fmt.Sprintf("no volume fits, and the in-tree provisioner %q of storage class %q does not exist any more", class.Provisioner, class.Name)
	}
	return class.Provisioner, ""
}

// askProvisioner is the claim with the annotations that an external provisioner waits for, or nil if it
// has them. migrated-to follows in the same write (G2).
func askProvisioner(claim *corev1.PersistentVolumeClaim, provisioner string, rules Rules) *corev1.PersistentVolumeClaim {
	if claim.Annotations[storageclass.ProvisionerAnnotation] == provisioner && claim.Annotations[storageclass.BetaProvisionerAnnotation] == provisioner {
		return nil
	}
	asked := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, storageclass.ProvisionerAnnotation, provisioner)
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, storageclass.BetaProvisionerAnnotation, provisioner)
	setMigratedTo(&asked.ObjectMeta, provisioner, rules.Migrations)
	return asked
}
