package decision

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/internal/zeromap"
	"github.com/pvbind/pvbind/binding/match"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/reclaim"
)

// PreBind returns the first of the four writes: the volume with a claimRef that names the claim (B1). A volume that a person
// reserved has no bound-by-controller after it, nor that of an earlier binding, so that no controller gives it to others later (V4).
func PreBind(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Action {
	return preBind(volume, claim).Complete()
}

func preBind(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Action {
	reserved := *volume
	reserved.Spec.ClaimRef = referenceTo(claim)
	ours := phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefPreBound
	edit := func(metadata *metav1.ObjectMeta) {
		if ours {
			metav1.SetMetaDataAnnotation(metadata, phase.BoundByControllerAnnotation, "yes")
		} else {
			delete(metadata.Annotations, phase.BoundByControllerAnnotation)
		}
	}
	return update(&reserved, edit, "B1", "pre-bind "+volume.Name+" to "+claim.Namespace+"/"+claim.Name)
}

// bind returns the next of the four writes that bind a volume and a claim (B1 to B4), or Nothing. Its caller has decided that
// the two belong together. A crash after any of the writes leaves a pair that the next decision recognises and continues: the
// volume's claimRef is the record. None begins or goes on with a volume whose storage may be deleted or scrubbed (R8), and none
// begins before it is known that nobody else has the volume (V1). Of one that was made again its owner is known: until a list of all claims
// is had, that claim may be deleted, and then nothing says any more whose data is on it.
func bind(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View, options Options) (Action, error) {
	if claim.UID == "" {
		// A claimRef without a UID is a reservation: written for such a claim it would never be done.
		return Action{}, missingUID(claim)
	}
	if _, sized := match.CapacityOf(volume); !sized && claim.Status.Phase != corev1.ClaimBound {
		return Action{}, match.CheckWellFormed(volume)
	}
	action := nextOfFour(volume, claim)
	if action.Writes() {
		first, blocked := awaitDestruction(volume, claim, view, options)
		if !blocked && action.Rule == "B1" && volume.Spec.ClaimRef == nil && !isKnownOwner(claim, volume, view) {
			first, blocked = checkOwners(volume, view, options)
			blocked = blocked && !(first.Writes() && phase.Owned(claim) == volume.Name) // it has the volume, for whomever that was made
		}
		_, source := view.Claim(claim.Namespace, claim.Name)
		switch {
		case action.Rule == "B1" && (volume.Spec.ClaimRef != nil || claim.Spec.VolumeName == volume.Name):
			// The claim may have another volume by now (W8), or be gone: the volume would be reclaimed for it, with the data that was meant for it.
			action = action.onceLive(source, obj.KeyOf(claim), "B1", "before a volume that may have data is bound to it")
		case action.Rule == "B2":
			action = onceClaimLive(action, volume, source, obj.KeyOf(claim), options)
		}
		if blocked {
			action = first
		}
	}
	state := ClaimBinding
	if action.Kind == Nothing {
		state = ClaimBound
	}
	return action.explained(Explanation{State: state, Volume: volume.Name}), nil
}

// isKnownOwner reports whether a volume without claimRef is the claim's, so that no list of all claims is needed to say whose else it may be (V1). It
// is needed where the claimRef had another's UID since: that one may be Bound by now, which a late cache does not show.
func isKnownOwner(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume, view View) bool {
	return !takenFromAnother(volume, claim, view) && (phase.Owned(claim) == volume.Name || isNew(volume) && ownsThoughLost(claim, volume, view) && !followsAnothers(volume, claim, view))
}

// followsAnothers reports whether the last volume of that name had another claim's UID in its claimRef.
func followsAnothers(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, view View) bool {
	former := view.Former(volume.Name)
	return former != nil && former.Spec.ClaimRef != nil && former.Spec.ClaimRef.UID != "" && former.Spec.ClaimRef.UID != claim.UID
}

// isNew reports whether no controller has looked at a volume yet.
func isNew(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == "" || volume.Status.Phase == corev1.VolumePending
}

func missingUID(claim *corev1.PersistentVolumeClaim) error {
	return &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: "metadata.uid", Problem: "is missing"}
}

// writeName says what one of the four writes sets, by its rule.
func writeName(rule string) string {
	switch rule {
	case "B1":
		return "the volume's claimRef"
	case "B2":
		return "the volume's phase"
	case "B3":
		return "the claim's volumeName"
	}
	return "the claim's status"
}

func nextOfFour(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) Action {
	switch {
	case phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound:
		return preBind(volume, claim)
	case isReservedFor(claim, volume) && phase.BoundByController(volume):
		return withClaimRef(volume, volume.Spec.ClaimRef, "B1", "a person has reserved "+volume.Name+" for "+claim.Namespace+"/"+claim.Name)
	case volume.Status.Phase != corev1.VolumeBound:
		return setPhase(volume, corev1.VolumeBound, "B2", "it is bound to "+claim.Namespace+"/"+claim.Name)
	case claim.Spec.VolumeName != volume.Name || !phase.BindCompleted(claim):
		return complete(claim, volume)
	}
	if bound := boundStatus(claim, volume); bound != nil {
		return updateClaimStatus(bound, "B4", "it is bound to "+volume.Name)
	}
	return nothing("C11", "bound to "+volume.Name)
}

func referenceTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind:            string(obj.KindClaim),
		APIVersion:      corev1.SchemeGroupVersion.String(),
		Namespace:       claim.Namespace,
		Name:            claim.Name,
		UID:             claim.UID,
		ResourceVersion: claim.ResourceVersion,
	}
}

