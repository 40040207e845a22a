package match

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/binding/obj"
	"github.com/pvbind/pvbind/storageclass"
)

// Criteria is a claim and its terms made ready to be compared with any number of volumes: read once, and found valid.
// NewCriteria makes one; an index goes by the fields to compare with nothing that cannot fit.
type Criteria struct {
	Claim           *corev1.PersistentVolumeClaim
	Request         resource.Quantity
	Modes           accessmode.Set
	VolumeMode      corev1.PersistentVolumeMode
	Class           string
	AttributesClass string
	Selector        LabelSelector // nil selects everything
	Delayed         bool
	byName          bool // the claim names the volume it is compared with (C7)
	Node            *corev1.Node
	Owners          func(volume string) []obj.Key
}

// NewCriteria reads a claim and its terms. An error is an *obj.InvalidError about the claim or its class.
func NewCriteria(claim *corev1.PersistentVolumeClaim, terms Terms) (Criteria, error) {
	c := Criteria{
		Claim:           claim,
		Request:         claim.Spec.Resources.Requests[corev1.ResourceStorage],
		VolumeMode:      VolumeModeOf(claim.Spec.VolumeMode),
		Class:           storageclass.OfClaim(claim),
		AttributesClass: textOf(claim.Spec.VolumeAttributesClassName),
		Node:            terms.Node,
		Owners:          terms.Owners,
	}
	if c.Request.Sign() < 0 {
		return Criteria{}, invalidClaim(claim, "spec.resources.requests.storage", c.Request.String()+" is negative")
	}
	if !knownMode(c.VolumeMode) {
		return Criteria{}, invalidClaim(claim, "spec.volumeMode", "unknown: "+string(c.VolumeMode))
	}
	var err error
	if c.Modes, err = accessmode.Of(claim.Spec.AccessModes...); err != nil {
		return Criteria{}, invalidClaim(claim, "spec.accessModes", err.Error())
	}
	if c.Selector, err = selectorOf(claim); err != nil {
		return Criteria{}, invalidClaim(claim, "spec.selector", err.Error())
	}
	if c.Delayed, err = WaitsForConsumer(terms.Class); err != nil {
		return Criteria{}, err
	}
	return c, nil
}

func invalidClaim(claim *corev1.PersistentVolumeClaim, field, problem string) error {
	return &obj.InvalidError{Object: obj.KeyOf(claim).String(), Field: field, Problem: problem}
}

// WaitsForConsumer reports whether claims of the class wait for a pod (M11). A nil class does not. An error is an
// *obj.InvalidError about its volumeBindingMode.
func WaitsForConsumer(class *storagev1.StorageClass) (bool, error) {
	delayed, err := storageclass.Delayed(class)
	if err != nil {
		return false, &obj.InvalidError{
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

// VolumeModeOf is the mode that a field of a claim or volume stands for (M5).
func VolumeModeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

// AttributesClassOf is the name of the volume's attributes class (M7); "" if it has none.
func AttributesClassOf(volume *corev1.PersistentVolume) string {
	return textOf(volume.Spec.VolumeAttributesClassName)
}

// textOf is the text that text points to; "" for nil.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// LabelSelector says which volumes a claim will have, by their labels (M8).
type LabelSelector interface {
	Matches(labels.Labels) bool
}

// selectorOf reads the claim's selector: nil if it has none, an error if it is malformed. The usual one,
// a list of labels, is not compiled, for that allocates.
func selectorOf(claim *corev1.PersistentVolumeClaim) (LabelSelector, error) {
	asked := claim.Spec.Selector
	if asked == nil {
		return nil, nil
	}
	if len(asked.MatchExpressions) == 0 && plainLabels(asked.MatchLabels) {
		return allOf(asked.MatchLabels), nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(asked)
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

// allOf selects what has all these labels.
type allOf map[string]string

func (asked allOf) Matches(has labels.Labels) bool {
	for key, value := range asked {
		if got, ok := has.Lookup(key); !ok || got != value {
			return false
		}
	}
	return true
}

// plainLabels reports whether labels are valid by a rule that is narrower than the API's and quick to
// check. Nearly all are plain.
func plainLabels(labels map[string]string) bool {
	for key, value := range labels {
		if prefix, name, ok := strings.Cut(key, "/"); ok && (!plainDomain(prefix) || !plainName(name)) || !ok && !plainName(key) {
			return false
		}
		if value != "" && !plainName(value) {
			return false
		}
	}
	return true
}

// plainName is a part of a label: letters and digits, with dashes, dots and underscores between them.
func plainName(text string) bool {
	if len(text) == 0 || len(text) > 63 || !letterOrDigit(text[0]) || !letterOrDigit(text[len(text)-1]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !letterOrDigit(c) && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// plainDomain is a DNS name of lower case letters and digits.
func plainDomain(text string) bool {
	for i := range len(text) {
		c := text[i]
		lower := letterOrDigit(c) && (c < 'A' || c > 'Z')
		// A dot or dash must not stand first, last, or beside another.
		between := (c == '.' || c == '-') && i > 0 && i < len(text)-1 && letterOrDigit(text[i+1])
		if !lower && !between {
			return false
		}
	}
	return len(text) > 0 && len(text) <= 253
}

func letterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
