package reclaim

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pvbind/pvbind/phase"
)

// MoveAnnotation on a volume is the note of a move under way, as JSON: of which volume, from which claim, to which, and
// the reclaim policy to restore. Whoever takes it off ends the move; the volume stays as it is then, and kept.
const MoveAnnotation = "pvbind.github.io/move"

// moveNote is all that a move must remember: the claim it comes from is gone halfway.
type moveNote struct {
	From   moveSource                           `json:"from"`
	To     corev1.PersistentVolumeClaim         `json:"to"`
	Policy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`
	// Volume is the UID of the volume: one that is restored from a backup may come with an old note.
	Volume types.UID `json:"volume"`
	// SetAside is that this move set the volume aside for the new claim.
	SetAside bool `json:"setAside,omitempty"`
}

type moveSource struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

func (s moveSource) String() string { return s.Namespace + "/" + s.Name }

// moveOf reads the note; nil if there is none.
func moveOf(volume *corev1.PersistentVolume) (*moveNote, error) {
	text, moving := volume.Annotations[MoveAnnotation]
	if !moving {
		return nil, nil
	}
	note := &moveNote{}
	err := json.Unmarshal([]byte(text), note)
	if err == nil && (note.From.UID == "" || note.To.Namespace == "" || note.To.Name == "" || note.Policy == "") {
		err = fmt.Errorf("it is not complete")
	}
	if err == nil && note.Volume != volume.UID {
		err = fmt.Errorf("it is of a volume with UID %q, and this one has %q: without the annotation there is no move", note.Volume, volume.UID)
	}
	if err != nil {
		return nil, fmt.Errorf("pv/%s: metadata.annotations[%s]: %w", volume.Name, MoveAnnotation, err)
	}
	return note, nil
}

// setAside is the volume set aside for the new claim, and the note of it.
func (n moveNote) setAside(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	n.SetAside = true
	return n.noted(reserved(volume, &n.To))
}

// noted is the volume with the note, and kept.
func (n moveNote) noted(volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("pvc/%s: %w", nameOf(&n.To), err)
	}
	noted := volume.DeepCopy()
	noted.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	metav1.SetMetaDataAnnotation(&noted.ObjectMeta, MoveAnnotation, string(text))
	return noted, nil
}

// ended is the volume without the note, and with the policy it had. That is restored only where it is clear that the new
// claim has the volume by this move: it was set aside and bound as it was, and nobody gave it another policy meanwhile.
func (n moveNote) ended(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	ended := volume.DeepCopy()
	if n.SetAside && !phase.BoundByController(volume) && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		ended.Spec.PersistentVolumeReclaimPolicy = n.Policy
	}
	delete(ended.Annotations, MoveAnnotation)
	return ended
}
