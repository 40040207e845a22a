package reclaim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
)

// Change is what an operation writes: the whole volume, on the resourceVersion that was decided on, and what that puts
// at risk. The volume is a copy, and equal to the given one where nothing is to be done.
type Change struct {
	Volume   *corev1.PersistentVolume
	Warnings []Warning
}

// MakeAvailable frees a volume whose claim is gone for any claim that it fits. It removes claimRef and
// bound-by-controller; the phase follows. For a volume without claimRef it takes a list of all claims to know that its
// claim is gone (R7, V1).
//
// It fails with an *Error, which has the reasons and the risks that the caller can accept.
func MakeAvailable(volume *corev1.PersistentVolume, known Known, accepting ...Risk) (Change, error) {
	r := review{operation: "make available", volume: volume, known: known, accepted: accepting}
	r.checkRelease("whoever gets it")
	if err := r.err(); err != nil {
		return Change{}, err
	}
	freed := volume.DeepCopy()
	freed.Spec.ClaimRef = nil
	delete(freed.Annotations, phase.BoundByControllerAnnotation)
	return Change{freed, r.warnings}, nil
}

// Reserve pre-binds a volume to a claim that exists or is to come: its claimRef names the claim without a UID. It removes
// bound-by-controller, or the next controller would undo the reservation. Of a claim to come only namespace and name are
// needed; the volume must fit what else it says, as far as that counts for a reservation. Whether the claim exists must
// have been read: one that does may have a volume already, or not fit.
//
// A controller binds the claim as soon as it exists. One that is created with spec.volumeName takes no other volume
// meanwhile.
//
// It fails with an *Error, or if the claim has no name (R7, V4, M12).
func Reserve(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, known Known, accepting ...Risk) (Change, error) {
	if claim.Name == "" || claim.Namespace == "" {
		return Change{}, fmt.Errorf("pvc/%s: metadata: namespace and name are required", nameOf(claim))
	}
	r := review{operation: "reserve", volume: volume, known: known, accepted: accepting}
	existing, _ := r.claim(obj.KeyOf(claim)) // one that exists may have a volume, or not fit
	if existing != nil {
		claim = existing
	}
	switch state := phase.ClaimRefStateOf(volume, claim); {
	case state == phase.ClaimRefBound && existing != nil:
		return Change{Volume: volume.DeepCopy()}, nil
	case state == phase.ClaimRefPreBound:
		r.checkVolume()
	default:
		r.checkRelease(nameOf(claim))
	}
	r.checkClaim(claim)
	if err := r.err(); err != nil {
		return Change{}, err
	}
	return Change{preBound(volume, claim), r.warnings}, nil
}

// preBound returns the volume pre-bound to the claim.
func preBound(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	volume = volume.DeepCopy()
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind:       "PersistentVolumeClaim",
		APIVersion: corev1.SchemeGroupVersion.String(),
		Namespace:  claim.Namespace,
		Name:       claim.Name,
	}
	delete(volume.Annotations, phase.BoundByControllerAnnotation)
	return volume
}

// SetRetain sets the reclaim policy to Retain, so that the claim can be deleted and the data stays. The controller then
// removes the deletion finalizers. A transfer that is under way leaves it so in the end. SetRetain destroys nothing and never
// fails; it warns if reclaiming may have begun (R6, R7).
func SetRetain(volume *corev1.PersistentVolume) Change {
	kept := retain(volume)
	record, err := recordOf(volume)
	if err != nil || record == nil {
		return kept
	}
	record.Policy = corev1.PersistentVolumeReclaimRetain
	if recorded, err := record.addTo(volume); err == nil {
		kept.Volume = recorded
	}
	return kept
}

// PolicyAfterTransfer returns the reclaim policy that a volume is to have when the transfer that is under way has ended, and its own where none
// is: Retain is the policy of every volume during a transfer (R7).
func PolicyAfterTransfer(volume *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if record, err := recordOf(volume); err == nil && record != nil {
		return record.Policy
	}
	return volume.Spec.PersistentVolumeReclaimPolicy
}

