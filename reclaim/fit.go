package reclaim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
)

// misfits is what keeps a volume that is set aside for the claim from serving it (M3 to M5 and M7; M12), in words.
// Package binding, which chooses volumes, has the rules in full. A claim without access modes is one to come of which
// only the name is known.
func misfits(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) []string {
	var found []string
	differs := func(what string, asks, has any) {
		found = append(found, fmt.Sprintf("%s: asks %v, has %v", what, asks, has))
	}
	if problem := malformed(volume); problem != "" {
		found = append(found, "Malformed: "+problem)
	}
	if len(claim.Spec.AccessModes) == 0 {
		return found
	}
	request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if capacity, ok := capacityOf(volume); ok && capacity.Cmp(request) < 0 {
		differs("TooSmall", request.String(), capacity.String())
	}
	for _, mode := range claim.Spec.AccessModes {
		if !slices.Contains(volume.Spec.AccessModes, mode) {
			differs("AccessModes", claim.Spec.AccessModes, volume.Spec.AccessModes)
			break
		}
	}
	if asks, has := volumeMode(claim.Spec.VolumeMode), volumeMode(volume.Spec.VolumeMode); asks != has {
		differs("VolumeMode", asks, has)
	}
	if asks, has := text(claim.Spec.VolumeAttributesClassName), text(volume.Spec.VolumeAttributesClassName); asks != has {
		differs("AttributesClass", fmt.Sprintf("%q", asks), fmt.Sprintf("%q", has))
	}
	return found
}

// malformed is why the volume is never matched, whatever a claim asks for (M3); "" if it can be.
func malformed(volume *corev1.PersistentVolume) string {
	_, sized := capacityOf(volume)
	_, err := accessmode.Of(volume.Spec.AccessModes...)
	mode := volumeMode(volume.Spec.VolumeMode)
	switch {
	case !sized:
		return "it has no storage capacity, or a negative one"
	case err != nil:
		return err.Error()
	case mode != corev1.PersistentVolumeFilesystem && mode != corev1.PersistentVolumeBlock:
		return fmt.Sprintf("unknown volume mode %q", mode)
	}
	return ""
}

// capacityOf is what a request is compared with; false: there is nothing to compare.
func capacityOf(volume *corev1.PersistentVolume) (resource.Quantity, bool) {
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	return capacity, ok && capacity.Sign() >= 0
}

func volumeMode(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

func text(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
