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
	return updateMetadata(claim, nil, reclaim.ClaimProtection, options, storageclass.ProvisionerAnnotation, storageclass.BetaProvisionerAnnotation)
}

// updateVolumeMetadata does the same for a volume, with the finalizers of its reclaim policy (G2, R6, F1). One on which no call is
// announced any more, because a person says so, loses the finalizer for that (R8); if it is being deleted, by F3.
func updateVolumeMetadata(volume *corev1.PersistentVolume, options Options) (action Action, changes bool) {
	announcement, announced := reclaim.AnnouncementOf(volume)
	if kept := slices.Contains(volume.Finalizers, reclaim.AnnouncementFinalizer); kept && (!announced || announcement.Done) && volume.DeletionTimestamp == nil {
		// A crash before this write leaves a finalizer that holds up the volume's end, no more.
		return removeFinalizer(volume, reclaim.AnnouncementFinalizer, "R8", "no call is announced on it any more"), true
	}
	return updateMetadata(volume, reclaim.Finalizers(volume, options.reclaim()), reclaim.VolumeProtection, options, phase.ProvisionedByAnnotation)
}

// updateMetadata gives a claim or a volume the finalizers, if they are not nil, the one that protects it, and the annotation migrated-to. That
// follows from the provisioner in the first of the given annotations that the object has; without any it is left alone.
func updateMetadata(object obj.Object, finalizers []string, protection string, options Options, annotations ...string) (action Action, changes bool) {
	provisioner, annotated := provisionerIn(object, annotations...)
	driver := options.Migrations.Driver(provisioner)
	migrate := annotated && object.GetAnnotations()[storageclass.MigratedToAnnotation] != driver
	protect := options.Protection != ProtectionOff && reclaim.NeedsProtection(object, protection)
	if !migrate && !protect && (finalizers == nil || slices.Equal(finalizers, object.GetFinalizers())) {
		return Action{}, false
	}
	action = update(object, func(metadata *metav1.ObjectMeta) {
		if finalizers != nil {
			metadata.Finalizers = slices.Clone(finalizers)
		}
		if protect {
			metadata.Finalizers = append(metadata.Finalizers, protection)
		}
		if migrate {
			setMigratedTo(metadata.Annotations, driver)
		}
	}, "R6", "finalizers that go with its reclaim policy")
	if protect {
		action.Rule, action.Why = "F1", "protect it while it is in use"
	}
	if migrate {
		action.Rule, action.Why = "G2", "say which CSI driver serves it"
	}
	return action, true
}

// unprotectClaim takes the in-use protection off a claim that is being deleted once no pod uses it (F2). A pod in a cache
// that uses it is reason enough to keep it; that no pod uses it, only the server can say, and that its volume has its claimRef still, or is not
// made again without one: that is written first (C11).
func unprotectClaim(claim *corev1.PersistentVolumeClaim, view View, options Options) (action Action, decided bool) {
	if options.Protection == ProtectionOff || !reclaim.ClaimReleasable(claim, nil) { // whatever pods there are
		return Action{}, false
	}
	users, source := view.UsersOf(claim, 1)
	read, unread := readOwnVolume(claim, view)
	switch {
	case len(users) > 0:
		return Action{}, false
	case unread:
		return read, true
	case source != FromLiveRead:
		return ReadLive(obj.PodsKey(claim.Namespace), "F2", "before the claim is let go"), true
	}
	// A crash before this write leaves a claim that is being deleted and protected, as it was.
	return removeFinalizer(claim, reclaim.ClaimProtection, "F2", "it is being deleted and no pod uses it"), true
}

// readOwnVolume returns the read of the volume that a claim names, before a finalizer of ours is taken off the claim, where no live read has shown how that is. A
// cache may be late for as long as a watch is not back, and show neither whose the volume is, nor that a slip in its claimRef is mended.
func readOwnVolume(claim *corev1.PersistentVolumeClaim, view View) (read Action, unread bool) {
	named := obj.NamedVolume(claim)
	_, source := view.Volume(named.Name)
	if named.Name == "" || named.IsNobodys() || source.IsLive() {
		return Action{}, false
	}
	return ReadLive(named, "F2", "before the claim is let go that has it"), true
}

func removeFinalizer(object obj.Object, finalizer, rule, why string) Action {
	return update(object, func(metadata *metav1.ObjectMeta) { metadata.Finalizers = without(metadata.Finalizers, finalizer) }, rule, why)
}

// without removes a finalizer from the slice, which it modifies.
func without(finalizers []string, unwanted string) []string {
	return slices.DeleteFunc(finalizers, func(finalizer string) bool { return finalizer == unwanted })
}

// claimProvisioner returns the provisioner that the claim is annotated with; "" if none.
func claimProvisioner(claim *corev1.PersistentVolumeClaim) string {
	provisioner, _ := provisionerIn(claim, storageclass.ProvisionerAnnotation, storageclass.BetaProvisionerAnnotation)
	return provisioner
}

// provisionerIn returns the provisioner in the first of the annotations that the object has. A text that is longer than the name of any, a
// domain with a slash and 63 bytes more, is cut as a name is: it may be a tenant's (X9).
func provisionerIn(object metav1.Object, annotations ...string) (provisioner string, found bool) {
	for _, annotation := range annotations {
		if provisioner, found = object.GetAnnotations()[annotation]; found {
			if len(provisioner) > obj.MaxName+1+63 {
				provisioner = obj.Name(provisioner)
			}
			return provisioner, true
		}
	}
	return "", false
}

// setMigratedTo names the CSI driver that stands in for the provisioner, or none.
func setMigratedTo(annotations map[string]string, driver string) {
	if driver != "" {
		annotations[storageclass.MigratedToAnnotation] = driver
	} else {
		delete(annotations, storageclass.MigratedToAnnotation)
	}
}
