package binding

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pvbind/pvbind/accessmode"
	"github.com/pvbind/pvbind/phase"
)

// candidate is a volume as seen by one claim.
type candidate struct {
	*corev1.PersistentVolume
	link phase.Link
}

func (c *criteria) candidate(volume *corev1.PersistentVolume) candidate {
	return candidate{PersistentVolume: volume, link: phase.LinkOf(volume, c.claim)}
}

// exists tells a candidate from the zero value.
func (v candidate) exists() bool { return v.PersistentVolume != nil }

// setAside reports whether the volume is Reserved for or Held by the claim.
func (v candidate) setAside() bool { return v.link == phase.Reserved || v.link == phase.Held }

// capacityOf is the volume's size; false if it has none that could be compared.
func capacityOf(volume *corev1.PersistentVolume) (resource.Quantity, bool) {
	capacity, ok := volume.Spec.Capacity[corev1.ResourceStorage]
	return capacity, ok && capacity.Sign() >= 0
}

// modesOf are the access modes that the volume offers; an error if one of them is unknown.
func modesOf(volume *corev1.PersistentVolume) (accessmode.Set, error) {
	return accessmode.Of(volume.Spec.AccessModes...)
}
