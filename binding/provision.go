package binding

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/storageclass"
)

// provision is for a claim of a class that no volume fits: its provisioner is asked by annotation (P3), if
// there is one that could answer (P1), and run if it is one of ours (P2).
func provision(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, view View, rules Rules) (Action, error) {
	provisioner, problem := provisionerOf(claim, class, rules)
	if problem != "" {
		waiting := wait("P1", problem, warning(claim, EventProvisioningFailed, problem))
		return waiting.explained(Explanation{State: ClaimUnprovisionable, Class: storageclass.OfClaim(claim)}), nil
	}
	action, err := provisionBy(claim, class, provisioner, view, rules)
	explanation := Explanation{State: ClaimAwaitsProvisioner, Class: class.Name, Provisioner: provisioner, Node: claim.Annotations[storageclass.SelectedNodeAnnotation]}
	if action.Kind != Wait {
		explanation.Message = awaitProvisioner(explanation)
	}
	return action.explained(explanation), err
}

func provisionBy(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, provisioner string, view View, rules Rules) (Action, error) {
	if provisioning(claim) && claimProvisioner(claim) != provisioner {
		return abandonProvisioning(claim, view, rules), nil
	}
	if asked := askProvisioner(claim, provisioner, rules); asked != nil {
		return updateClaim(asked, "P3", "ask the provisioner "+provisioner), nil
	}
	if rules.Hooks.Provisioners.Has(provisioner) {
		return provisionHere(claim, class, provisioner, view, rules)
	}
	message := awaitProvisioner(Explanation{Provisioner: provisioner, Node: claim.Annotations[storageclass.SelectedNodeAnnotation]})
	return wait("P3", message, normal(claim, EventExternalProvisioning, message)), nil
}

func awaitProvisioner(awaited Explanation) string {
	where := ""
	if awaited.Node != "" {
		where = fmt.Sprintf(" that node %q can use", awaited.Node)
	}
	return fmt.Sprintf("waiting for the provisioner %q to make a volume%s for the claim, or for an administrator to reserve one that fits (claimRef with namespace and name)", awaited.Provisioner, where)
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
	case storageclass.InTree(class.Provisioner) && !rules.Hooks.Provisioners.Has(class.Provisioner):
		return "", fmt.Sprintf("no volume fits, and the in-tree provisioner %q of storage class %q does not exist any more", class.Provisioner, class.Name)
	}
	return class.Provisioner, ""
}

// askProvisioner is the claim with the annotations that an external provisioner waits for, or nil if it
// has them. migrated-to follows in the same write (G2). So does the trace of what a provisioner of ours is
// about to make, if there is somebody to delete it.
func askProvisioner(claim *corev1.PersistentVolumeClaim, provisioner string, rules Rules) *corev1.PersistentVolumeClaim {
	asks := claim.Annotations[storageclass.ProvisionerAnnotation] == provisioner && claim.Annotations[storageclass.BetaProvisionerAnnotation] == provisioner
	trace := rules.Hooks.Provisioners.Has(provisioner) && rules.Hooks.Deleters.Has(provisioner) && !provisioning(claim)
	if asks && !trace {
		return nil
	}
	asked := claim.DeepCopy()
	if trace {
		asked.Finalizers = append(asked.Finalizers, ProvisioningFinalizer)
	}
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, storageclass.ProvisionerAnnotation, provisioner)
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, storageclass.BetaProvisionerAnnotation, provisioner)
	setMigratedTo(&asked.ObjectMeta, provisioner, rules.Migrations)
	return asked
}
