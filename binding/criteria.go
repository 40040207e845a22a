package binding

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/storageclass"
)

// criteria is a claim and its terms made ready to be compared with any number of volumes: read once,
// and found valid.
type criteria struct {
	claim           *corev1.PersistentVolumeClaim
	request         resource.Quantity
	modes           accessmode.Set
	volumeMode      corev1.PersistentVolumeMode
	class           string
	attributesClass string
	selector        selector // nil selects everything
	delayed         bool
	byName          bool // the claim names the volume it is compared with (C7)
	node            *corev1.Node
	owners          func(volume string) []Key
}

// newCriteria reads a claim and its terms. An error is an *InvalidError about the claim or its class.
func newCriteria(claim *corev1.PersistentVolumeClaim, terms Terms) (criteria, error) {
	c := criteria{
		claim:           claim,
		request:         claim.Spec.Resources.Requests[corev1.ResourceStorage],
		volumeMode:      volumeModeOf(claim.Spec.VolumeMode),
		class:           storageclass.OfClaim(claim),
		attributesClass: textOf(claim.Spec.VolumeAttributesClassName),
		node:            terms.Node,
		owners:          terms.Owners,
	}
	if c.request.Sign() < 0 {
		return criteria{}, invalidClaim(claim, "spec.resources.requests.storage", c.request.String()+" is negative")
	}
	if !knownMode(c.volumeMode) {
		return criteria{}, invalidClaim(claim, "spec.volumeMode", "unknown: "+string(c.volumeMode))
	}
	var err error
	if c.modes, err = accessmode.Of(claim.Spec.AccessModes...); err != nil {
		return criteria{}, invalidClaim(claim, "spec.accessModes", err.Error())
	}
	if c.selector, err = selectorOf(claim); err != nil {
		return criteria{}, invalidClaim(claim, "spec.selector", err.Error())
	}
	if c.delayed, err = delayed(terms.Class); err != nil {
		return criteria{}, err
	}
	return c, nil
}

func invalidClaim(claim *corev1.PersistentVolumeClaim, field, problem string) error {
	return &InvalidError{Object: KeyOf(claim).String(), Field: field, Problem: problem}
}

func delayed(class *storagev1.StorageClass) (bool, error) {
	delayed, err := storageclass.Delayed(class)
	if err != nil {
		return false, &InvalidError{
			Object:  "storageclass/" + class.Name,
			Field:   "volumeBindingMode",
			Problem: "neither Immediate nor WaitForFirstConsumer",
		}
	}
	return delayed, nil
}

func knownMode(mode corev1.PersistentVolumeMode) bool {
	return mode == corev1.PersistentVolumeFilesystem || mode == corev1.PersistentVolumeBlock
}

// volumeModeOf is the mode that a field of a claim or volume stands for (M5).
func volumeModeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

// attributesClassOf is the name of the volume's attributes class (M7); "" if it has none.
func attributesClassOf(volume *corev1.PersistentVolume) string {
	return textOf(volume.Spec.VolumeAttributesClassName)
}

// textOf is the text that text points to; "" for nil.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
