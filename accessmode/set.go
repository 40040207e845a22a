package accessmode

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Set is a set of access modes. The zero value is the empty set.
type Set uint8

// The four modes of the Kubernetes API, each as a set of one.
const (
	ReadWriteOnce Set = 1 << iota
	ReadOnlyMany
	ReadWriteMany
	ReadWriteOncePod
)

// Of returns the set of the given modes. A mode the Kubernetes API does not
// define is an error that names it; the caller adds the object and the field.
func Of(modes ...corev1.PersistentVolumeAccessMode) (Set, error) {
	var set Set
	for _, mode := range modes {
		one := of(mode)
		if one == 0 {
			return 0, fmt.Errorf("unknown access mode %q", string(mode))
		}
		set |= one
	}
	return set, nil
}

func of(mode corev1.PersistentVolumeAccessMode) Set {
	switch mode {
	case corev1.ReadWriteOnce:
		return ReadWriteOnce
	case corev1.ReadOnlyMany:
		return ReadOnlyMany
	case corev1.ReadWriteMany:
		return ReadWriteMany
	case corev1.ReadWriteOncePod:
		return ReadWriteOncePod
	}
	return 0
}

// Contains reports whether every asked mode is in s: whether a volume that offers
// s serves a claim that asks for asked (rule M4). Modes are not ordered by power:
// ReadWriteMany alone does not serve a claim for ReadWriteOnce.
func (s Set) Contains(asked Set) bool { return asked&^s == 0 }

// Minus returns the modes of s that are not in other.
func (s Set) Minus(other Set) Set { return s &^ other }

// Len returns the number of modes in s.
func (s Set) Len() int { return bits.OnesCount8(uint8(s)) }

// Compare orders sets by how many modes they have, fewest first, as rule M13
// prefers volumes. It is negative if a is narrower than b, positive if it is
// wider, and 0 if they are of one size, whichever modes those are.
func Compare(a, b Set) int { return cmp.Compare(a.Len(), b.Len()) }

// Modes returns the modes of s as the Kubernetes API spells them, in the order
// of the constants; nil if there are none.
func (s Set) Modes() []corev1.PersistentVolumeAccessMode {
	var modes []corev1.PersistentVolumeAccessMode
	for _, name := range names {
		if s.Contains(name.set) {
			modes = append(modes, name.mode)
		}
	}
	return modes
}

// String returns the modes of s in the short form and the order of kubectl:
// "RWO,ROX,RWX,RWOP". The empty set is the empty string.
func (s Set) String() string {
	var short []string
	for _, name := range names {
		if s.Contains(name.set) {
			short = append(short, name.short)
		}
	}
	return strings.Join(short, ",")
}

// names is in kubectl's order, which is the order of the constants.
var names = [...]struct {
	set   Set
	mode  corev1.PersistentVolumeAccessMode
	short string
}{
	{ReadWriteOnce, corev1.ReadWriteOnce, "RWO"},
	{ReadOnlyMany, corev1.ReadOnlyMany, "ROX"},
	{ReadWriteMany, corev1.ReadWriteMany, "RWX"},
	{ReadWriteOncePod, corev1.ReadWriteOncePod, "RWOP"},
}
