package bindingtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pvbind/pvbind/binding/decision"
	"github.com/pvbind/pvbind/binding/hooks"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// playDrivers does what external-provisioners do: they make the volumes that claims request of their drivers, and delete those that
// are Released, with their storage.
func (s *settlement) playDrivers(ctx context.Context) {
	drivers := s.drivers()
	for _, claim := range all[*corev1.PersistentVolumeClaim](s.world) {
		if driver := requestedOf(claim); drivers.Has(driver) && s.isDue(claim) {
			if err := s.provision(ctx, claim, driver); err != nil {
				s.failed(obj.KeyOf(claim), err)
			}
		}
	}
	for _, volume := range all[*corev1.PersistentVolume](s.world) {
		if drivers.Has(s.driverOf(volume)) {
			if err := s.reclaim(ctx, volume); err != nil {
				s.failed(obj.VolumeKey(volume.Name), err)
			}
		}
	}
}

// drivers returns the names of the drivers that are played.
func (s *settlement) drivers() sets.Set[string] {
	names := sets.New(s.options.Provisioners...)
	if s.options.Provisioners == nil {
		for _, class := range all[*storagev1.StorageClass](s.world) {
			names.Insert(s.migrated(class.Provisioner))
		}
		for _, volume := range all[*corev1.PersistentVolume](s.world) {
			names.Insert(s.driverOf(volume))
		}
	}
	served := s.options.Hooks.Names()
	for name := range names {
		if name == "" || storageclass.InTree(name) || served.Provisioners.Has(name) || served.Deleters.Has(name) {
			names.Delete(name)
		}
	}
	return names
}

// migrated returns the CSI driver that stands in for a provisioner, or the provisioner.
func (s *settlement) migrated(provisioner string) string {
	if driver := s.options.Binding.WithDefaults().Migrations.Driver(provisioner); driver != "" {
		return driver
	}
	return provisioner
}

// requestedOf returns the provisioner that a claim requests a volume of; "" if it requests none.
func requestedOf(claim *corev1.PersistentVolumeClaim) string {
	if driver := claim.Annotations[storageclass.ProvisionerAnnotation]; driver != "" {
		return driver
	}
	return claim.Annotations[storageclass.BetaProvisionerAnnotation]
}

// driverOf returns the driver that made a volume; "" if none did.
func (s *settlement) driverOf(volume *corev1.PersistentVolume) string {
	return s.migrated(volume.Annotations[phase.ProvisionedByAnnotation])
}

// isDue reports whether a volume is to be made for the claim now.
func (s *settlement) isDue(claim *corev1.PersistentVolumeClaim) bool {
	class := s.world.Class(storageclass.OfClaim(claim))
	made, _ := s.world.Volume(decision.ProvisionedName(claim.UID))
	if class == nil || made != nil || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return false
	}
	waits, err := storageclass.WaitsForFirstConsumer(class)
	return err == nil && (!waits || claim.Annotations[storageclass.SelectedNodeAnnotation] != "")
}

// provision makes the volume for a claim. That the storage fails is told by an event on the claim.
func (s *settlement) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, driver string) error {
	class := s.world.Class(storageclass.OfClaim(claim))
	volume, err := s.make(ctx, hooks.ProvisionRequest{
		Claim:  claim.DeepCopy(),
		Class:  class.DeepCopy(),
		Node:   claim.Annotations[storageclass.SelectedNodeAnnotation],
		Volume: volumeOf(driver, claim, class),
	})
	if err != nil {
		s.again = s.mayTryAgain(obj.KeyOf(claim)) || s.again
		s.Record(decision.Event{On: obj.KeyOf(claim), UID: claim.UID, Type: corev1.EventTypeWarning,
			Reason: decision.EventProvisioningFailed, Message: fmt.Sprintf("the provisioner %s failed: %v", driver, err)})
		return nil
	}
	// A crash here leaves storage that the next call for the same claim returns.
	stored, err := s.api.CreateVolume(ctx, volume)
	if err == nil {
		s.note(stored)
	}
	return err
}

// make makes the storage, if an external-provisioner would have it made.
func (s *settlement) make(ctx context.Context, request hooks.ProvisionRequest) (*corev1.PersistentVolume, error) {
	if request.Claim.Spec.Selector != nil {
		return nil, errors.New("the claim has a selector, and only volumes that exist can match one")
	}
	return s.storage.provision(ctx, request, s.world)
}

// volumeOf returns the volume that an external-provisioner makes for a claim, but for its source.
func volumeOf(driver string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	spec := claim.Spec.DeepCopy()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        decision.ProvisionedName(claim.UID),
			Annotations: map[string]string{phase.ProvisionedByAnnotation: driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: spec.AccessModes,
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: string(obj.KindClaim), Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion},
			MountOptions:                  slices.Clone(class.MountOptions),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              class.Name,
			VolumeAttributesClassName:     spec.VolumeAttributesClassName,
			VolumeMode:                    new(match.VolumeModeOf(spec.VolumeMode)),
		},
	}
	if class.ReclaimPolicy != nil {
		volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
	}
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		volume.Finalizers = []string{reclaim.ExternalFinalizer}
	}
	return volume
}

// reclaim deletes a volume that is Released, and its storage before it, if the policy is Delete. The finalizer that kept the object
// until then goes last, or at once under any other policy. A crash before that leaves a volume whose storage is deleted once more.
func (s *settlement) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	finalized := slices.Contains(volume.Finalizers, reclaim.ExternalFinalizer)
	released := volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
	deletes := volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch {
	case deletes && (!released || s.world.attached[volume.Name]):
		return nil
	case volume.DeletionTimestamp != nil && !finalized:
		return nil // all is done
	case deletes:
		if err := s.storage.Delete(ctx, hooks.ReclaimRequest{Volume: volume.DeepCopy()}); err != nil {
			return fmt.Errorf("deleting its storage failed: %w", err)
		}
		if volume.DeletionTimestamp == nil {
			exactly := metav1.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion}
			if err := s.api.DeleteVolume(ctx, volume.Name, exactly); err != nil {
				return err
			}
		}
	}
	if !finalized {
		return nil
	}
	return s.dropFinalizer(ctx, volume.Name)
}

func (s *settlement) dropFinalizer(ctx context.Context, name string) error {
	volume, err := s.api.GetVolume(ctx, name)
	if err != nil {
		return err
	}
	volume = volume.DeepCopy()
	volume.Finalizers = slices.DeleteFunc(volume.Finalizers, func(finalizer string) bool { return finalizer == reclaim.ExternalFinalizer })
	_, err = s.api.UpdateVolume(ctx, volume) // the next round finds it, or that it is gone
	return err
}
