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

// TransferAnnotation on a volume records a transfer under way, as JSON: of which volume, from which claim, to which, and
// the reclaim policy to restore. Whoever removes it ends the transfer; the volume stays as it is then, with policy Retain.
const TransferAnnotation = "pvbind.github.io/transfer"

// A transferRecord is what must outlast a crash: the claim that the transfer comes from is deleted halfway.
type transferRecord struct {
	From   corev1.ObjectReference               `json:"from"` // namespace, name and UID
	To     corev1.PersistentVolumeClaim         `json:"to"`
	Policy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`
	// Volume is the UID of the volume: one that is restored from a backup may come with an old record.
	Volume types.UID `json:"volume"`
	// PreBound says that this transfer pre-bound the volume to the new claim.
	PreBound bool `json:"preBound,omitempty"`
}

func (r *transferRecord) oldClaim() obj.Key { return obj.ClaimKey(r.From.Namespace, r.From.Name) }

func (r *transferRecord) newClaim() obj.Key { return obj.KeyOf(&r.To) }

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
		err = fmt.Errorf("it is not complete")
	case record.Volume != volume.UID:
		err = fmt.Errorf("it is of a volume with UID %q, and this one has %q: without the annotation there is no transfer", record.Volume, volume.UID)
	}
	if err != nil {
		return nil, fmt.Errorf("pv/%s: metadata.annotations[%s]: %w", volume.Name, TransferAnnotation, err)
	}
	return record, nil
}

// on returns the volume with the record, and with policy Retain.
func (r *transferRecord) on(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.newClaim(), err)
	}
	volume = SetRetain(volume).Volume
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, TransferAnnotation, string(text))
	return volume, nil
}

// off returns the volume without the record, and with the policy it had. That is restored only where it is clear that the
// new claim got the volume by this transfer: it was pre-bound and bound as it was, and the policy is still Retain.
func (r *transferRecord) off(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	volume = volume.DeepCopy()
	if r.PreBound && !phase.BoundByController(volume) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		volume.Spec.PersistentVolumeReclaimPolicy = r.Policy
	}
	delete(volume.Annotations, TransferAnnotation)
	return volume
}

// newClaim returns the claim to create: the requested one, or a copy of the one that has the volume, which may be nil. It
// names the volume, so that it takes no other, and none is provisioned for it (C6 to C8).
func newClaim(to, from *corev1.PersistentVolumeClaim, volume string) corev1.PersistentVolumeClaim {
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
