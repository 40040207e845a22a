package binding

import (
	corev1 "k8s.io/api/core/v1"

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
