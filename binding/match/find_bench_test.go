package match_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
)

// asked are random claims, each perhaps for a node.
type asked struct {
	*rand.Rand
	claims []*corev1.PersistentVolumeClaim
	terms  []match.Terms
}

// next is one of the claims, with a new random request: else the same few paths through the index would
// be walked, and be found in the processor's cache.
func (a asked) next() (*corev1.PersistentVolumeClaim, match.Terms) {
	i := a.IntN(len(a.claims))
	a.claims[i].Spec.Resources.Requests[corev1.ResourceStorage] = SizeMix(a.Rand)
	return a.claims[i], a.terms[i]
}

const (
	claims    = 64
	peerLimit = 100_000
)

// BenchmarkFind is about how long an Index takes to choose a volume for a random claim. x-faster is how
// many times that FindMatchingVolume of component-helpers takes for the same claims and volumes; growth
// is the time compared with that at 1,000 volumes.
func BenchmarkFind(b *testing.B) {
	small := map[string]float64{}
	for _, count := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("volumes=%d", count), func(b *testing.B) {
			for _, v := range Variants {
				b.Run(v.Name, func(b *testing.B) {
					ours := benchmarkFind(v, b, count)
					if count == 1e3 {
						small[v.Name] = ours
					}
					if small[v.Name] > 0 {
						b.ReportMetric(ours/small[v.Name], "growth")
					}
				})
			}
		})
	}
}

// peer is the time that FindMatchingVolume takes for one of the claims: the median of several.
func (a asked) peer(b *testing.B, volumes []*corev1.PersistentVolume) time.Duration {
	var all []time.Duration
	for range 9 {
		claim, terms := a.next()
		start := time.Now()
		_, err := volumehelpers.FindMatchingVolume(claim, volumes, terms.Node, nil, false, true)
		all = append(all, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func askedOf(v Variant, count int) asked {
	a := asked{Rand: rand.New(rand.NewPCG(2, uint64(count)))}
	for i := range count {
		claim := FitClaim(func(c *corev1.PersistentVolumeClaim) { c.Name = fmt.Sprintf("data-%d", i) })
		if v.Claim != nil {
			v.Claim(a.Rand, claim)
		}
		var terms match.Terms
		if v.Node != nil {
			terms.Node = v.Node(a.Rand)
		}
		a.claims, a.terms = append(a.claims, claim), append(a.terms, terms)
	}
	return a
}

// benchmark returns the time of one Find in nanoseconds.
func benchmarkFind(v Variant, b *testing.B, count int) float64 {
	volumes, asked := v.Volumes(count), askedOf(v, claims)
	var index index.Index
	index.Load(volumes...)
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if _, err := index.Find(asked.next()); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	ours := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	if count <= peerLimit {
		b.ReportMetric(float64(asked.peer(b, volumes))/ours, "x-faster")
	}
	return ours
}