// retain is SetRetain for as long as a transfer takes.
func retain(volume *corev1.PersistentVolume) Change {
	var r review
	destroys := volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain
	if at := volume.Status.Phase; destroys && (at == corev1.VolumeReleased || at == corev1.VolumeFailed) {
		r.warn(DataDestroyed, "it is %s, so that reclaiming it may have begun", at)
	}
	if volume.DeletionTimestamp != nil {
		r.warn(VolumeLost, "the volume is being deleted and will be gone; only its storage is kept")
	}
	kept := volume.DeepCopy()
	kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	return Change{kept, r.warnings}
}

// Known holds what was read from the API server itself since the last write. What a cache holds may be old, and what it
// lacks may exist. In its zero value nothing is known. Nothing in it is modified.
type Known struct {
	Volumes []*corev1.PersistentVolume
	Claims  []*corev1.PersistentVolumeClaim
	// AllClaims says that Claims holds every claim of every namespace, from one list: one that it lacks does not exist.
	AllClaims bool
	// Pods has all pods of a namespace, by the namespace; an empty list says that there are none.
	Pods map[string][]*corev1.Pod
	// Missing has what was read and does not exist: volumes, claims, and by obj.PodsKey the pods of a namespace that has none.
	Missing []obj.Key
}

// volume returns the volume of that name. Nil and known: it does not exist.
func (k Known) volume(name string) (volume *corev1.PersistentVolume, known bool) {
	for _, volume := range k.Volumes {
		if volume.Name == name {
			return volume, true
		}
	}
	return nil, slices.Contains(k.Missing, obj.VolumeKey(name))
}

// claim returns the claim of that key. Nil and known: it does not exist.
func (k Known) claim(key obj.Key) (claim *corev1.PersistentVolumeClaim, known bool) {
	for _, claim := range k.Claims {
		if obj.KeyOf(claim) == key {
			return claim, true
		}
	}
	return nil, k.AllClaims || slices.Contains(k.Missing, key)
}

// owners returns the claims whose data a volume may have, whatever its claimRef says, in order: those that are Bound to it, those that
// are Lost and name it where there is no UID in claimRef, and the one that names it and has the UID in claimRef. They are known only from a list of all claims (M2).
func (k Known) owners(volume *corev1.PersistentVolume) (owners []*corev1.PersistentVolumeClaim, known bool) {
	nobody := volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == ""
	for _, claim := range k.Claims {
		lost := phase.Lost(claim) == volume.Name && nobody
		if phase.Owned(claim) == volume.Name || lost || phase.Claims(claim, volume) {
			owners = append(owners, claim)
		}
	}
	slices.SortFunc(owners, func(a, b *corev1.PersistentVolumeClaim) int {
		return obj.CompareKeys(obj.KeyOf(a), obj.KeyOf(b))
	})
	return owners, k.AllClaims
}

// users returns the pods that may use what a claim had, by R4: again is the claim that has its name now, and another volume, if there is one.
func (k Known) users(claim obj.Key, again *corev1.PersistentVolumeClaim) (pods []*corev1.Pod, known bool) {
	all, known := k.Pods[claim.Namespace]
	return BlockRecycling(all, claim.Namespace, claim.Name, again), known || slices.Contains(k.Missing, obj.PodsKey(claim.Namespace))
}

// Risk is what an operation can do to data, or to those who use it. An operation that fails because of a risk goes on
// for a caller who accepts it (R7).
type Risk string

// The risks.
const (
	// DataDisclosed means that whoever gets the volume next can read what its last claim left on it.
	DataDisclosed Risk = "DataDisclosed"
	// DataDestroyed means that the data is, or may be, deleted or scrubbed, as the reclaim policy says.
	DataDestroyed Risk = "DataDestroyed"
	// PodsDisturbed means that pods that use the volume lose it, or share it with others.
	PodsDisturbed Risk = "PodsDisturbed"
	// VolumeLost means that a claim that exists loses its volume.
	VolumeLost Risk = "VolumeLost"
	// ReservationLost means that a claim to which somebody pre-bound the volume does not get it.
	ReservationLost Risk = "ReservationLost"
)

