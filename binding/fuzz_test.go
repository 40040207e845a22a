package binding_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
)

// The fuzz targets make their input of the choices that the bytes stand for, so that a mutated input is a
// changed world and not one that cannot be read. To look for more:
//
//	go test ./binding -run '^$' -fuzz FuzzFind -fuzztime 10m

// choices is a source of random numbers that begins with the given bytes.
type choices struct {
	bytes []byte
	rest  *rand.PCG
}

func newChoices(bytes []byte) *choices {
	return &choices{bytes, rand.NewPCG(uint64(len(bytes)), 0)}
}

// Uint64 repeats two bytes, for small numbers are made of the high bits and shuffles of the low ones.
func (c *choices) Uint64() uint64 {
	if len(c.bytes) < 2 {
		return c.rest.Uint64()
	}
	next := uint64(binary.BigEndian.Uint16(c.bytes))
	c.bytes = c.bytes[2:]
	return next<<48 | next<<32 | next<<16 | next
}

// addSeeds adds some inputs of a length that lets the bytes decide everything.
func addSeeds(f *testing.F, length int) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		bytes := make([]byte, length)
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		f.Add(bytes)
	}
}

// FuzzFind holds Find to upstream's answer, to that of an Index and to Explain (M13, M14, E3), Explain to reasons that
// are complete (E1), and all to leaving their input alone (X6).
func FuzzFind(f *testing.F) {
	addSeeds(f, 400)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		w := world{rand.New(newChoices(bytes))}
		request := w.request()
		claim, volumes := request.Claim.DeepCopy(), copiesOf(request.Volumes)

		found, err := match.Find(request)
		require.NoError(t, err)
		agree(t, request, map[string]int{}, "this world")

		var index index.Index
		index.Load(request.Volumes...)
		for _, volume := range request.Volumes {
			for _, owner := range request.Owners(volume.Name) {
				index.SetClaim(owning(owner, volume.Name))
			}
		}
		indexed, err := index.Find(request.Claim, match.Terms{Node: request.Node, Class: request.Class})
		require.NoError(t, err)
		assert.Equal(t, nameOf(found.Volume), nameOf(indexed.Volume), "M14")

		report, err := match.Explain(request)
		require.NoError(t, err)
		assert.Equal(t, nameOf(found.Volume), report.Chosen, "M14, E3")
		for _, verdict := range report.Verdicts {
			assert.Equal(t, verdict.Chosen, verdict.Volume == found.Volume, "M14, E3")
			assert.False(t, verdict.Chosen && !verdict.Fits(), "E3")
		}
		summary, err := index.Summary(request.Claim, match.Terms{Node: request.Node, Class: request.Class})
		require.NoError(t, err)
		assert.Equal(t, report.Summary(), summary, "E2, M14")
		requireReasonsComplete(t, w, request, map[match.Reason]int{})
		assert.True(t, equality.Semantic.DeepEqual(claim, request.Claim), "X6")
		assert.True(t, equality.Semantic.DeepEqual(volumes, request.Volumes), "X6")
	})
}

func copiesOf(volumes []*corev1.PersistentVolume) []*corev1.PersistentVolume {
	var copied []*corev1.PersistentVolume
	for _, volume := range volumes {
		copied = append(copied, volume.DeepCopy())
	}
	return copied
}

// FuzzHistory plays the history that the bytes stand for and holds it to the X rules; see TestHistories.
func FuzzHistory(f *testing.F) {
	addSeeds(f, 1000)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		h := play(newChoices(bytes), small)
		require.Empty(t, h.broken, "%v", h.path)
	})
}
