package binding

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/phase"
	"github.com/pvbind/pvbind/storageclass"
)

// What a claim asks for and a volume has, for each rule that the volume failed (E1).

func deletingValues(_ criteria, v candidate) (asks, has string) {
	return "a volume that stays", "deletionTimestamp " + v.DeletionTimestamp.UTC().Format(time.RFC3339)
}

func claimedValues(c criteria, v candidate) (asks, has string) {
	asks = "an unclaimed volume"
	if v.link == phase.Unclaimed {
		return asks, ownersText(c.ownersOf(v.Name))
	}
	ref := v.Spec.ClaimRef
	has = "claimRef to " + ClaimKey(ref.Namespace, ref.Name).String()
	if v.link == phase.Gone {
		has += " with uid " + string(ref.UID) + ", an earlier claim of that name"
	}
	return asks, has
}

// ownersText is "the owner pvc/shop/data", or "the owners pvc/shop/data, pvc/shop/logs".
func ownersText(owners []Key) string {
	if len(owners) == 1 {
		return "the owner " + owners[0].String()
	}
	return "the owners " + joinKeys(owners)
}

func malformedValues(_ criteria, v candidate) (asks, has string) {
	flaw, _ := flawOf(v.PersistentVolume)
	return flaw.asks, flaw.has
}

func tooSmallValues(c criteria, v candidate) (asks, has string) {
	capacity, _ := capacityOf(v.PersistentVolume)
	return c.request.String(), capacity.String()
}

func accessModesValues(c criteria, v candidate) (asks, has string) {
	return c.modes.String(), modesText(v.Spec.AccessModes)
}

func volumeModeValues(c criteria, v candidate) (asks, has string) {
	return string(c.volumeMode), string(volumeModeOf(v.Spec.VolumeMode))
}

func storageClassValues(c criteria, v candidate) (asks, has string) {
	return orNone(c.class), orNone(storageclass.OfVolume(v.PersistentVolume))
}

func attributesClassValues(c criteria, v candidate) (asks, has string) {
	return orNone(c.attributesClass), orNone(textOf(v.Spec.VolumeAttributesClassName))
}

func selectorValues(c criteria, v candidate) (asks, has string) {
	return metav1.FormatLabelSelector(c.claim.Spec.Selector), orNone(labels.Set(v.Labels).String())
}

func notAvailableValues(_ criteria, v candidate) (asks, has string) {
	return "phase Available", "phase " + string(v.Status.Phase)
}

func nodeAffinityValues(c criteria, v candidate) (asks, has string) {
	required := requiredOf(v.PersistentVolume)
	has = orNone(affinityText(required))
	if _, err := matchLabels(c.node, required); err != nil {
		has += ", malformed: " + err.Error()
	}
	return "node " + c.node.Name, has
}

// delayedValues tells of the node that is awaited or, once the scheduler has chosen it, that a volume is being made there
// (S4).
func delayedValues(c criteria, _ candidate) (asks, has string) {
	if node := c.claim.Annotations[storageclass.SelectedNodeAnnotation]; node != "" {
		return "one made for node " + node + ", which the scheduler chose", "one that was there before"
	}
	return "a node first, as class " + c.class + " is WaitForFirstConsumer", "no node yet"
}

// modesText is the modes in kubectl's short form, or as they stand if one is unknown.
func modesText(modes []corev1.PersistentVolumeAccessMode) string {
	set, err := accessmode.Of(modes...)
	if err == nil {
		return orNone(set.String())
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