// A Warning is a risk that a change runs, and how.
type Warning struct {
	Risk    Risk
	Message string // which data of whom is at risk, in one line
}

// String returns risk and message: "DataDisclosed: whoever gets the volume can read what shop/data left on it".
func (w Warning) String() string { return string(w.Risk) + ": " + w.Message }

// ReasonCode is the kind of a Reason.
type ReasonCode string

// The codes of reasons.
const (
	// Unknown means that something was not read from the server; Reason.Read says what. What a cache lacks may exist.
	Unknown ReasonCode = "Unknown"
	// Deleting means that the volume or the claim is being deleted.
	Deleting ReasonCode = "Deleting"
	// ClaimLives means that the claim that has the volume exists, or one that is Bound to it, or Lost, though its claimRef is
	// gone, has a slip, or names another one without UID. Whoever accepts VolumeLost takes the volume from it.
	ClaimLives ReasonCode = "ClaimLives"
	// InUse means that pods that have not finished use the volume. Accept PodsDisturbed to go on.
	InUse ReasonCode = "InUse"
	// PolicyDestroys means that the claim is gone and the reclaim policy is not Retain, so that the data may be on its
	// way out. Use SetRetain first, or accept DataDestroyed to go on.
	PolicyDestroys ReasonCode = "PolicyDestroys"
	// PreBound means that the volume is pre-bound to another claim. Accept ReservationLost to go on.
	PreBound ReasonCode = "PreBound"
	// Unfit means that the volume is not what the claim that is to have it requests (M3 to M5, M7).
	Unfit ReasonCode = "Unfit"
	// Taken means that the claim that is to have the volume has, or had, a volume, or that the volume is not that of the
	// claim it is to be transferred from.
	Taken ReasonCode = "Taken"
	// Transferring means that a transfer of the volume is under way.
	Transferring ReasonCode = "Transferring"
	// Missing means that what is to be transferred does not exist, or not where it is to be transferred to.
	Missing ReasonCode = "Missing"
)

// acceptable has the risk that a caller has to accept to go on in spite of a reason.
var acceptable = map[ReasonCode]Risk{
	ClaimLives:     VolumeLost,
	InUse:          PodsDisturbed,
	PolicyDestroys: DataDestroyed,
	PreBound:       ReservationLost,
}

// A Reason is one of the reasons why an operation fails.
type Reason struct {
	Code    ReasonCode
	Message string // with the values that count, in one line
	// Risk is what a caller has to accept to go on; "" if the reason stands whatever is accepted.
	Risk Risk
	// Read is what to read from the server, for Unknown.
	Read obj.Key
}

// String returns the reason in one line: "PolicyDestroys: the reclaim policy is Delete (unless DataDestroyed is accepted)".
func (r Reason) String() string {
	text := string(r.Code) + ": " + r.Message
	if r.Risk != "" {
		text += " (unless " + string(r.Risk) + " is accepted)"
	}
	return text
}

// Error is the error of an operation that fails because of what is known of the objects. Nothing is to be written.
type Error struct {
	Operation string // "make available", "reserve" or "transfer"
	Volume    string
	Reasons   []Reason // all of them; never empty
}

// Error returns the volume and every reason, in one line.
func (e *Error) Error() string {
	texts := make([]string, len(e.Reasons))
	for i, reason := range e.Reasons {
		texts[i] = reason.String()
	}
	return "cannot " + e.Operation + " pv/" + e.Volume + ": " + strings.Join(texts, "; ")
}

// Reads returns what to read from the server before the operation is tried again; none if that would not help.
func (e *Error) Reads() []obj.Key {
	var reads []obj.Key
	for _, reason := range e.Reasons {
		if reason.Code == Unknown {
			reads = append(reads, reason.Read)
		}
	}
	return reads
}
