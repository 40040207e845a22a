package match

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/internal/quantities"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// CheckWellFormed returns an *obj.InvalidError if no claim can be bound to the volume, whatever it requests (X7).
func CheckWellFormed(volume *corev1.PersistentVolume) error {
	if flaw := flawOf(volume); flaw != nil {
		return &obj.InvalidError{Object: obj.VolumeKey(volume.Name).String(), Field: flaw.field, Problem: flaw.problem}
	}
	return nil
}

// flaw is what is wrong with the spec of a volume, in the words of an error and in those of a Mismatch.
type flaw struct {
	field, problem    string
	requested, actual string
}

// flawOf is the one place that recognises malformed volumes. It returns nil for others.
func flawOf(volume *corev1.PersistentVolume) *flaw {
	if _, err := accessmode.Of(volume.Spec.AccessModes...); err != nil {
		return &flaw{"spec.accessModes", err.Error(), "known access modes", err.Error()}
	}
	if mode := VolumeModeOf(volume.Spec.VolumeMode); !knownMode(mode) {
		return &flaw{"spec.volumeMode", "unknown: " + string(mode), "a known volume mode", string(mode)}
	}
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	switch {
	case !ok:
		return &flaw{"spec.capacity[storage]", "is missing", "a storage capacity", oneline.None}
	case capacity.Sign() < 0:
		return &flaw{"spec.capacity[storage]", "is negative: " + quantities.Text(capacity), "a storage capacity", quantities.Text(capacity)}
	}
	return nil
}

// Unavailable returns the first reason why no claim at all can choose the volume, whosever it is: Deleting, Malformed or
// NotAvailable; "" if there is none.
func Unavailable(volume *corev1.PersistentVolume) Reason {
	v := candidate{PersistentVolume: volume}
	switch {
	case failsDeleting(Criteria{}, v):
		return Deleting
	case failsMalformed(Criteria{}, v):
		return Malformed
	case failsNotAvailable(Criteria{}, v):
		return NotAvailable
	}
	return ""
}

// CapacityOf returns the volume's capacity; false if it has none that could be compared.
func CapacityOf(volume *corev1.PersistentVolume) (resource.Quantity, bool) {
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	return capacity, ok && capacity.Sign() >= 0
}

// VolumeModeOf returns the mode that a field of a claim or volume stands for: Filesystem, if it is not set (M5).
func VolumeModeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

func knownMode(mode corev1.PersistentVolumeMode) bool {
	return mode == corev1.PersistentVolumeFilesystem || mode == corev1.PersistentVolumeBlock
}

// Group is what a volume must have in common with a claim to be chosen for it (M5 to M7).
type Group struct {
	VolumeMode      corev1.PersistentVolumeMode
	Class           string
	AttributesClass string
}

// GroupOf returns the group of a volume.
func GroupOf(volume *corev1.PersistentVolume) Group {
	return Group{VolumeModeOf(volume.Spec.VolumeMode), storageclass.OfVolume(volume), textOf(volume.Spec.VolumeAttributesClassName)}
}

// textOf returns the text that text points to; "" for nil.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
