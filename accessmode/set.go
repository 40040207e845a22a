package accessmode

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A Set is a set of access modes. The zero value is the empty set.
type Set uint8

// The four modes of the Kubernetes API, each as a set of one.
const (
	ReadWriteOnce Set = 1 << iota
	ReadOnlyMany
	ReadWriteMany
	ReadWriteOncePod
)

// Of returns the set of the given modes. It fails if the Kubernetes API does not
// define one of them, and the error names it; the caller adds the object and the
// field.
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

// Contains reports whether every requested mode is in s: whether a volume that
// offers s serves a claim that requests these modes. Modes are not ordered by power:
// ReadWriteMany alone does not serve a claim for ReadWriteOnce (M4).
func (s Set) Contains(requested Set) bool { return requested&^s == 0 }

// Len returns the number of modes in s.
func (s Set) Len() int { return bits.OnesCount8(uint8(s)) }

// Compare orders sets by how many modes they have, fewest first. It is negative if
// a has fewer modes than b, positive if it has more, and 0 if they have as many,
// whichever modes those are. Volumes are preferred in this order (M13).
func Compare(a, b Set) int { return cmp.Compare(a.Len(), b.Len()) }

// String returns the modes of s in the short form and the order of kubectl, as in
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

// AllowsPod reports whether a claim with these access modes may be used by the
// pod, given the pods of its namespace that use it already, without the finished
// ones. ReadWriteOncePod allows one pod in the whole cluster, even beside other
// modes, as in Kubernetes' scheduler. Every other set allows any number of pods:
// ReadWriteOnce is about nodes.
func (s Set) AllowsPod(pod string, users ...string) bool {
	return !s.Contains(ReadWriteOncePod) || !slices.ContainsFunc(users, func(other string) bool { return other != pod })
}

// names has the modes in kubectl's order, which is the order of the constants.
var names = [...]struct {
	set   Set
	short string
}{
	{ReadWriteOnce, "RWO"},
	{ReadOnlyMany, "ROX"},
	{ReadWriteMany, "RWX"},
	{ReadWriteOncePod, "RWOP"},
}
