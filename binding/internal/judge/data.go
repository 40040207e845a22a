package judge

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// WrongOfReclaim returns what a call of a deleter or recycler breaks that takes effect now; "" if nothing. Claims and attachments
// are those that the server has. It is X2, that no storage is touched while any claim is Bound to the volume, whatever its claimRef says, or
// has the UID in that and is Lost, or while it is attached.
func WrongOfReclaim(volume *corev1.PersistentVolume, claims []*corev1.PersistentVolumeClaim, attachments []*storagev1.VolumeAttachment) string {
	if i := slices.IndexFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return WasBoundTo(claim, volume) }); i >= 0 {
		return fmt.Sprintf("X2: the storage of %s is destroyed, and %s is %s and names it", volume.Name, claims[i].Name, claims[i].Status.Phase)
	}
	if attached := obj.AttachmentsOf(attachments, volume.Name); len(attached) > 0 {
		return fmt.Sprintf("X2: the storage of %s is destroyed, and %s attaches it", volume.Name, attached[0].Name)
	}
	return ""
}

// WasBoundTo reports whether a claim names the volume that it is Bound to, or has lost although the UID in claimRef is its own.
func WasBoundTo(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return isBoundTo(claim, volume.Name) || phase.Lost(claim) == volume.Name && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == claim.UID
}

func isBoundTo(claim *corev1.PersistentVolumeClaim, volume string) bool {
	return claim.Status.Phase == corev1.ClaimBound && claim.Spec.VolumeName == volume
}

// Data is whose data is on the storage of a volume.
type Data struct {
	Of    types.UID // the claim that was Bound to it last; "" if there is no data on it
	Freed bool      // since then somebody who may edit volumes has removed the claimRef
	For   obj.Key   // or has given it to that name, and perhaps freed it then
}

// DataOf returns the data of a claim that is Bound to the volume. If the claimRef was removed before, the volume is freed once the
// claim is gone.
func DataOf(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) Data {
	return Data{Of: claim.UID, Freed: volume.Spec.ClaimRef == nil}
}

// Edited returns the data of a volume after somebody other than a controller has edited, removed or created it: before and after
// are nil where there is none. A new volume is as its maker says, and one that is given to a claim by name is for that name.
func (d Data) Edited(before, after *corev1.PersistentVolume) Data {
	if before == nil || after == nil || before.UID != after.UID {
		return Data{}
	}
	was, is := before.Spec.ClaimRef, after.Spec.ClaimRef
	switch {
	case is != nil && (was == nil || was.Namespace != is.Namespace || was.Name != is.Name || was.UID != is.UID):
		if is.Namespace == "" || is.Name == "" {
			return Data{} // nobody gets it before somebody says who
		}
		d.For, d.Freed = obj.ReferencedClaim(after), false
	case is == nil && was != nil:
		d.Freed = d.Of != ""
	}
	return d
}

// Has reports whether the claim is Bound to the volume, and the volume is not another's meanwhile: then pods write onto it.
func Has(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if volume == nil || !isBoundTo(claim, volume.Name) {
		return false
	}
	state := phase.ClaimRefStateOf(volume, claim)
	return state == phase.ClaimRefBound || state == phase.ClaimRefNone
}

// WrongHeir returns what it breaks that a claim becomes Bound to a volume with that data; "" if nothing. Claims are those that the
// server has. It is X3, that no claim gets the data of another one, unless somebody who may edit volumes gave it the volume. That
// a claimRef was removed gives it to nobody for as long as the claim is Bound to it whose data it is (M2).
func WrongHeir(claim *corev1.PersistentVolumeClaim, data Data, claims []*corev1.PersistentVolumeClaim) string {
	if data.Of == "" || data.Of == claim.UID || data.For == obj.KeyOf(claim) {
		return ""
	}
	volume := claim.Spec.VolumeName
	held := slices.ContainsFunc(claims, func(other *corev1.PersistentVolumeClaim) bool {
		return other.UID == data.Of && isBoundTo(other, volume)
	})
	if data.Freed && !held {
		return ""
	}
	return fmt.Sprintf("X3: %s becomes Bound to %s, which has the data of the claim with UID %s, and is for %q", claim.Name, volume, data.Of, data.For.Name)
}
