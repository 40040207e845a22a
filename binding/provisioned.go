package binding

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
	"github.com/pvbind/pvbind/storageclass"
)

// ProvisionedName is the name of the volume that is provisioned for the claim (P2).
func ProvisionedName(claim *corev1.PersistentVolumeClaim) string { return provisionedName(claim.UID) }

func provisionedName(claim types.UID) string { return "pvc-" + string(claim) }

// newProvisionRequest is what a provisioner is asked for on behalf of a claim. The class may be nil where the
// storage is only to be deleted again.
func newProvisionRequest(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, provisioner string) *ProvisionRequest {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: ProvisionedName(claim),
			Annotations: map[string]string{
				phase.BoundByControllerAnnotation: "yes",
				phase.ProvisionedByAnnotation:     provisioner,
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef:                      referenceTo(claim),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, // the class default (A6)
			StorageClassName:              storageclass.OfClaim(claim),
			VolumeAttributesClassName:     claim.Spec.VolumeAttributesClassName,
			VolumeMode:                    new(match.VolumeModeOf(claim.Spec.VolumeMode)),
		},
	}
	if class != nil {
		volume.Spec.MountOptions = class.MountOptions
		if class.ReclaimPolicy != nil {
			volume.Spec.PersistentVolumeReclaimPolicy = *class.ReclaimPolicy
		}
	}
	volume = volume.DeepCopy() // it is stored, and so shares nothing with the claim and the class (X6)
	return &ProvisionRequest{Claim: claim, Class: class, Node: claim.Annotations[storageclass.SelectedNodeAnnotation], Volume: volume}
}

// copied shares nothing with the original: it goes to code that is not ours (X6).
func (r ProvisionRequest) copied() ProvisionRequest {
	r.Claim, r.Class, r.Volume = r.Claim.DeepCopy(), r.Class.DeepCopy(), r.Volume.DeepCopy()
	return r
}

// accept is the volume to store for what the provisioner made, and what is wrong with it; "" if nothing is.
// What the provisioner has no say in is put right: the link to the claim, and what follows from the class.
func (r *ProvisionRequest) accept(made *corev1.PersistentVolume, rules Rules) (volume *corev1.PersistentVolume, problem string) {
	if made == nil {
		return r.Volume, "the provisioner returned no volume"
	}
	name := made.Name
	volume = made.DeepCopy()
	volume.TypeMeta, volume.Status = metav1.TypeMeta{}, corev1.PersistentVolumeStatus{}
	volume.ObjectMeta = metav1.ObjectMeta{Name: r.Volume.Name, Labels: volume.Labels, Annotations: volume.Annotations, Finalizers: volume.Finalizers}
	for key, value := range r.Volume.Annotations {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, key, value)
	}
	volume.Spec.ClaimRef = r.Volume.Spec.ClaimRef
	volume.Spec.StorageClassName = r.Volume.Spec.StorageClassName
	volume.Spec.VolumeAttributesClassName = r.Volume.Spec.VolumeAttributesClassName
	volume.Spec.PersistentVolumeReclaimPolicy = r.Volume.Spec.PersistentVolumeReclaimPolicy
	if len(volume.Spec.MountOptions) == 0 { // it may have others, but not lose them
		volume.Spec.MountOptions = r.Volume.Spec.MountOptions
	}
	volume.Finalizers = reclaim.Finalizers(volume, rules.reclaim())
	if name != r.Volume.Name {
		return volume, fmt.Sprintf("the provisioner named the volume %q, and not %q", name, r.Volume.Name)
	}
	return volume, r.misfit(volume)
}

// misfit says why the claim could not have the volume.
func (r *ProvisionRequest) misfit(volume *corev1.PersistentVolume) string {
	if reclaim.SourceName(volume) == "" {
		return "the provisioner returned a volume without a source"
	}
	if err := match.CheckWellFormed(volume); err != nil {
		return "the provisioner returned a malformed volume: " + err.Error()
	}
	mismatches, err := match.CheckNamed(r.Claim, volume)
	if err != nil {
		return err.Error()
	}
	if len(mismatches) > 0 {
		return "the provisioner returned a volume that does not fit the claim: " + mismatches.String()
	}
	return ""
}
