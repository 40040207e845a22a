package match

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/internal/oneline"
	"github.com/pvbind/pvbind/binding/obj"
)

// CheckWellFormed returns an *obj.InvalidError if no claim can be bound to the volume, whatever it asks for (X7).
func CheckWellFormed(volume *corev1.PersistentVolume) error {
	if flaw, found := flawOf(volume); found {
		return &obj.InvalidError{Object: obj.VolumeKey(volume.Name).String(), Field: flaw.field, Problem: flaw.problem}
	}
	return nil
}

// flaw is what is wrong with the spec of a volume: as an error says it, and as a mismatch.
type flaw struct {
	field, problem string
	asks, has      string
}

// flawOf is the one place that recognises malformed volumes.
func flawOf(volume *corev1.PersistentVolume) (found flaw, malformed bool) {
	if _, err := ModesOf(volume); err != nil {
		return flaw{"spec.accessModes", err.Error(), "known access modes", err.Error()}, true
	}
	if mode := VolumeModeOf(volume.Spec.VolumeMode); !knownMode(mode) {
		return flaw{"spec.volumeMode", "unknown: " + string(mode), "a known volume mode", string(mode)}, true
	}
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	switch {
	case !ok:
		return flaw{"spec.capacity[storage]", "is missing", "a storage capacity", oneline.None}, true
	case capacity.Sign() < 0:
		return flaw{"spec.capacity[storage]", fmt.Sprintf("is negative: %s", capacity.String()), "a storage capacity", capacity.String()}, true
	}
	return flaw{}, false
}

// CapacityOf is the volume's size; false if it has none that could be compared.
func CapacityOf(volume *corev1.PersistentVolume) (resource.Quantity, bool) {
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	return capacity, ok && capacity.Sign() >= 0
}

// ModesOf are the access modes that the volume offers; an error if one of them is unknown.
func ModesOf(volume *corev1.PersistentVolume) (accessmode.Set, error) {
	return accessmode.Of(volume.Spec.AccessModes...)
}
