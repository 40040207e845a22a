package binding

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// Report explains a Match: what Find made of every volume (E1). Its String is the summary in one line, and its
// Table groups like volumes for a terminal. As JSON it has the fields below.
type Report struct {
	Claim Key `json:"claim"`
	// Chosen is the name of the volume that Find chooses; "" if it chooses none.
	Chosen string `json:"chosen,omitempty"`
	// Verdicts has every volume of the Request, in name order.
	Verdicts []Verdict `json:"verdicts"`
}

// Verdict is what Find made of one volume. As JSON it names the volume: {"volume": "pv-7", "link": "Unclaimed",
// "mismatches": [{"reason": "StorageClass", "asks": "fast", "has": "slow"}]}, and "chosen": true if it is.
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
	return Verdict{Volume: volume, Link: phase.LinkOf(volume, c.claim), Mismatches: c.mismatches(volume)}
}

// Summary counts the volumes: each once, under its first reason (E2).
func (r Report) Summary() Summary {
	var t tally
	for _, verdict := range r.Verdicts {
		t.add(verdict)
	}
	return t.summary()
}

// String is the Summary in one line of at most 512 bytes.
func (r Report) String() string { return r.Summary().String() }

// MarshalJSON names the volume and leaves the rest of it out.
func (v Verdict) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Volume     string     `json:"volume"`
		Link       phase.Link `json:"link"`
		Mismatches Mismatches `json:"mismatches,omitempty"`
		Chosen     bool       `json:"chosen,omitempty"`
	}{v.Volume.Name, v.Link, v.Mismatches, v.Chosen})
}
