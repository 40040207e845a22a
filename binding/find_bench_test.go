package binding_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/pvbind/pvbind/binding/index"
	"github.com/pvbind/pvbind/binding/match"
)

// variant is a kind of cluster, and what its claims ask for.
type variant struct {
	name   string
	volume func(r *rand.Rand, v *corev1.PersistentVolume)
	claim  func(r *rand.Rand, c *corev1.PersistentVolumeClaim)
	node   func(r *rand.Rand) *corev1.Node
}

const zones, tiers = 10, 10

var someModes = [...]string{"O", "O", "OR", "OM", "ORM", "RM", "M"}

var variants = []variant{
	{name: "plain"},
	{
		name:   "selector",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) { v.Labels = labelsOf("tier", r.IntN(tiers)) },
		claim: func(r *rand.Rand, c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf("tier", r.IntN(tiers))}
		},
	},
	{
		name: "affinity",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) {
			affine(term(require1("zone", corev1.NodeSelectorOpIn, fmt.Sprint(r.IntN(zones)))))(v)
		},
		node: func(r *rand.Rand) *corev1.Node {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labelsOf("zone", r.IntN(zones))}}
		},
	},
	{
		name: "modes",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) {
			v.Spec.AccessModes = modes(someModes[r.IntN(len(someModes))])
		},
		claim: func(r *rand.Rand, c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = modes([]string{"O", "O", "R", "M", "OM"}[r.IntN(5)])
		},
	},
	{
		name: "bound90",
		volume: func(r *rand.Rand, v *corev1.PersistentVolume) {
			if r.IntN(10) > 0 {
				refersTo("other", "claim-of-"+v.Name, types.UID("uid-of-"+v.Name))(v)
				v.Status.Phase = corev1.VolumeBound
			}
		},
	},
}

func labelsOf(key string, value int) map[string]string {
	return map[string]string{key: fmt.Sprint(value)}
}

var usualGibibytes = [...]int64{1, 5, 8, 10, 20, 50, 100, 200, 500, 1000}

// sizeMix is a random size: half of them a usual one, half of them any number of MiB up to 10 TiB.
func sizeMix(r *rand.Rand) resource.Quantity {
	mebibytes := 1 + r.Int64N(10<<20)
	if r.IntN(2) == 0 {
		mebibytes = usualGibibytes[r.IntN(len(usualGibibytes))] << 10
	}
	return *resource.NewQuantity(mebibytes<<20, resource.BinarySI)
}

func (v variant) volumes(count int) []*corev1.PersistentVolume {
	r := rand.New(rand.NewPCG(1, uint64(count)))
	volumes := make([]*corev1.PersistentVolume, count)
	for i := range volumes {
		volumes[i] = fitVolume(fmt.Sprintf("pvc-%08d", i))
		volumes[i].Spec.Capacity[corev1.ResourceStorage] = sizeMix(r)
		if v.volume != nil {
			v.volume(r, volumes[i])
		}
	}
	r.Shuffle(count, func(i, j int) { volumes[i], volumes[j] = volumes[j], volumes[i] })
	return volumes
}

// asked are random claims, each perhaps for a node.
type asked struct {
	*rand.Rand
	claims []*corev1.PersistentVolumeClaim
	terms  []match.Terms
}

func (v variant) asked(count int) asked {
	a := asked{Rand: rand.New(rand.NewPCG(2, uint64(count)))}
	for i := range count {
		claim := fitClaim(func(c *corev1.PersistentVolumeClaim) { c.Name = fmt.Sprintf("data-%d", i) })
		if v.claim != nil {
			v.claim(a.Rand, claim)
		}
		var terms match.Terms
		if v.node != nil {
			terms.Node = v.node(a.Rand)
		}
		a.claims, a.terms = append(a.claims, claim), append(a.terms, terms)
	}
	return a
}

// next is one of the claims, with a new random request: else the same few paths through the index would
// be walked, and be found in the processor's cache.
func (a asked) next() (*corev1.PersistentVolumeClaim, match.Terms) {
	i := a.IntN(len(a.claims))
	a.claims[i].Spec.Resources.Requests[corev1.ResourceStorage] = sizeMix(a.Rand)
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
			for _, v := range variants {
				b.Run(v.name, func(b *testing.B) {
					ours := v.benchmark(b, count)
					if count == 1e3 {
						small[v.name] = ours
					}
					if small[v.name] > 0 {
						b.ReportMetric(ours/small[v.name], "growth")
					}
				})
			}
		})
	}
}

// benchmark returns the time of one Find in nanoseconds.
func (v variant) benchmark(b *testing.B, count int) float64 {
	volumes, asked := v.volumes(count), v.asked(claims)
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
