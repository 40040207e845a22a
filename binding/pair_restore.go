package binding

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// restore is for a claim whose volume does not exist (C6, C10). Nobody but a person can know where its storage is. The
// volume to create leaves nothing else to choose: under another name the claim would not take it; without the UID a
// claim that was bound would not (C11); and with another policy than Retain the storage could go with a mistake.
func (r *PairRequest) restore() (Repair, error) {
	claim := r.Claim
	switch {
	case claim.UID == "":
		return Repair{}, &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.uid", Problem: "is missing"}
	case claim.Spec.VolumeName == "":
		return nobody(fmt.Sprintf("the claim was bound and names no volume: set reclaim policy Retain on every volume whose claimRef has UID %s, "+
			"and then spec.volumeName to the name of the one with the claim's data; if there is no such volume, delete the claim and create it anew", claim.UID)), nil
	}
	volume := volumeFor(claim)
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	why := fmt.Sprintf("first set reclaim policy Retain on every volume with UID %s in its claimRef, and on every volume of the storage that the claim had, and delete those of that storage; "+
		"then create one with reclaim policy Retain, no annotation, that storage as its source, if it is still there, at least %s, access modes %v, volume mode %s, "+
		"exactly the name %q, and claimRef to %s/%s with UID %s: with that the claim has it again",
		claim.UID, size.String(), volume.Spec.AccessModes, match.VolumeModeOf(volume.Spec.VolumeMode), volume.Name, claim.Namespace, claim.Name, claim.UID)
	return Repair{By: ByPerson, Action: Action{Kind: CreateVolume, Volume: volume, Rule: "C11", Why: why}, Why: why,
		Risk: "the claim gets what is on that storage; if it is not the claim's, it gets another's data"}, nil
}

// volumeFor is a volume that the claim takes for the one that it names, but for its source.
func volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	model := claim.DeepCopy()
	size := model.Spec.Resources.Requests[corev1.ResourceStorage]
	if had := model.Status.Capacity[corev1.ResourceStorage]; quantities.Compare(had, size) > 0 {
		size = had
	}
	ref := referenceTo(claim)
	ref.ResourceVersion = "" // it changes
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes:                   slices.Clone(model.Spec.AccessModes),
			ClaimRef:                      ref,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              storageclass.OfClaim(claim),
			VolumeMode:                    model.Spec.VolumeMode,
			VolumeAttributesClassName:     model.Spec.VolumeAttributesClassName,
		},
	}
}
