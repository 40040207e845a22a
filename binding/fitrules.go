package binding

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

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

func (c *criteria) situation(link phase.Link) situation {
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
	fails   func(criteria, candidate) bool
	values  func(criteria, candidate) (asks, has string)
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

func failsDeleting(_ criteria, v candidate) bool { return v.DeletionTimestamp != nil }

func failsClaimed(c criteria, v candidate) bool {
	if v.link != phase.Unclaimed {
		return true
	}
	return keptFrom(KeyOf(c.claim), c.ownersOf(v.Name))
}

func (c *criteria) ownersOf(volume string) []Key {
	if c.owners == nil {
		return nil
	}
	return c.owners(volume)
}

// keptFrom reports whether a volume with these owners fits the claim in no case: it belongs to another one, or to
// several, of which none can have it.
func keptFrom(claim Key, owners []Key) bool {
	return len(owners) > 1 || len(owners) == 1 && owners[0] != claim
}

func failsMalformed(_ criteria, v candidate) bool {
	_, malformed := flawOf(v.PersistentVolume)
	return malformed
}

func failsTooSmall(c criteria, v candidate) bool {
	capacity, sized := capacityOf(v.PersistentVolume)
	return sized && compareQuantities(capacity, c.request) < 0
}

// failsAccessModes looks each mode up by itself, so that it has an answer for a volume with an
// unknown mode too.
func failsAccessModes(c criteria, v candidate) bool {
	for _, mode := range c.claim.Spec.AccessModes {
		if !slices.Contains(v.Spec.AccessModes, mode) {
			return true
		}
	}
	return false
}

func failsVolumeMode(c criteria, v candidate) bool {
	return volumeModeOf(v.Spec.VolumeMode) != c.volumeMode
}

func failsStorageClass(c criteria, v candidate) bool {
	return storageclass.OfVolume(v.PersistentVolume) != c.class
}

func failsAttributesClass(c criteria, v candidate) bool {
	return textOf(v.Spec.VolumeAttributesClassName) != c.attributesClass
}

func failsSelector(c criteria, v candidate) bool {
	return c.selector != nil && !c.selector.Matches(labels.Set(v.Labels))
}

func failsNotAvailable(_ criteria, v candidate) bool {
	switch v.Status.Phase {
	case corev1.VolumeAvailable, corev1.VolumePending, "":
		return false
	}
	return true
}

func failsNodeAffinity(c criteria, v candidate) bool {
	return c.node != nil && !usableOn(c.node, v.PersistentVolume)
}

func failsDelayed(c criteria, _ candidate) bool { return c.delayed && c.node == nil }
