package match

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// situation is how a claim and a volume are related. It decides which rules apply.
type situation uint8

const (
	noClaimRef     situation = 1 << iota // the volume has no claimRef
	othersClaimRef                       // its claimRef names another claim, or has a stale UID
	ownClaimRef                          // its claimRef names the claim: it is bound or pre-bound to it (M12)
	namedByClaim                         // the claim names the volume (C7)

	searched = noClaimRef | othersClaimRef
	always   = searched | ownClaimRef | namedByClaim
)

func (c *Criteria) situation(v candidate) situation {
	switch {
	case c.named:
		return namedByClaim
	case v.state == phase.ClaimRefNone:
		return noClaimRef
	case v.ours():
		return ownClaimRef
	}
	return othersClaimRef
}

// fitRule is one way in which a volume can fail to fit a claim.
//
// The functions take the criteria by value: a pointer given to a function value would move every
// Criteria to the heap, and matching must not allocate.
type fitRule struct {
	reason  Reason
	subject string // the property in a sentence, such as "its size"
	applies situation
	fails   func(Criteria, candidate) bool
	values  func(Criteria, candidate) (requested, actual string)
}

// fitRules are the M rules in their order. Decision and explanation both come from here (E3).
var fitRules = [...]fitRule{
	{Deleting, "its deletion", always, failsDeleting, deletingValues},
	{BoundToAnotherClaim, "its owner", searched, failsOtherClaim, otherClaimValues},
	{Malformed, "its malformed spec", always, failsMalformed, malformedValues},
	{TooSmall, "its size", always, failsTooSmall, tooSmallValues},
	{AccessModes, "its access modes", always, failsAccessModes, accessModesValues},
	{VolumeMode, "its volume mode", always, failsVolumeMode, volumeModeValues},
	{StorageClass, "its class", searched | namedByClaim, failsStorageClass, storageClassValues},
	{AttributesClass, "its attributes class", always, failsAttributesClass, attributesClassValues},
	{Selector, "its labels", searched, failsSelector, selectorValues},
	{NotAvailable, "its state", noClaimRef, failsNotAvailable, notAvailableValues},
	{NodeAffinity, "its node affinity", searched | ownClaimRef, failsNodeAffinity, nodeAffinityValues},
	{WaitForFirstConsumer, "the wait for its first consumer", noClaimRef, failsWaitForFirstConsumer, waitValues},
}

func failsDeleting(_ Criteria, v candidate) bool { return v.DeletionTimestamp != nil }

func failsOtherClaim(c Criteria, v candidate) bool {
	if v.state != phase.ClaimRefNone {
		return true
	}
	return OwnedByAnother(obj.KeyOf(c.Claim), c.ownersOf(v.Name))
}

func (c *Criteria) ownersOf(volume string) []obj.Key {
	if c.Owners == nil {
		return nil
	}
	return c.Owners(volume)
}

// OwnedByAnother reports whether a volume with these owners cannot be the claim's: it belongs to another claim, or to
// several, of which none can have it.
func OwnedByAnother(claim obj.Key, owners []obj.Key) bool {
	return len(owners) > 1 || len(owners) == 1 && owners[0] != claim
}

func failsMalformed(c Criteria, v candidate) bool {
	return !c.WellFormed && flawOf(v.PersistentVolume) != nil
}

func failsTooSmall(c Criteria, v candidate) bool {
	capacity, sized := CapacityOf(v.PersistentVolume)
	return sized && quantities.Compare(capacity, c.Request) < 0
}

// failsAccessModes looks each mode up by itself, so that it has an answer for a volume with an
// unknown mode too.
func failsAccessModes(c Criteria, v candidate) bool {
	missing := c.Modes
	for i := 0; i < len(v.Spec.AccessModes) && missing != 0; i++ {
		offered, _ := accessmode.Of(v.Spec.AccessModes[i])
		missing &^= offered
	}
	return missing != 0
}

func failsVolumeMode(c Criteria, v candidate) bool {
	return VolumeModeOf(v.Spec.VolumeMode) != c.VolumeMode
}

func failsStorageClass(c Criteria, v candidate) bool {
	return storageclass.OfVolume(v.PersistentVolume) != c.Class
}

func failsAttributesClass(c Criteria, v candidate) bool {
	return textOf(v.Spec.VolumeAttributesClassName) != c.AttributesClass
}

func failsSelector(c Criteria, v candidate) bool { return !c.Selects(v.PersistentVolume) }

func failsNotAvailable(_ Criteria, v candidate) bool {
	switch v.Status.Phase {
	case corev1.VolumeAvailable, corev1.VolumePending, "":
		return v.announced()
	}
	return true
}

func failsNodeAffinity(c Criteria, v candidate) bool { return !c.Usable(v.PersistentVolume) }

func failsWaitForFirstConsumer(c Criteria, _ candidate) bool {
	return c.WaitsForFirstConsumer && c.Node == nil
}

// candidate is a volume as seen by one claim.
type candidate struct {
	*corev1.PersistentVolume
	state phase.ClaimRefState
}

