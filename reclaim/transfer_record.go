package reclaim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// TransferAnnotation holds the record of a transfer in progress, as JSON, on its volume. Removing it cancels the transfer and
// leaves the volume as it is, with policy Retain.
const TransferAnnotation = "pvbind.github.io/transfer"

// transferRecord holds what a restarted caller needs to go on, for the old claim is deleted during the transfer.
type transferRecord struct {
	From   corev1.ObjectReference               `json:"from"` // namespace, name and UID
	To     corev1.PersistentVolumeClaim         `json:"to"`
	Policy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`
	// Volume is the UID of the volume. It tells a stale record on a restored volume apart.
	Volume types.UID `json:"volume"`
	// PreBound says that this transfer pre-bound the volume to the new claim.
	PreBound bool `json:"preBound,omitempty"`
}

func (r *transferRecord) oldClaimKey() obj.Key { return obj.ClaimKey(r.From.Namespace, r.From.Name) }

func (r *transferRecord) newClaimKey() obj.Key { return obj.KeyOf(&r.To) }

// recordOf reads the record from the volume; nil if there is none.
func recordOf(volume *corev1.PersistentVolume) (*transferRecord, error) {
	text, ok := volume.Annotations[TransferAnnotation]
	if !ok {
		return nil, nil
	}
	record := &transferRecord{}
	err := json.Unmarshal([]byte(text), record)
	switch {
	case err != nil:
	case record.From.UID == "" || record.To.Namespace == "" || record.To.Name == "" || record.Policy == "":
		err = fmt.Errorf("the record lacks from.uid, to.metadata.namespace, to.metadata.name or reclaimPolicy")
	case record.Volume != volume.UID:
		err = fmt.Errorf("the record is for a volume with UID %q, and this one has UID %q; remove the annotation to end the transfer", record.Volume, volume.UID)
	}
	if err != nil {
		return nil, fmt.Errorf("pv/%s: metadata.annotations[%s]: %w", volume.Name, TransferAnnotation, err)
	}
	return record, nil
}

// addTo returns the volume with the record, and with policy Retain.
func (r *transferRecord) addTo(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.newClaimKey(), err)
	}
	volume = retain(volume).Volume
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, TransferAnnotation, string(text))
	return volume, nil
}

// removeFrom returns the volume without the record. It restores the reclaim policy only where the new claim got the volume by
// this transfer: the transfer pre-bound it, it was bound as it was, and the policy is still Retain.
func (r *transferRecord) removeFrom(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	volume = volume.DeepCopy()
	if r.PreBound && !phase.BoundByController(volume) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		volume.Spec.PersistentVolumeReclaimPolicy = r.Policy
	}
	delete(volume.Annotations, TransferAnnotation)
	return volume
}

// claimToCreate returns the new claim: a copy of to or, if that gives only a name, of from, which may be nil. It names the
// volume, so that it takes no other, and none is provisioned for it (C6 to C8).
func claimToCreate(to, from *corev1.PersistentVolumeClaim, volume string) corev1.PersistentVolumeClaim {
	model := to
	if nameOnly(to) && from != nil {
		model = from
	}
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   to.Namespace,
			Name:        to.Name,
			Labels:      labels.Merge(model.Labels, to.Labels),
			Annotations: labels.Merge(model.Annotations, to.Annotations),
		},
		Spec: *model.Spec.DeepCopy(),
	}
	maps.DeleteFunc(claim.Annotations, aboutOneObject)
	if !storageclass.Unset(model) { // an annotation may have it, which is not copied
		claim.Spec.StorageClassName = new(storageclass.OfClaim(model))
	}
	claim.Spec.VolumeName = volume
	claim.Spec.DataSource, claim.Spec.DataSourceRef = nil, nil // the data is there
	return claim
}

// aboutOneObject reports whether controllers or kubectl keep the annotation about one object, so that it is not copied.
func aboutOneObject(key, _ string) bool {
	domain, _, _ := strings.Cut(key, "/")
	kubernetes := []string{"pv.kubernetes.io", "volume.kubernetes.io", "volume.beta.kubernetes.io", "kubectl.kubernetes.io"}
	return domain == "pvbind.github.io" || slices.Contains(kubernetes, domain)
}
