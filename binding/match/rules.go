package match

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// situation is how a claim comes upon a volume. Which rules count depends on it.
type situation uint8

const (
	whenFree     situation = 1 << iota // Unclaimed
	whenTaken                          // Gone, Other
	whenSetAside                       // Reserved, Held (M12)
	whenNamed                          // the claim names the volume (C7)

	whenSought = whenFree | whenTaken
	always     = whenSought | whenSetAside | whenNamed
)

func (c *Criteria) situation(link phase.Link) situation {
	switch {
	case c.byName:
		return whenNamed
	case link == phase.Unclaimed:
		return whenFree
	case link == phase.Reserved, link == phase.Held:
		return whenSetAside
	}
	return whenTaken
}

// fitRule is one way in which a volume can fail to fit a claim.
//
// The functions take the criteria by value: a pointer given to a function value would move every
// criteria to the heap, and a match shall not allocate.
type fitRule struct {
	reason  Reason
	subject string // what of the volume, in a sentence
	counts  situation
	fails   func(Criteria, candidate) bool
	values  func(Criteria, candidate) (asks, has string)
}

// fitRules are the M rules in their order. Decision and explanation both come from here (E3).
var fitRules = [...]fitRule{
	{Deleting, "its deletion", always, failsDeleting, deletingValues},
	{Claimed, "its owner", whenSought, failsClaimed, claimedValues},
	{Malformed, "its malformed spec", always, failsMalformed, malformedValues},
	{TooSmall, "its size", always, failsTooSmall, tooSmallValues},
	{AccessModes, "its access modes", always, failsAccessModes, accessModesValues},
	{VolumeMode, "its volume mode", always, failsVolumeMode, volumeModeValues},
	{StorageClass, "its class", whenSought | whenNamed, failsStorageClass, storageClassValues},
	{AttributesClass, "its attributes class", always, failsAttributesClass, attributesClassValues},
	{Selector, "its labels", whenSought, failsSelector, selectorValues},
	{NotAvailable, "its state", whenFree, failsNotAvailable, notAvailableValues},
	{NodeAffinity, "its node affinity", whenSought | whenSetAside, failsNodeAffinity, nodeAffinityValues},
	{Delayed, "the delay", whenFree, failsDelayed, delayedValues},
}

func failsDeleting(_ Criteria, v candidate) bool { return v.DeletionTimestamp != nil }

func failsClaimed(c Criteria, v candidate) bool {
	if v.link != phase.Unclaimed {
		return true
	}
	return KeptFrom(obj.KeyOf(c.Claim), c.ownersOf(v.Name))
}

func (c *Criteria) ownersOf(volume string) []obj.Key {
	if c.Owners == nil {
		return nil
	}
	return c.Owners(volume)
}

// KeptFrom reports whether a volume with these owners fits the claim in no case: it belongs to another one, or to
// several, of which none can have it.
func KeptFrom(claim obj.Key, owners []obj.Key) bool {
	return len(owners) > 1 || len(owners) == 1 && owners[0] != claim
}

func failsMalformed(_ Criteria, v candidate) bool {
	_, malformed := flawOf(v.PersistentVolume)
	return malformed
}

func failsTooSmall(c Criteria, v candidate) bool {
	capacity, sized := CapacityOf(v.PersistentVolume)
	return sized && quantities.Compare(capacity, c.Request) < 0
}