// complete gives the claim the name of its volume and bind-completed (B3). From here on the volume stands for the
// storage that was provisioned for the claim.
func complete(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) Action {
	changed := *claim
	changed.Spec.VolumeName = volume.Name
	edit := func(metadata *metav1.ObjectMeta) {
		if claim.Spec.VolumeName != volume.Name {
			metav1.SetMetaDataAnnotation(metadata, phase.BoundByControllerAnnotation, "yes")
		}
		if !phase.BindCompleted(claim) {
			metav1.SetMetaDataAnnotation(metadata, phase.BindCompletedAnnotation, "yes")
		}
		if volume.Name == ProvisionedName(claim.UID) {
			metadata.Finalizers = without(metadata.Finalizers, ProvisioningFinalizer)
			delete(metadata.Annotations, reclaim.AnnouncementAnnotation)
		}
	}
	return update(&changed, edit, "B3", "it is bound to "+volume.Name)
}

// boundStatus returns the claim with the status that the volume gives it (B4), or nil if it has
// that already. Capacity and attributes class are taken over on the transition alone: afterwards they
// belong to the resizer and the modifier.
func boundStatus(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	from, modes := claim.Status.Phase, volume.Spec.AccessModes
	if from == corev1.ClaimBound && slices.Equal(claim.Status.AccessModes, modes) {
		return nil
	}
	bound := *claim
	bound.Status.Phase = corev1.ClaimBound
	bound.Status.AccessModes = modes
	if from != corev1.ClaimBound {
		bound.Status.Capacity = boundCapacity(claim, volume)
		bound.Status.CurrentVolumeAttributesClassName = nil
		if class := volume.Spec.VolumeAttributesClassName; class != nil && *class != "" {
			bound.Status.CurrentVolumeAttributesClassName = new(*class)
		}
	}
	return &bound
}

// preResizeCapacity on a volume is the size that its file system had before the volume was made
// larger outside the API. A claim that binds to it starts at that size, so that a resizer
// notices the difference (B4).
const preResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity"

