package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// claimMetadata is the claim with the annotation and finalizer it should have, and the rule and reason of
// the change, or nil if it has them (G2, F1). It comes first in every sync.
func claimMetadata(claim *corev1.PersistentVolumeClaim, rules Rules) (changed *corev1.PersistentVolumeClaim, rule, why string) {
	migrate := migratedToDiffers(claim, rules.Migrations, storageclass.ProvisionerAnnotation, storageclass.BetaProvisionerAnnotation)
	protect := rules.Protection == ProtectionOn && reclaim.NeedsProtection(claim, reclaim.ClaimProtection)
	if !migrate && !protect {
		return nil, "", ""
	}
	changed = claim.DeepCopy()
	if protect {
		changed.Finalizers = append(changed.Finalizers, reclaim.ClaimProtection)
		rule, why = "F1", "protect it while it is in use"
	}
	if migrate {
		setMigratedTo(&changed.ObjectMeta, claimProvisioner(claim), rules.Migrations)
		rule, why = "G2", "say which CSI driver serves it"
	}
	return changed, rule, why
}

// volumeMetadata is the same for a volume, with the finalizers of its reclaim policy (G2, R6, F1).
func volumeMetadata(volume *corev1.PersistentVolume, rules Rules) (changed *corev1.PersistentVolume, rule, why string) {
	provisioner := volume.Annotations[phase.ProvisionedByAnnotation]
	migrate := migratedToDiffers(volume, rules.Migrations, phase.ProvisionedByAnnotation)
	finalizers := volume.Finalizers
	if provisioner != "" {
		finalizers = reclaim.Finalizers(volume, rules.reclaim())
	}
	protect := rules.Protection == ProtectionOn && reclaim.NeedsProtection(volume, reclaim.VolumeProtection)
	if !migrate && !protect && slices.Equal(finalizers, volume.Finalizers) {
		return nil, "", ""
	}
	changed = volume.DeepCopy()
	changed.Finalizers = slices.Clone(finalizers)
	rule, why = "R6", "finalizers that go with its reclaim policy"
	if protect {
		changed.Finalizers = append(changed.Finalizers, reclaim.VolumeProtection)
		rule, why = "F1", "protect it while it is in use"
	}
	if migrate {
		setMigratedTo(&changed.ObjectMeta, provisioner, rules.Migrations)
		rule, why = "G2", "say which CSI driver serves it"
	}
	return changed, rule, why
}

// claimProvisioner is the provisioner that the claim was given to, "" if none.
func claimProvisioner(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[storageclass.ProvisionerAnnotation]; ok {
		return name
	}
	return claim.Annotations[storageclass.BetaProvisionerAnnotation]
}

// migratedToDiffers reports whether setMigratedTo would change anything, going by the first of the annotations that
// the object has. An empty one names nobody who is migrated; without any, migrated-to is nobody's business.
func migratedToDiffers(object metav1.Object, migrations storageclass.Migrations, provisioners ...string) bool {
	annotations := object.GetAnnotations()
	for _, key := range provisioners {
		if provisioner, ok := annotations[key]; ok {
			return annotations[storageclass.MigratedToAnnotation] != migrations.Driver(provisioner)
		}
	}
	return false
}

// setMigratedTo names the CSI driver that stands in for the provisioner, or none.
func setMigratedTo(object *metav1.ObjectMeta, provisioner string, migrations storageclass.Migrations) {
	if driver := migrations.Driver(provisioner); driver != "" {
		metav1.SetMetaDataAnnotation(object, storageclass.MigratedToAnnotation, driver)
	} else {
		delete(object.Annotations, storageclass.MigratedToAnnotation)
	}
}
