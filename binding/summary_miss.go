package binding

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/phase"
)

// nearby reports whether the volume can be called a near miss at all: it stays and is nobody's, or its
// claimRef has the claim's name.
func (v Verdict) nearby() bool {
	switch v.Link {
	case phase.Other:
		return false
	case phase.Unclaimed:
		return !v.Mismatches.has(Deleting) && !v.Mismatches.has(Claimed)
	}
	return true
}

// elsewhere reports whether the volume is set aside for the claim and would do but for the node (M13).
func (v Verdict) elsewhere() bool { return v.setAside() && v.Mismatches.only(NodeAffinity) }

// String is the verdict as a sentence: `pv-7 would fit but for its class: "slow", the claim asks "fast"`.
func (v Verdict) String() string {
	name := oneLine(v.Volume.Name, maxName)
	switch {
	case v.Chosen:
		return name + " is chosen"
	case v.Fits():
		return name + " fits"
	case v.elsewhere():
		name += " is set aside for the claim, and"
	}
	return name + " would fit but for " + v.Mismatches.phrases()
}

// phrases say in words what keeps the volume from fitting.
func (m Mismatches) phrases() string {
	width := m.width()
	texts := make([]string, len(m))
	for i := range m {
		texts[i] = m[i].phrase(width)
	}
	return strings.Join(texts, "; ")
}

// phrase is `its class: "slow", the claim asks "fast"`.
func (m Mismatch) phrase(width int) string {
	asks, has := oneLine(m.Asks, width), oneLine(m.Has, width)
	if m.Reason == StorageClass || m.Reason == AttributesClass {
		asks, has = quoted(asks), quoted(has)
	}
	return fitRules[position(m.Reason)].subject + ": " + has + ", the claim asks " + asks
}

// quoted puts a name in quotes, so that it is not taken for a word of the sentence.
func quoted(name string) string {
	if name == none {
		return name
	}
	return `"` + name + `"`
}

// miss is what tells how near a volume is to fitting.
type miss struct {
	volume  *corev1.PersistentVolume
	beyond  int // how many reasons no field could mend
	reasons int // how many in all
	short   int // 1 if TooSmall is among them
}

func missOf(v Verdict) miss {
	m := miss{volume: v.Volume, reasons: len(v.Mismatches)}
	for _, mismatch := range v.Mismatches {
		switch mismatch.Reason {
		case Deleting, Claimed, NotAvailable, Delayed:
			m.beyond++
		case TooSmall:
			m.short = 1
		}
	}
	return m
}

// add counts a reason, if it stands against the volume.
func (m *miss) add(reason bool, beyond int) {
	if reason {
		m.reasons++
		m.beyond += beyond
	}
}

// compareMisses puts first the volume that is nearest to fitting: the one that the fewest reasons stand
// against that no change of a field of claim or volume would mend, then the fewest reasons, then the one
// whose capacity is nearest to the request, any that is enough before any that is not, then by name.
func compareMisses(a, b miss) int {
	byCapacity := compareCapacities(a.volume, b.volume)
	if a.short == 1 {
		byCapacity = -byCapacity
	}
	return cmp.Or(a.compareReasons(b), byCapacity, cmp.Compare(a.volume.Name, b.volume.Name))
}

// compareReasons is compareMisses as far as the volumes need not be known.
func (m miss) compareReasons(other miss) int {
	return cmp.Or(cmp.Compare(m.beyond, other.beyond), cmp.Compare(m.reasons, other.reasons), cmp.Compare(m.short, other.short))
}

func compareCapacities(a, b *corev1.PersistentVolume) int {
	return compareCapacity(candidate{PersistentVolume: a}, candidate{PersistentVolume: b})
}
