package accessmode

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const everything = ReadWriteOnce | ReadOnlyMany | ReadWriteMany | ReadWriteOncePod

var singles = map[Set]corev1.PersistentVolumeAccessMode{
	ReadWriteOnce:    corev1.ReadWriteOnce,
	ReadOnlyMany:     corev1.ReadOnlyMany,
	ReadWriteMany:    corev1.ReadWriteMany,
	ReadWriteOncePod: corev1.ReadWriteOncePod,
}

// modesOf returns the modes of a set as a list.
func modesOf(set Set) (modes []corev1.PersistentVolumeAccessMode) {
	for single, mode := range singles {
		if set&single != 0 {
			modes = append(modes, mode)
		}
	}
	return modes
}

// has is the membership test by which the set operations are checked: it looks at
// the list of modes, not at bits.
func has(set Set, mode corev1.PersistentVolumeAccessMode) bool {
	return slices.Contains(modesOf(set), mode)
}

func TestStringIsWhatKubectlPrints(t *testing.T) {
	for set, want := range []string{
		0:  "",
		1:  "RWO",
		2:  "ROX",
		3:  "RWO,ROX",
		4:  "RWX",
		5:  "RWO,RWX",
		6:  "ROX,RWX",
		7:  "RWO,ROX,RWX",
		8:  "RWOP",
		9:  "RWO,RWOP",
		10: "ROX,RWOP",
		11: "RWO,ROX,RWOP",
		12: "RWX,RWOP",
		13: "RWO,RWX,RWOP",
		14: "ROX,RWX,RWOP",
		15: "RWO,ROX,RWX,RWOP",
	} {
		assert.Equal(t, want, Set(set).String())
	}
}

func TestOfReadsEveryList(t *testing.T) {
	for set := Set(0); set <= everything; set++ {
		modes := modesOf(set)
		assert.Len(t, modes, set.Len())

		again, err := Of(modes...)
		require.NoError(t, err)
		assert.Equal(t, set, again, "modes %v", modes)

		slices.Reverse(modes)
		again, err = Of(append(modes, modes...)...)
		require.NoError(t, err)
		assert.Equal(t, set, again, "order and repetition of %v", modes)
	}
}

func TestOfSingleModes(t *testing.T) {
	for set, mode := range singles {
		got, err := Of(mode)
		require.NoError(t, err)
		assert.Equal(t, set, got)
		assert.Equal(t, 1, set.Len())
	}
}

func TestOfNamesTheUnknownMode(t *testing.T) {
	for _, unknown := range []corev1.PersistentVolumeAccessMode{"", "ReadWriteTwice", "readwriteonce", "RWO"} {
		t.Run("X7 "+string(unknown), func(t *testing.T) {
			for _, modes := range [][]corev1.PersistentVolumeAccessMode{
				{unknown},
				{corev1.ReadWriteOnce, unknown},
				{unknown, corev1.ReadWriteOnce},
			} {
				set, err := Of(modes...)
				assert.ErrorContains(t, err, `"`+string(unknown)+`"`)
				assert.Zero(t, set)
			}
		})
	}
}

func TestOperationsOnAllPairs(t *testing.T) {
	t.Run("M4 a volume serves a claim if it lists every requested mode", func(t *testing.T) {
		forAllPairs(func(offered, requested Set) {
			serves := true
			for _, mode := range modesOf(requested) {
				serves = serves && has(offered, mode)
			}
			assert.Equal(t, serves, offered.Contains(requested), "%v contains %v", offered, requested)
		})
	})
	t.Run("M13 the set with fewer modes is the smaller, whichever they are", func(t *testing.T) {
		forAllPairs(func(a, b Set) {
			fewer := len(modesOf(a)) - len(modesOf(b))
			assert.Equal(t, fewer < 0, Compare(a, b) < 0, "%v, %v", a, b)
			assert.Equal(t, fewer > 0, Compare(a, b) > 0, "%v, %v", a, b)
		})
	})
}

func TestReadWriteManyDoesNotServeReadWriteOnce(t *testing.T) {
	assert.False(t, ReadWriteMany.Contains(ReadWriteOnce), "M4 modes are listed, not ordered by power")
	assert.False(t, ReadWriteOnce.Contains(ReadWriteOncePod), "M4 modes are listed, not ordered by power")
}

func TestOfDoesNotAllocate(t *testing.T) {
	modes := modesOf(everything)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		set, err := Of(modes...)
		if err != nil || !set.Contains(ReadWriteMany) {
			panic("all four modes are known")
		}
	}))
}

func forAllPairs(check func(a, b Set)) {
	for a := Set(0); a <= everything; a++ {
		for b := Set(0); b <= everything; b++ {
			check(a, b)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	modes := modesOf(everything)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Of(modes...)
	}
}
