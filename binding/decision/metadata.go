package decision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// updateClaimMetadata gives the claim the annotation and finalizer that it lacks (G2, F1). It comes first in every sync.
func updateClaimMetadata(claim *corev1.PersistentVolumeClaim, options Options) (action Action, changes bool) {
	migrate := migratedToDiffers(claim, options.Migrations, storageclass.ProvisionerAnnotation, storageclass.BetaProvisionerAnnotation)
	protect := options.Protection == ProtectionOn && reclaim.NeedsProtection(claim, reclaim.ClaimProtection)
	if !migrate && !protect {
		return Action{}, false
	}
	changed := claim.DeepCopy()
	action = updateClaim(changed, "F1", "protect it while it is in use")
	if protect {
		changed.Finalizers = append(changed.Finalizers, reclaim.ClaimProtection)
	}
	if migrate {
		setMigratedTo(&changed.ObjectMeta, claimProvisioner(claim), options.Migrations)
		action.Rule, action.Why = "G2", "say which CSI driver serves it"
	}
	return action, true
}

// updateVolumeMetadata does the same for a volume, with the finalizers of its reclaim policy (G2, R6, F1).
func updateVolumeMetadata(volume *corev1.PersistentVolume, options Options) (action Action, changes bool) {
	provisioner := volume.Annotations[phase.ProvisionedByAnnotation]
	migrate := migratedToDiffers(volume, options.Migrations, phase.ProvisionedByAnnotation)
	finalizers := volume.Finalizers
	if provisioner != "" {
		finalizers = reclaim.Finalizers(volume, options.reclaim())
	}
	protect := options.Protection == ProtectionOn && reclaim.NeedsProtection(volume, reclaim.VolumeProtection)
	if !migrate && !protect && slices.Equal(finalizers, volume.Finalizers) {
		return Action{}, false
	}
	changed := volume.DeepCopy()
	changed.Finalizers = slices.Clone(finalizers)
	action = updateVolume(changed, "R6", "finalizers that go with its reclaim policy")
	if protect {
		changed.Finalizers = append(changed.Finalizers, reclaim.VolumeProtection)
		action.Rule, action.Why = "F1", "protect it while it is in use"
	}
	if migrate {
		setMigratedTo(&changed.ObjectMeta, provisioner, options.Migrations)
		action.Rule, action.Why = "G2", "say which CSI driver serves it"
	}
	return action, true
}

// unprotectClaim takes the in-use protection off a claim that is being deleted once no pod uses it (F2). A pod in a cache
// that uses it is reason enough to keep it; that no pod uses it, only the server can say.
func unprotectClaim(claim *corev1.PersistentVolumeClaim, view View, options Options) (action Action, decided bool) {
	if options.Protection != ProtectionOn {
		return Action{}, false
	}
	pods, source := view.PodsOf(claim.Namespace, claim.Name)
	if !reclaim.ClaimReleasable(claim, pods) {
		return Action{}, false
	}
	if source != FromLiveRead {
		return ReadLive(obj.PodsKey(claim.Namespace), "F2", "before the claim is let go"), true
	}
	// A crash before this write leaves a claim that is being deleted and protected, as it was.
	changed := claim.DeepCopy()
	changed.Finalizers = without(changed.Finalizers, reclaim.ClaimProtection)
	return updateClaim(changed, "F2", "it is being deleted and no pod uses it"), true
}

// unprotectVolume takes the in-use protection off a volume that is being deleted and not bound (F3).
func unprotectVolume(volume *corev1.PersistentVolume) Action {
	// A crash before this write leaves a volume that is being deleted and protected, as it was.
	changed := volume.DeepCopy()
	changed.Finalizers = without(changed.Finalizers, reclaim.VolumeProtection)
	return updateVolume(changed, "F3", "it is being deleted and not bound")
}

// without removes a finalizer from the slice, which it modifies.
func without(finalizers []string, unwanted string) []string {
	return slices.DeleteFunc(finalizers, func(finalizer string) bool { return finalizer == unwanted })
}

// claimProvisioner returns the provisioner that the claim is annotated with; "" if none.
func claimProvisioner(claim *corev1.PersistentVolumeClaim) string {
	if name, ok := claim.Annotations[storageclass.ProvisionerAnnotation]; ok {
		return name
	}
	return claim.Annotations[storageclass.BetaProvisionerAnnotation]
}

// migratedToDiffers reports whether setMigratedTo would change anything, by the first of the annotations that
// the object has. An empty annotation names no migrated provisioner; without any, migrated-to is left alone.
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
