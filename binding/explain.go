package binding

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// Report explains a Match: what Find made of every volume. Its String is a summary in one line (E2).
type Report struct {
	Claim Key
	// Chosen is the name of the volume that Find chooses; "" if it chooses none.
	Chosen string
	// Verdicts has every volume of the Request, in name order.
	Verdicts []Verdict
}

// Verdict is what Find made of one volume.
type Verdict struct {
	Volume *corev1.PersistentVolume
	// Link is how the volume relates to the claim.
	Link phase.Link
	// Mismatches are all the reasons why it does not fit; none: it fits.
	Mismatches Mismatches
	// Chosen is set for the one volume that Find chooses. Others may fit as well.
	Chosen bool
}

// Fits reports whether the volume would do, were there no better one.
func (v Verdict) Fits() bool { return len(v.Mismatches) == 0 }

// setAside reports whether the volume is Reserved for or Held by the claim.
func (v Verdict) setAside() bool { return candidate{link: v.Link}.setAside() }

// Explain answers a Request as Find does, and tells why (E1). Errors are those of Check.
func Explain(request Request) (Report, error) {
	c, err := newCriteria(request.Claim, request.Terms)
	if err != nil {
		return Report{}, err
	}
	return c.report(request.Volumes), nil
}

func (c *criteria) report(volumes []*corev1.PersistentVolume) Report {
	chosen := c.find(volumes).Volume
	report := Report{Claim: KeyOf(c.claim), Verdicts: make([]Verdict, len(volumes))}
	for i, volume := range volumes {
		report.Verdicts[i] = c.verdict(volume)
		if volume == chosen {
			report.Verdicts[i].Chosen = true
			report.Chosen = volume.Name
		}
	}
	slices.SortFunc(report.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Volume.Name, b.Volume.Name) })
	return report
}

func (c *criteria) verdict(volume *corev1.PersistentVolume) Verdict {
	v := c.candidate(volume)
	return Verdict{Volume: volume, Link: v.link, Mismatches: c.mismatches(v)}
}

// String is the summary: how many volumes fit, which is chosen, how many fail for which reason (each
// volume counted once, under its first), and, if none fits, the nearest miss. It is one line of at
// most 512 bytes.
func (r Report) String() string {
	var s summary
	for _, verdict := range r.Verdicts {
		s.add(verdict)
	}
	return s.String()
}