// failsAccessModes looks each mode up by itself, so that it has an answer for a volume with an
// unknown mode too.
func failsAccessModes(c Criteria, v candidate) bool {
	for _, mode := range c.Claim.Spec.AccessModes {
		if !slices.Contains(v.Spec.AccessModes, mode) {
			return true
		}
	}
	return false
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

func failsSelector(c Criteria, v candidate) bool {
	return c.Selector != nil && !c.Selector.Matches(labels.Set(v.Labels))
}

func failsNotAvailable(_ Criteria, v candidate) bool {
	switch v.Status.Phase {
	case corev1.VolumeAvailable, corev1.VolumePending, "":
		return false
	}
	return true
}

func failsNodeAffinity(c Criteria, v candidate) bool {
	return c.Node != nil && !UsableOn(c.Node, v.PersistentVolume)
}

func failsDelayed(c Criteria, _ candidate) bool { return c.Delayed && c.Node == nil }

// candidate is a volume as seen by one claim.
type candidate struct {
	*corev1.PersistentVolume
	link phase.Link
}

func (c *Criteria) candidate(volume *corev1.PersistentVolume) candidate {
	return candidate{PersistentVolume: volume, link: phase.LinkOf(volume, c.Claim)}
}

// exists tells a candidate from the zero value.
func (v candidate) exists() bool { return v.PersistentVolume != nil }

// setAside reports whether the volume is Reserved for or Held by the claim.
func (v candidate) setAside() bool { return v.link == phase.Reserved || v.link == phase.Held }

// What a claim asks for and a volume has, for each rule that the volume failed (E1).

func deletingValues(_ Criteria, v candidate) (asks, has string) {
	return "a volume that stays", "deletionTimestamp " + v.DeletionTimestamp.UTC().Format(time.RFC3339)
}

func claimedValues(c Criteria, v candidate) (asks, has string) {
	asks = "an unclaimed volume"
	if v.link == phase.Unclaimed {
		return asks, OwnersText(c.ownersOf(v.Name))
	}
	ref := v.Spec.ClaimRef
	has = "claimRef to " + obj.ClaimKey(ref.Namespace, ref.Name).String()
	if v.link == phase.Gone {
		has += " with uid " + string(ref.UID) + ", an earlier claim of that name"
	}
	return asks, has
}

// OwnersText is "the owner pvc/shop/data", or "the owners pvc/shop/data, pvc/shop/logs".
func OwnersText(owners []obj.Key) string {
	if len(owners) == 1 {
		return "the owner " + owners[0].String()
	}
	return "the owners " + obj.JoinKeys(owners)
}

func malformedValues(_ Criteria, v candidate) (asks, has string) {
	flaw, _ := flawOf(v.PersistentVolume)
	return flaw.asks, flaw.has
}

func tooSmallValues(c Criteria, v candidate) (asks, has string) {
	capacity, _ := CapacityOf(v.PersistentVolume)
	return c.Request.String(), capacity.String()
}

func accessModesValues(c Criteria, v candidate) (asks, has string) {
	return c.Modes.String(), modesText(v.Spec.AccessModes)
}

func volumeModeValues(c Criteria, v candidate) (asks, has string) {
	return string(c.VolumeMode), string(VolumeModeOf(v.Spec.VolumeMode))
}

func storageClassValues(c Criteria, v candidate) (asks, has string) {
	return oneline.OrNone(c.Class), oneline.OrNone(storageclass.OfVolume(v.PersistentVolume))
}

func attributesClassValues(c Criteria, v candidate) (asks, has string) {
	return oneline.OrNone(c.AttributesClass), oneline.OrNone(textOf(v.Spec.VolumeAttributesClassName))
}

func selectorValues(c Criteria, v candidate) (asks, has string) {
	return metav1.FormatLabelSelector(c.Claim.Spec.Selector), oneline.OrNone(labels.Set(v.Labels).String())
}

func notAvailableValues(_ Criteria, v candidate) (asks, has string) {
	return "phase Available", "phase " + string(v.Status.Phase)
}

func nodeAffinityValues(c Criteria, v candidate) (asks, has string) {
	required := RequiredAffinity(v.PersistentVolume)
	has = oneline.OrNone(AffinityText(required))
	if _, err := matchLabels(c.Node, required); err != nil {
		has += ", malformed: " + err.Error()
	}
	return "node " + c.Node.Name, has
}

// delayedValues tells of the node that is awaited or, once the scheduler has chosen it, that a volume is being made there
// (S4).
func delayedValues(c Criteria, _ candidate) (asks, has string) {
	if node := c.Claim.Annotations[storageclass.SelectedNodeAnnotation]; node != "" {
		return "one made for node " + node + ", which the scheduler chose", "one that was there before"
	}
	return "a node first, as class " + c.Class + " is WaitForFirstConsumer", "no node yet"
}

// modesText is the modes in kubectl's short form, or as they stand if one is unknown.
func modesText(modes []corev1.PersistentVolumeAccessMode) string {
	set, err := accessmode.Of(modes...)
	if err == nil {
		return oneline.OrNone(set.String())
	}
	text := ""
	for i, mode := range modes {
		if i > 0 {
			text += ","
		}
		text += string(mode)
	}
	return text
}