func (c *Criteria) candidate(volume *corev1.PersistentVolume) candidate {
	state := phase.ClaimRefStateOf(volume, c.Claim)
	if state == phase.ClaimRefNone && volume.Spec.ClaimRef != nil && c.Claim.Spec.VolumeName != volume.Name {
		state = phase.ClaimRefOther // C11 and C7 write it again; a claim that names no volume finds it as little as any other does
	}
	return candidate{PersistentVolume: volume, state: state}
}

// ours reports whether the volume is bound or pre-bound to the claim.
func (v candidate) ours() bool {
	return v.state == phase.ClaimRefPreBound || v.state == phase.ClaimRefBound
}

// announced reports whether the storage of the volume is about to be destroyed, or may have been (R8).
func (v candidate) announced() bool {
	_, announced := v.Annotations[phase.AnnouncementAnnotation]
	return announced
}

// The values functions return what the claim requests and what the volume has, for a rule that the volume failed (E1).

func deletingValues(_ Criteria, v candidate) (requested, actual string) {
	return "a volume that stays", "deletionTimestamp " + v.DeletionTimestamp.UTC().Format(time.RFC3339)
}

func otherClaimValues(c Criteria, v candidate) (requested, actual string) {
	requested = "an unclaimed volume"
	if v.state == phase.ClaimRefNone {
		return requested, OwnersText(c.ownersOf(v.Name))
	}
	ref := v.Spec.ClaimRef
	actual = "claimRef to " + obj.ReferencedClaim(v.PersistentVolume).String()
	if v.state == phase.ClaimRefStale {
		actual += " with uid " + string(ref.UID) + ", an earlier claim of that name"
	}
	return requested, actual
}

// OwnersText returns "the owner pvc/shop/data", or "the owners pvc/shop/data, pvc/shop/logs".
func OwnersText(owners []obj.Key) string {
	if len(owners) == 1 {
		return "the owner " + owners[0].String()
	}
	return "the owners " + oneline.Join(owners, ", ", obj.Key.String)
}

func malformedValues(_ Criteria, v candidate) (requested, actual string) {
	flaw := flawOf(v.PersistentVolume)
	return flaw.requested, flaw.actual
}

func tooSmallValues(c Criteria, v candidate) (requested, actual string) {
	capacity, _ := CapacityOf(v.PersistentVolume)
	return quantities.Text(c.Request), quantities.Text(capacity)
}

func accessModesValues(c Criteria, v candidate) (requested, actual string) {
	return c.Modes.String(), modesText(v.Spec.AccessModes)
}

func volumeModeValues(c Criteria, v candidate) (requested, actual string) {
	return string(c.VolumeMode), string(VolumeModeOf(v.Spec.VolumeMode))
}

func storageClassValues(c Criteria, v candidate) (requested, actual string) {
	return oneline.OrNone(c.Class), oneline.OrNone(storageclass.OfVolume(v.PersistentVolume))
}

func attributesClassValues(c Criteria, v candidate) (requested, actual string) {
	return oneline.OrNone(c.AttributesClass), oneline.OrNone(textOf(v.Spec.VolumeAttributesClassName))
}

func selectorValues(c Criteria, v candidate) (requested, actual string) {
	return selectorText(c.Claim.Spec.Selector), labelsText(v.Labels)
}

func notAvailableValues(_ Criteria, v candidate) (requested, actual string) {
	requested, actual = "phase Available", "phase "+string(v.Status.Phase)
	if v.announced() {
		requested += " and storage that stays"
		actual = "phase " + oneline.OrNone(string(v.Status.Phase)) + " and annotation " + phase.AnnouncementAnnotation + " (see the volume's events)"
	}
	return requested, actual
}

func nodeAffinityValues(c Criteria, v candidate) (requested, actual string) {
	required := RequiredAffinity(v.PersistentVolume)
	actual = oneline.OrNone(AffinityText(required))
	affinity := AffinityOf(v.PersistentVolume)
	if err := affinity.malformed(c.Node); err != nil {
		actual += ", malformed: " + oneline.Text(err.Error(), maxProblem)
	}
	return "node " + c.Node.Name, actual
}

// waitValues says that a node is awaited or, once the scheduler has chosen it, that a volume is being made there (S4).
func waitValues(c Criteria, _ candidate) (requested, actual string) {
	if node := storageclass.SelectedNode(c.Claim); node != "" {
		return "a volume provisioned for node " + node + " (selected-node)", "an existing volume"
	}
	return "a node first, as class " + c.Class + " is WaitForFirstConsumer", "no node yet"
}

// modesText returns the modes in kubectl's short form, or as they are if one is unknown.
func modesText(modes []corev1.PersistentVolumeAccessMode) string {
	if set, err := accessmode.Of(modes...); err == nil {
		return oneline.OrNone(set.String())
	}
	return oneline.Join(modes, ",", func(mode corev1.PersistentVolumeAccessMode) string { return string(mode) })
}
