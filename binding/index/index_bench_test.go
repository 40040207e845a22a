package index_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pvbind/pvbind/binding/index"
	. "github.com/pvbind/pvbind/binding/internal/testkit"
	"github.com/pvbind/pvbind/binding/match"
)

// BenchmarkIndexUpdate is about a volume that is bound and freed again: two calls of Set. It reports the
// time of one.
func BenchmarkIndexUpdate(b *testing.B) {
	small := 0.0
	for _, count := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("volumes=%d", count), func(b *testing.B) {
			free := Variants[0].Volumes(count)
			bound := make([]*corev1.PersistentVolume, min(count, 10_000))
			for i := range bound {
				bound[i] = free[i].DeepCopy()
				RefersTo("other", "claim-of-"+free[i].Name, "uid")(bound[i])
			}
			var index index.Index
			index.Load(free...)
			runtime.GC()
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				index.Set(bound[i%len(bound)])
				index.Set(free[i%len(bound)])
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(2*b.N)
			b.ReportMetric(each, "ns/update")
			if small == 0 {
				small = each
			}
			b.ReportMetric(each/small, "growth")
		})
	}
}

// BenchmarkIndexBuild is about Load into an empty Index, and what the Index holds beside the volumes.
func BenchmarkIndexBuild(b *testing.B) {
	for _, count := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("volumes=%d", count), func(b *testing.B) {
			for _, v := range Variants {
				b.Run(v.Name, func(b *testing.B) {
					volumes := v.Volumes(count)
					before := heap()
					var built *index.Index
					for b.Loop() {
						built = &index.Index{}
						built.Load(volumes...)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(count), "ns/volume")
					b.ReportMetric((heap()-before)/float64(count), "B/volume")
					runtime.KeepAlive(volumes)
					runtime.KeepAlive(built)
				})
			}
		})
	}
}

// heap is how many bytes are in use after everything that can be freed is.
func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// BenchmarkIndexSummary is about a claim that no volume fits, among volumes of ten classes.
func BenchmarkIndexSummary(b *testing.B) {
	small := 0.0
	for _, count := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("volumes=%d", count), func(b *testing.B) {
			volumes := Variants[0].Volumes(count)
			for i, volume := range volumes {
				volume.Spec.StorageClassName = fmt.Sprintf("class-%d", i%10)
			}
			claim := FitClaim()
			var index index.Index
			index.Load(volumes...)
			runtime.GC()
			b.ResetTimer()
			for b.Loop() {
				if _, err := index.Summary(claim, match.Terms{}); err != nil {
					b.Fatal(err)
				}
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			if small == 0 {
				small = each
			}
			b.ReportMetric(each/small, "growth")
		})
	}
}