// boundCapacity returns the capacity of a claim that becomes Bound: the size before an unfinished resize if
// the volume records one that parses, else the volume's.
func boundCapacity(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) corev1.ResourceList {
	size, capacity := volume.Spec.Capacity[corev1.ResourceStorage], claim.Status.Capacity.DeepCopy()
	if recorded, ok := volume.Annotations[preResizeCapacity]; ok {
		if before, err := quantities.Parse(recorded); err == nil {
			size = before
		}
		zeromap.Put(&capacity, corev1.ResourceStorage, size)
		return capacity
	}
	if actual, ok := capacity[corev1.ResourceStorage]; ok && quantities.Compare(actual, size) == 0 {
		return capacity
	}
	return volume.Spec.Capacity.DeepCopy()
}

// unboundStatus returns the claim in a phase without a volume, Pending or Lost, or nil if it is so
// already. Both clear what only a volume can give (C10).
func unboundStatus(claim *corev1.PersistentVolumeClaim, to corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	status := claim.Status
	if status.Phase == to && len(status.AccessModes) == 0 && len(status.Capacity) == 0 && status.CurrentVolumeAttributesClassName == nil {
		return nil
	}
	unbound := *claim
	unbound.Status.Phase = to
	unbound.Status.AccessModes = nil
	unbound.Status.Capacity = nil
	unbound.Status.CurrentVolumeAttributesClassName = nil
	return &unbound
}

// unbind writes the volume without its claim (V4): free again if a controller set the claimRef, pre-bound as
// the person left it if a person did.
func unbind(volume *corev1.PersistentVolume, rule, why string) Action {
	if !phase.BoundByController(volume) {
		return reserveFor(obj.ReferencedClaim(volume), volume, rule, why)
	}
	return withClaimRef(volume, nil, rule, why)
}

// isReservedFor reports whether a person has reserved the volume by its UID for the claim, which does not name it.
func isReservedFor(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return claim.Spec.VolumeName != volume.Name && IsGivenTo(claim, volume)
}

// IsGivenTo reports whether a person has given the volume by its UID to the claim, which is not Bound to it: no controller chooses one that is Released or Failed,
// whose data, and bound-by-controller, are of an earlier binding, nor one that is Available without that annotation.
func IsGivenTo(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if phase.ClaimRefStateOf(volume, claim) != phase.ClaimRefBound || phase.Owned(claim) == volume.Name {
		return false
	}
	switch volume.Status.Phase {
	case corev1.VolumeReleased, corev1.VolumeFailed:
		return true
	case corev1.VolumeAvailable:
		return !phase.BoundByController(volume)
	}
	return false
}

// RetainUnfinished returns the draft of the write that retains a volume whose claim is gone, or has another volume, and was not seen to be Bound to it
// since that was begun (B1). A crash before this write leaves what a controller that starts then takes for a volume of that claim.
func RetainUnfinished(volume *corev1.PersistentVolume) Action {
	ref := volume.Spec.ClaimRef
	message := fmt.Sprintf("volume %q was being bound to claim %s/%s with UID %s, which is gone, or has another volume, and was not seen to be Bound to it: what is on it may be that claim's, or of before, and its reclaim policy is Retain now; "+
		"to keep it for a claim of that name, remove the UID from its claimRef", volume.Name, ref.Namespace, ref.Name, ref.UID)
	action := update(reclaim.SetRetain(volume).Volume, nil, "B1", message)
	action.Events = []Event{warning(volume, EventVolumeMismatch, message)}
	return action
}

// reserveFor writes the volume as a person pre-binds it to a claim of that name.
func reserveFor(claim obj.Key, volume *corev1.PersistentVolume, rule, why string) Action {
	return withClaimRef(volume, referenceTo(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}), rule, why)
}

// withClaimRef writes the volume with a claimRef that no controller chose.
func withClaimRef(volume *corev1.PersistentVolume, claimRef *corev1.ObjectReference, rule, why string) Action {
	changed := *volume
	changed.Spec.ClaimRef = claimRef
	return update(&changed, func(metadata *metav1.ObjectMeta) {
		delete(metadata.Annotations, phase.BoundByControllerAnnotation)
	}, rule, why)
}
